"""The adapter for the OpenAI Agents SDK, with a model that is made of its own types."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import agents
import pytest
from agents.items import TResponseStreamEvent
from agents.memory import SQLiteSession
from fake_task import answered, run_task
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseTextDeltaEvent,
    ResponseUsage,
)
from openai.types.responses.response_usage import InputTokensDetails, OutputTokensDetails
from pydantic import BaseModel

from agent_fleet import AgentTask, Completed, InputRequired
from agent_fleet.adapters.openai_agents import SQLiteRuns, _model_name, openai_agents_handler

agents.set_tracing_disabled(True)


class ScriptedModel(agents.Model):
    """Answers each turn with the next output, and keeps what it was given."""

    def __init__(self, *turns: Any) -> None:
        self.turns = list(turns)
        self.inputs: list[Any] = []

    async def get_response(self, *args: Any, **kwargs: Any) -> agents.ModelResponse:
        raise NotImplementedError  # the adapter streams

    async def stream_response(self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any) -> AsyncIterator[TResponseStreamEvent]:
        self.inputs.append(input)
        turn = self.turns.pop(0)
        item: Any = turn
        if isinstance(turn, str):
            for number, word in enumerate(turn.split(" ")):
                yield ResponseTextDeltaEvent(
                    content_index=0,
                    delta=word if number == 0 else f" {word}",
                    item_id="msg",
                    logprobs=[],
                    output_index=0,
                    sequence_number=number,
                    type="response.output_text.delta",
                )
            text = ResponseOutputText(annotations=[], text=turn, type="output_text", logprobs=[])
            item = ResponseOutputMessage(id="msg", content=[text], role="assistant", status="completed", type="message")
        usage = ResponseUsage(
            input_tokens=3,
            output_tokens=2,
            total_tokens=5,
            input_tokens_details=InputTokensDetails.model_construct(cached_tokens=0),
            output_tokens_details=OutputTokensDetails(reasoning_tokens=0),
        )
        response = Response(
            id="resp",
            created_at=0,
            model="scripted",
            object="response",
            output=item if isinstance(item, list) else [item],
            parallel_tool_calls=False,
            tool_choice="auto",
            tools=[],
            usage=usage,
        )
        yield ResponseCompletedEvent(response=response, sequence_number=99, type="response.completed")


def test_streams_the_text_and_reports_the_usage() -> None:
    agent = agents.Agent("assistant", model=ScriptedModel("Once upon a time"))
    result, pieces = asyncio.run(run_task(openai_agents_handler(agent), "Tell me a story"))
    assert pieces == ["Once", " upon", " a", " time"]
    assert result == Completed(usage={"input_tokens": 3, "output_tokens": 2})


def test_calls_tools() -> None:
    @agents.function_tool
    def price(item: str) -> str:
        return f"{item} costs 250"

    call = ResponseFunctionToolCall(arguments='{"item":"tea"}', call_id="call_1", name="price", type="function_call")
    model = ScriptedModel(call, "It costs 250")
    result, pieces = asyncio.run(run_task(openai_agents_handler(agents.Agent("assistant", model=model, tools=[price])), "Price?"))
    assert "".join(pieces) == "It costs 250"
    assert result == Completed(usage={"input_tokens": 6, "output_tokens": 4})
    assert model.inputs[1][-1]["output"] == "tea costs 250"


def test_a_session_is_a_conversation() -> None:
    async def run() -> None:
        conversation = SQLiteSession("ses_1")
        model = ScriptedModel("One", "Two")
        handler = openai_agents_handler(agents.Agent("assistant", model=model), session=lambda id: conversation)
        await run_task(handler, "First")
        await run_task(handler, "Second", message_id="msg_2")
        assert [item.get("content") for item in model.inputs[1]][::2] == ["First", "Second"]
        conversation.close()

    asyncio.run(run())


def test_an_output_with_a_type_is_data() -> None:
    class Weather(BaseModel):
        sunny: bool

    agent = agents.Agent("assistant", model=ScriptedModel('{"sunny":true}'), output_type=Weather)
    result, pieces = asyncio.run(run_task(openai_agents_handler(agent), "Weather?"))
    assert pieces == []
    usage: Any = {"input_tokens": 3, "output_tokens": 2}
    assert result == Completed(parts=[{"kind": "data", "data": {"sunny": True}}], usage=usage)


def refund_call(order: str, id: str = "call_1") -> ResponseFunctionToolCall:
    arguments = json.dumps({"order": order})
    return ResponseFunctionToolCall(arguments=arguments, call_id=id, name="refund", type="function_call")


def shop(model: ScriptedModel, refunded: list[str]) -> agents.Agent[Any]:
    @agents.function_tool(needs_approval=True)
    def refund(order: str) -> str:
        refunded.append(order)
        return f"{order} is refunded"

    return agents.Agent("shop", model=model, tools=[refund])


class MemoryStore:
    """What a database would keep."""

    def __init__(self) -> None:
        self.runs: dict[str, str] = {}

    async def load(self, message_id: str) -> str | None:
        return self.runs.get(message_id)

    async def save(self, message_id: str, run: str, keep_until: datetime) -> None:
        assert keep_until > datetime.now(UTC)
        self.runs[message_id] = run

    async def delete(self, message_id: str) -> None:
        del self.runs[message_id]


def asked(result: object) -> dict[str, Any] | None:
    """The arguments of the call that a human is asked about."""
    assert isinstance(result, InputRequired), result
    assert (result.question["kind"], result.question["title"]) == ("approval", "Call refund?")
    return result.question.get("arguments")


def test_calls_that_need_approval_are_asked_in_turn_and_the_run_goes_on_in_another_process() -> None:
    async def run() -> None:
        store, refunded = MemoryStore(), list[str]()
        first = openai_agents_handler(shop(ScriptedModel([refund_call("o-1"), refund_call("o-2", "call_2")]), refunded), store=store)
        result, _ = await run_task(first, "Refund both")
        assert asked(result) == {"order": "o-1"}
        assert result.usage == {"input_tokens": 3, "output_tokens": 2}
        assert asked((await run_task(first, "Refund both"))[0]) == {"order": "o-1"}  # the same dispatch again

        model = ScriptedModel("One of two.")
        second = openai_agents_handler(shop(model, refunded), store=store)
        yes = answered("Call refund?", kind="approval")
        no = answered("Call refund?", kind="approval", resolution="rejected", comment="too late")
        assert asked((await run_task(second, "Refund both", answers=[yes]))[0]) == {"order": "o-2"}
        assert refunded == []
        result, pieces = await run_task(second, "Refund both", answers=[yes, no])
        assert "".join(pieces) == "One of two."
        assert result == Completed(usage={"input_tokens": 3, "output_tokens": 2})
        assert refunded == ["o-1"]
        outputs = [item["output"] for item in model.inputs[0] if item.get("type") == "function_call_output"]
        assert outputs == ["o-1 is refunded", "too late"]
        assert store.runs == {}

    asyncio.run(run())


def test_the_store_of_the_package_keeps_a_run_over_a_restart(tmp_path: Path) -> None:
    async def run() -> None:
        file, refunded = tmp_path / "runs.db", list[str]()
        first = openai_agents_handler(shop(ScriptedModel(refund_call("o-1")), refunded), store=SQLiteRuns(file))
        assert asked((await run_task(first, "Refund"))[0]) == {"order": "o-1"}
        again = SQLiteRuns(file)
        await again.save("msg_old", "{}", datetime(2020, 1, 1, tzinfo=UTC))
        second = openai_agents_handler(shop(ScriptedModel("Done."), refunded), store=again)
        _, pieces = await run_task(second, "Refund", answers=[answered("Call refund?", kind="approval")])
        assert ("".join(pieces), refunded) == ("Done.", ["o-1"])
        assert await again.load("msg_1") is None
        await again.save("msg_2", "{}", datetime(2999, 1, 1, tzinfo=UTC))
        assert (await again.load("msg_old"), await again.load("msg_2")) == (None, "{}")

    asyncio.run(run())


def test_usage_names_the_model() -> None:
    named = ScriptedModel("Hello")
    named.model = "scripted-1"  # type: ignore[attr-defined]
    result, _ = asyncio.run(run_task(openai_agents_handler(agents.Agent("assistant", model=named)), "Hi"))
    assert result == Completed(usage={"input_tokens": 3, "output_tokens": 2, "model": "scripted-1"})
    assert _model_name(None, agents.Agent("assistant")) == agents.models.get_default_model()
    assert _model_name(agents.RunConfig(model="gpt-x"), agents.Agent("assistant")) == "gpt-x"


def test_a_later_approval_is_not_answered_by_an_earlier_one() -> None:
    async def run() -> None:
        store, refunded = MemoryStore(), list[str]()
        model = ScriptedModel(refund_call("o-1"), refund_call("o-2", "call_2"), "Both.")
        handler = openai_agents_handler(shop(model, refunded), store=store)
        yes = answered("Call refund?", kind="approval")
        assert asked((await run_task(handler, "Refund"))[0]) == {"order": "o-1"}
        for _ in range(2):
            assert asked((await run_task(handler, "Refund", answers=[yes]))[0]) == {"order": "o-2"}
        assert refunded == ["o-1"]
        result, pieces = await run_task(handler, "Refund", answers=[yes, yes])
        assert (result, "".join(pieces)) == (Completed(usage={"input_tokens": 3, "output_tokens": 2}), "Both.")
        assert refunded == ["o-1", "o-2"]

    asyncio.run(run())


def test_a_conversation_has_the_message_once_after_an_approval() -> None:
    async def run() -> None:
        conversation = SQLiteSession("ses_1")
        agent = shop(ScriptedModel(refund_call("o-1"), "Done."), [])
        handler = openai_agents_handler(agent, session=lambda id: conversation, store=MemoryStore())
        await run_task(handler, "Refund")
        await run_task(handler, "Refund", answers=[answered("Call refund?", kind="approval")])
        kept = [str(item.get("content") or item.get("type")) for item in await conversation.get_items()]
        assert kept[:3] == ["Refund", "function_call", "function_call_output"]
        assert "Done." in kept[3]
        assert len(kept) == 4
        conversation.close()

    asyncio.run(run())


def test_without_a_store_a_call_that_needs_approval_fails_and_says_what_is_missing() -> None:
    handler = openai_agents_handler(shop(ScriptedModel(refund_call("o-1")), []))
    with pytest.raises(RuntimeError, match="no store"):
        asyncio.run(run_task(handler, "Refund"))


def test_the_input_may_be_read_from_elsewhere() -> None:
    async def with_history(task: AgentTask) -> list[Any]:
        return [{"role": "user", "content": "Earlier"}, {"role": "user", "content": task.text}]

    model = ScriptedModel("Yes")
    asyncio.run(run_task(openai_agents_handler(agents.Agent("assistant", model=model), make_input=with_history), "Now"))
    assert [item["content"] for item in model.inputs[0]] == ["Earlier", "Now"]


def test_a_canceled_task_cancels_the_model() -> None:
    async def run() -> None:
        begun, canceled = asyncio.Event(), asyncio.Event()

        class Endless(ScriptedModel):
            async def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[TResponseStreamEvent]:
                begun.set()
                try:
                    await asyncio.Event().wait()
                finally:
                    canceled.set()
                yield ResponseTextDeltaEvent.model_construct()

        working = asyncio.create_task(run_task(openai_agents_handler(agents.Agent("assistant", model=Endless())), "Hi"))
        await begun.wait()
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await working
        async with asyncio.timeout(10):
            await canceled.wait()

    asyncio.run(run())


def test_a_store_works_in_the_threads_of_handlers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs, names = SQLiteRuns(tmp_path / "runs.db"), []
    execute = runs._execute

    def noted(*statement: str) -> Any:
        names.append(threading.current_thread().name)
        return execute(*statement)

    monkeypatch.setattr(runs, "_execute", noted)

    async def use() -> None:
        await runs.save("msg_1", "run", datetime.now(UTC) + timedelta(hours=1))
        assert await runs.load("msg_1") == "run"
        await runs.delete("msg_1")

    asyncio.run(use())
    assert all(name.startswith("agent-fleet-handler") for name in names)
