"""The agent of the wire scenarios on the Python SDK: what agent.ts is on the TypeScript SDK.

Reads commands from standard input, one JSON object a line, and writes events to standard output:
`{"start": {url, ca}}` joins a new agent; `{"close": seconds}` closes it. `{"ended": code}` says that it is over.
"""

import asyncio
import contextlib
import json
import logging
import sys
from collections.abc import AsyncIterator
from typing import Any

from agent_fleet import SILENT_LOG, Agent, AgentStoppedError, AgentTask, Artifact, Completed, Failed, ToolCall, ToolError, text_of


def make_agent(url: str, ca: str) -> Agent:
    agent = Agent(
        "wire",
        url=url,
        ca=ca,
        client_id="cred_1",
        client_secret="secret",
        instance_id="wire-1",
        max_concurrent_tasks=4,
        drain_on_signals=False,
        log=SILENT_LOG,
    )
    released = asyncio.Event()

    @agent.on_message
    async def answer(task: AgentTask) -> Any:
        match task.text.split(" ")[0]:
            case "words":
                return words()
            case "hold":
                await task.stream("one ")
                await released.wait()
                await task.stream("two")
                return None
            case "release":
                released.set()
                return "released"
            case "replace":
                await task.stream("draft")
                return "final"
            case "status":
                await task.status("thinking")
                return "done"
            case "usage":
                artifact: Artifact = {"artifactId": "a1", "name": "sum", "parts": [{"kind": "data", "data": {"sum": 3}}]}
                return Completed(artifacts=[artifact], usage={"input_tokens": 1, "output_tokens": 2, "model": "m"})
            case "bad-usage":
                return Completed(parts=[{"kind": "text", "text": "done"}], usage={"input_tokens": -1, "output_tokens": 2})
            case "order":
                return await order(task)
            case "ask-and-return":
                if task.resolution:
                    return task.resolution.resolution
                return task.ask("confirmation", title="Sure?", prompt="Really?")
            case "call":
                return json.dumps(await task.call_tool("total", {"x": 1}, target={"agent_type": "clerk"}), separators=(",", ":"))
            case "call-or-say":
                try:
                    await task.call_tool("total")
                except ToolError as error:
                    return f"{error.code} {error.retryable}".lower()
                return "it went through"
            case "key":
                return task.idempotency_key
            case "history":
                return ", ".join(f"{turn.role}: {turn.text}" for turn in await task.history(limit=2))
            case "state":
                return await task.state_of("msg_0") or "none"
            case "forward":
                return text_of(await task.client.send("on", agent_type="clerk", metadata={"own": 1}))
            case "fail":
                raise ValueError("no tea")
            case "refuse":
                return Failed(code="NO_TEA", message="sold out", retryable=True)
            case "nul":
                return "a\0b"
            case "nothing":
                return ""
        return f"You said: {task.text}"

    @agent.skill(description="Adds two numbers", idempotent=True)
    async def add(task: AgentTask, x: int, y: int) -> str:
        return str(x + y)

    @agent.tool(description="The sum of two numbers")
    async def sum(x: int, y: int) -> dict[str, int]:
        return {"sum": x + y}

    @agent.tool
    async def refuse(call: ToolCall) -> None:
        raise ToolError(f"not for {call.caller_agent_type}", code="NOT_NOW", retryable=True)

    @agent.tool
    async def relay(call: ToolCall) -> Any:
        return await call.call_tool("total", {"x": 2})

    @agent.tool
    async def wait() -> None:
        await asyncio.Event().wait()

    return agent


async def words() -> AsyncIterator[str]:
    for word in ("one ", "two ", "", "three"):
        yield word


async def order(task: AgentTask) -> str:
    schema = {"type": "object", "properties": {"tea": {"type": "string"}}}
    form = await task.ask("form", title="Order", prompt="Which tea?", schema=schema)
    if not form.accepted:
        return "Nothing was ordered."
    sure = await task.ask("confirmation", title="Sure?", prompt=f"Order {form.data['tea']}?")
    return f"Ordered {form.data['tea']}." if sure.accepted else "Nothing was ordered."


def emit(event: dict[str, Any]) -> None:
    print(json.dumps(event), flush=True)


async def run(agent: Agent) -> None:
    try:
        await agent.serve()
        emit({"ended": None})
    except AgentStoppedError as error:
        emit({"ended": error.code})


async def close(agent: Agent, grace_seconds: float) -> None:
    with contextlib.suppress(AgentStoppedError):  # `ended` has the reason
        await agent.close(grace_seconds)


async def main() -> None:
    agent: Agent | None = None
    running: set[asyncio.Task[None]] = set()
    while line := await asyncio.to_thread(sys.stdin.readline):
        command = json.loads(line)
        if "start" in command:
            agent = make_agent(command["start"]["url"], command["start"]["ca"])
            running.add(asyncio.create_task(run(agent)))
        elif agent:
            running.add(asyncio.create_task(close(agent, command["close"])))


logging.getLogger("agent_fleet").setLevel(logging.CRITICAL)
asyncio.run(main())
