"""Handlers and tools without `async`."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError
from typing import Any

import pytest

from agent_fleet import Agent, AgentTask, ToolCall
from agent_fleet.handlers.sync_task import LoopCalls
from agent_fleet.testing import run, run_tool_async


def test_a_plain_handler_streams_calls_tools_and_asks() -> None:
    agent = Agent("a")

    @agent.on_message
    def answer(task: AgentTask) -> None:
        task.sync.status("looking")
        found = task.sync.call_tool("price", {"item": task.text}, returns=int)
        sure = task.sync.ask("confirmation", title="Sure?", prompt=f"{found}?")
        task.sync.stream("It is ")
        task.sync.stream(f"{found}." if sure.accepted else "nothing.")

    found = run(agent, "tea", tools={"price": lambda item: 250}, answers=[True])
    assert (found.text, found.pieces) == ("It is 250.", ["It is ", "250."])
    assert found.statuses == ["looking", "looking"]  # the handler ran twice
    assert [question["prompt"] for question in found.questions] == ["250?"]


def test_a_plain_generator_calls_tools_between_its_pieces() -> None:
    agent = Agent("a")

    @agent.on_message
    def answer(task: AgentTask) -> Iterator[str]:
        yield "It is "
        yield str(task.sync.call_tool("price"))

    assert run(agent, tools={"price": 250}).text == "It is 250"


def test_a_canceled_handler_gets_nowhere() -> None:
    agent = Agent("a")
    ended, seen = threading.Event(), []

    async def forever(**arguments: Any) -> None:
        await asyncio.Event().wait()

    @agent.on_message
    def answer(task: AgentTask) -> None:
        for _ in range(2):
            try:
                task.sync.call_tool("slow")
            except CancelledError as error:
                seen.append(type(error))
        ended.set()

    found = run(agent, tools={"slow": forever}, deadline_ms=50)
    assert found.error is not None
    assert found.error.code == "DEADLINE_EXCEEDED"
    status = found.task["status"]
    assert status["message"]["taskId"] == found.task["id"]
    assert status["timestamp"].endswith("Z")  # as from the platform
    assert ended.wait(10)
    assert seen == [CancelledError, CancelledError]


def test_a_canceled_tool_gets_nowhere() -> None:
    agent = Agent("a")
    waiting, ended, seen = threading.Event(), threading.Event(), []

    @agent.tool
    def relay(call: ToolCall) -> None:
        try:
            call.sync.call_tool("slow")
        except CancelledError as error:
            seen.append(type(error))
        ended.set()

    async def slow() -> None:
        waiting.set()
        await asyncio.Event().wait()

    async def cancel() -> None:
        calling = asyncio.create_task(run_tool_async(agent, "relay", tools={"slow": slow}))
        await asyncio.to_thread(waiting.wait, 10)
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling

    asyncio.run(cancel())
    assert ended.wait(10)
    assert seen == [CancelledError]


def test_a_call_that_begins_during_the_cancelation_ends() -> None:
    async def cancel() -> None:
        calls = LoopCalls()

        class CanceledWhileAdding(set[Any]):
            def add(self, call: Any) -> None:
                calls.cancel()
                super().add(call)

        calls._running = CanceledWhileAdding()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(asyncio.to_thread(calls.wait, asyncio.Event().wait()), 10)

    asyncio.run(cancel())


def test_sync_in_an_async_handler_says_what_to_write() -> None:
    agent = Agent("a")

    @agent.on_message
    async def answer(task: AgentTask) -> None:
        task.sync.stream("x")

    assert "await the method of the task itself" in str(run(agent).error)


def test_a_cell_of_a_notebook_runs_again(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = Agent("a")

    def cell(version: int) -> None:
        @agent.on_message
        async def answer(task: AgentTask) -> str:
            return f"{version}"

        @agent.skill(description=f"{version}", idempotent=True)
        async def sell(task: AgentTask) -> str:
            return f"sold {version}"

        @agent.tool
        async def price(call: ToolCall) -> int:
            return version

    cell(1)
    with pytest.raises(ValueError, match="already set"):
        cell(2)
    monkeypatch.setattr("sys.ps1", ">>>", raising=False)
    cell(3)
    assert [run(agent).text, run(agent, skill_id="sell").text] == ["3", "sold 3"]
    assert [skill["description"] for skill in agent._handlers.skills] == ["3"]
    assert (agent._handlers.idempotent_skills, [tool["name"] for tool in agent._tools.tools]) == (["sell"], ["price"])


def test_a_cell_that_connects_runs_again(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = []

    class Running:
        def __init__(self, name: str) -> None:
            self.name = name

        async def close(self, grace_seconds: float) -> None:
            closed.append(self.name)

    async def cells() -> None:
        for name in ("first", "second"):
            agent = Agent("notebook")  # each run of the cell makes an agent of its own
            await agent._replace_earlier()
            agent._running = Running(name)  # type: ignore[assignment]
        await agent._replace_earlier()

    asyncio.run(cells())
    assert closed == ["first", "second"]


def test_run_in_a_notebook_says_what_to_write() -> None:
    async def cell() -> None:
        with pytest.raises(RuntimeError, match=r"await agent\.connect"):
            Agent("notebook").run()

    asyncio.run(cell())
