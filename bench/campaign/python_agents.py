"""Agents of a soak on the Python SDK in one process, which may be killed: what agents.mjs is on the other SDK.

They write what they do into a journal, a line for each fact, before they go on.
Takes the commands of the benchmark from Node's IPC channel: lines of JSON on the socket NODE_CHANNEL_FD.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import socket
import time
from typing import Any

from agent_fleet import Agent, AgentTask, Completed, Connected, Failed, InputRequired, Question, ToolError, Usage

CHUNK_SECONDS = 0.1
LEAVE_GRACE_SECONDS = 20
"""Limit for what an agent still works on when it leaves; longer than any work takes."""
LINE_BYTES_MAX = 1 << 20
COLLECT_EVERY_SECONDS = 10
USAGE = Usage(input_tokens=7, output_tokens=3, model="campaign")


def completed(text: str) -> Completed:
    return Completed(parts=[{"kind": "text", "text": text}], usage=USAGE)


class Fleet:
    """The agents of this process, and the journal of what they do."""

    def __init__(self, journal_file: str) -> None:
        self._agents: dict[str, tuple[Agent, dict[str, Any]]] = {}
        self._journal = os.open(journal_file, os.O_APPEND | os.O_CREAT | os.O_WRONLY)

    async def join(self, instances: list[dict[str, Any]]) -> int:
        await asyncio.gather(*map(self._join, instances))
        return len(self._agents)

    async def leave_and_return(self, options: dict[str, Any]) -> None:
        """An agent finishes its work, leaves, and comes back as a new one of the same name."""
        agent, instance = self._agents[options["key"]]
        await agent.close(LEAVE_GRACE_SECONDS)
        await asyncio.sleep(options["awayMs"] / 1000)
        await self._join(instance)

    def _note(self, fact: str, **entry: Any) -> None:
        os.write(self._journal, json.dumps({"fact": fact, **entry, "atMs": time.time() * 1000}).encode() + b"\n")

    async def _join(self, instance: dict[str, Any]) -> None:
        agent = self._new_agent(**instance)
        self._agents[f"{instance['tenant']}/{instance['instanceId']}"] = (agent, instance)
        await agent.connect()

    async def _use_tool(self, task: AgentTask, name: str) -> Completed | Failed:
        """A tool that fails says why; whether it may fail is judged later."""
        try:
            await task.call_tool("tool", {"message_id": task.message_id}, target={"agent_type": "tools"})
        except ToolError as error:
            self._note("tool failed", message=task.message_id, code=error.code)
            return Failed(code="TOOL_FAILED", message=str(error))
        return completed(f"tool done for {name}")

    async def _answer(self, task: AgentTask) -> Completed | Failed | InputRequired:
        kind, amount, name = task.text.split(" ")
        if kind == "stream":
            for chunk in range(int(amount)):
                await task.stream(f"{chunk} ")
                await asyncio.sleep(CHUNK_SECONDS)
            await task.stream(name)
            return Completed(usage=USAGE)
        if kind == "slow":
            await asyncio.sleep(int(amount) / 1000)
        if kind == "ask":
            if task.resolution is None:
                return InputRequired(question=Question(kind="confirmation", title=name, prompt="May it go on?"), usage=USAGE)
            return completed(f"{task.resolution.resolution} {name}")
        if kind == "tool":
            return await self._use_tool(task, name)
        return completed(name)

    def _new_agent(self, *, access: dict[str, str], node: int, tenant: str, type: str, instanceId: str, sdk: str) -> Agent:
        agent = Agent(
            type,
            instance_id=instanceId,
            url=access["url"],
            client_id=access["clientId"],
            client_secret=access["clientSecret"],
            ca=access["ca"],
            max_concurrent_sessions=0,
            drain_on_signals=False,
        )
        if type == "tools":

            @agent.tool
            async def tool(message_id: str) -> str:
                self._note("tool", tool="tool", tenant=tenant, message=message_id, instance=instanceId)
                return "done"

        else:

            @agent.on_message
            async def start(task: AgentTask) -> Completed | Failed | InputRequired:
                self._note("started", tenant=tenant, message=task.message_id, dispatch=task.dispatch_id, instance=instanceId)
                return await self._answer(task)

        def connected(event: Connected) -> None:
            self._note("connected", node=node, meshId=event.mesh_id, instance=instanceId, resumed=event.resumed)

        agent.on("connected", connected)
        return agent


async def collect_garbage() -> None:
    """So that cycles which the collector has not come to yet do not count as growth."""
    while True:
        await asyncio.sleep(COLLECT_EVERY_SECONDS)
        gc.collect()


async def main() -> None:
    """Answers commands until the channel closes."""
    channel = socket.socket(fileno=int(os.environ["NODE_CHANNEL_FD"]))
    reader, writer = await asyncio.open_connection(sock=channel, limit=LINE_BYTES_MAX)
    commands: dict[str, Any] = {}
    running = {asyncio.create_task(collect_garbage())}

    async def start(options: dict[str, Any]) -> None:
        fleet = Fleet(options["journalFile"])
        commands.update(join=fleet.join, leaveAndReturn=fleet.leave_and_return)

    async def run(id: int, command: str, options: Any) -> None:
        answer: dict[str, Any] = {"id": id}
        try:
            answer["result"] = await commands[command](options)
        except Exception as error:
            answer["error"] = repr(error)
        writer.write(json.dumps(answer).encode() + b"\n")
        await writer.drain()

    commands["start"] = start
    while line := await reader.readline():
        asked = json.loads(line)
        task = asyncio.create_task(run(asked["id"], asked["command"], asked.get("options")))
        running.add(task)  # the loop keeps only a weak reference
        task.add_done_callback(running.discard)
    os._exit(0)  # the agents are not to close: the benchmark is over


logging.getLogger("agent_fleet").setLevel(logging.CRITICAL)  # the soak cuts connections all the time
asyncio.run(main())
