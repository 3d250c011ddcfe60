"""What handlers return, stream and raise, by tasks in memory."""

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import date
from typing import Any

import pytest
from pydantic import BaseModel

from agent_fleet import Agent, AgentTask, Artifact, Completed, Failed, NewArtifact, TaskFailedError, ToolError, text_of
from agent_fleet.testing import Run, run, run_tool


class Order(BaseModel):
    item: str
    due: date = date(2026, 12, 1)


@dataclass
class Price:
    cents: int


UNKNOWN: Any = {"parts": [], "title": "x"}
DATA = {"item": "tea", "due": "2026-12-01"}


def answer(value: Any) -> Run:
    agent = Agent("a")

    @agent.on_message
    async def give(task: AgentTask) -> Any:
        if isinstance(value, BaseException):
            raise value
        return value

    return run(agent, "hi")


@pytest.mark.parametrize(
    ("value", "parts"),
    [
        ("tea", [{"kind": "text", "text": "tea"}]),
        (Order(item="tea"), [{"kind": "data", "data": DATA}]),
        (Price(5), [{"kind": "data", "data": {"cents": 5}}]),
        ({"price": Price(5)}, [{"kind": "data", "data": {"price": {"cents": 5}}}]),
        ({"kind": "text", "text": "tea"}, [{"kind": "text", "text": "tea"}]),
        ({"kind": "green"}, [{"kind": "data", "data": {"kind": "green"}}]),
        (["It costs", Price(5)], [{"kind": "text", "text": "It costs"}, {"kind": "data", "data": {"cents": 5}}]),
        (Completed(text="tea", parts=[Price(5)]), [{"kind": "text", "text": "tea"}, {"kind": "data", "data": {"cents": 5}}]),
    ],
)
def test_an_answer_is_text_parts_or_data(value: Any, parts: list[Any]) -> None:
    assert answer(value).parts == parts


def test_text_and_usage_go_together_and_data_is_typed() -> None:
    found = answer(Completed(text="tea", usage={"input_tokens": 1, "output_tokens": 2}))
    assert (found.text, found.usage) == ("tea", {"input_tokens": 1, "output_tokens": 2})
    assert answer(Order(item="tea")).data(Order) == Order(item="tea")


def test_artifacts_get_an_id() -> None:
    unnamed: NewArtifact = {"parts": [{"kind": "text", "text": "one"}]}
    named: Artifact = {"artifactId": "own", "parts": []}
    found = answer(Completed(artifacts=[unnamed, named]))
    assert [artifact["artifactId"] for artifact in found.artifacts] == ["artifact-1", "own"]


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (Completed(artifacts=[UNKNOWN]), "artifacts.0.title: Extra inputs are not permitted; an artifact is {'parts'"),
        (Completed(parts=[{"kind": "text", "text": "x", "lang": "de"}]), "parts.0.text.lang: Extra inputs"),
        (5, "the answer is 5; return text, a part, a dict"),
        ([5], "parts: [5]; give text, parts, dicts"),
        (b"x", "the answer is b'x'"),
        ({"at": b"x"}, "bytes have no form in JSON"),
    ],
)
def test_what_nobody_reads_is_refused(value: Any, problem: str) -> None:
    found = answer(value)
    assert found.error is not None
    assert found.error.code == "HANDLER_ERROR"
    assert problem in found.error.message


@pytest.mark.parametrize(("wrap", "where"), [(lambda made: made, "the answer is"), (lambda made: ["Here:", made], "parts:")])
def test_a_forgotten_await_is_named(wrap: Any, where: str) -> None:
    async def price() -> int:
        return 250

    found = answer(wrap(price()))
    assert found.error is not None
    assert f"{where} the coroutine price(…), which was not awaited (write `await` before its call)" in found.error.message


@pytest.mark.parametrize("code", ["APPROVAL_REJECTED", "APPROVAL_EXPIRED", "CANCELED", "NO_TEA"])
def test_a_humans_no_and_input_that_does_not_fit_are_no_errors_of_the_log(code: str, caplog: pytest.LogCaptureFixture) -> None:
    agent = Agent("a")

    @agent.skill
    async def buy(task: AgentTask, item: str) -> None:
        await task.call_tool("pay")

    def pay() -> None:
        raise ToolError("no", code=code)

    log = logging.getLogger("apart")
    assert run(agent, skill_id="buy", log=log).error is not None  # without the item
    assert caplog.messages == []
    assert run(agent, skill_id="buy", args={"item": "tea"}, tools={"pay": pay}, log=log).error is not None
    failure = "handler failed (handler=skill buy, message_id=msg_test, dispatch_id=dsp_1)"
    assert caplog.messages == ([failure] if code == "NO_TEA" else [])


def test_a_failure_has_its_code() -> None:
    found = answer(Failed(code="NO_TEA", message="sold out", retryable=True))
    assert found.error is not None
    assert (found.state, found.error.code, found.error.retryable) == ("failed", "NO_TEA", True)
    with pytest.raises(TaskFailedError, match="sold out") as failed:
        _ = found.text
    assert failed.value.code == "NO_TEA"


def test_a_cancelled_error_of_the_handlers_own_fails_the_message() -> None:
    found = answer(asyncio.CancelledError())
    assert found.error is not None
    assert (found.error.code, "was canceled" in found.error.message) == ("HANDLER_ERROR", True)


def test_a_handler_that_takes_too_long_is_canceled() -> None:
    agent = Agent("a")
    ended = []

    @agent.on_message
    async def wait(task: AgentTask) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    found = run(agent, deadline_ms=1)
    assert found.error is not None
    assert (found.error.code, ended) == ("DEADLINE_EXCEEDED", [True])


def test_models_are_streamed() -> None:
    agent = Agent("a")

    @agent.on_message
    async def give(task: AgentTask) -> AsyncIterator[Any]:
        yield "It costs "
        yield "this: "
        yield Price(5)

    found = run(agent)
    assert found.pieces == ["It costs ", "this: "]
    assert found.parts == [{"kind": "text", "text": "It costs this: "}, {"kind": "data", "data": {"cents": 5}}]


def test_tools_take_and_give_models() -> None:
    agent = Agent("a")

    @agent.tool
    def price(order: Order) -> Price:
        if order.item != "tea":
            raise ToolError("no such item", code="NO_SUCH_ITEM")
        return Price(250)

    @agent.tool
    async def canceled() -> None:
        raise asyncio.CancelledError

    @agent.on_message
    async def ask(task: AgentTask) -> str:
        found = await task.call_tool("price", {"order": Order(item="tea")}, returns=Price)
        return f"{found.cents} cents"

    assert run_tool(agent, "price", {"order": Order(item="tea")}) == {"cents": 250}
    with pytest.raises(ToolError, match="no such item") as refused:
        run_tool(agent, "price", {"order": {"item": "cup"}})
    assert refused.value.code == "NO_SUCH_ITEM"
    with pytest.raises(ToolError, match="was canceled"):
        run_tool(agent, "canceled")

    found = run(agent, tools={"price": lambda order: Price(len(order["item"]))})
    assert (found.text, found.tool_calls) == ("3 cents", [("price", {"order": DATA})])
    misfit = run(agent, tools={"price": {"euros": 2}})
    assert misfit.error is not None
    assert "the result of price is not what was expected: cents: Field required" in misfit.error.message
    assert "give tools={'price'" in str(run(agent).error)


def test_an_unknown_skill_is_refused_as_the_platform_does() -> None:
    agent = Agent("a")
    agent.on_message(lambda task: "any")

    @agent.skill
    def refund(task: AgentTask) -> str:
        return "refunded"

    assert run(agent, skill_id="refund").text == "refunded"
    with pytest.raises(LookupError, match="no skill refnd: it has refund"):
        run(agent, skill_id="refnd")


def test_other_agents_and_the_history_are_given() -> None:
    agent = Agent("a")

    @agent.on_message
    async def ask(task: AgentTask) -> str:
        await task.status("asking")
        return text_of(await task.client.send(task.text, agent_type="clerk")) + str(len(await task.history()))

    found = run(agent, "tea", agents={"clerk": lambda content: f"no {content}"})
    assert (found.text, found.statuses) == ("no tea0", ["asking"])
