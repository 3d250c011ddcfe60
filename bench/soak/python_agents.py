"""Many connected agents on the Python SDK in one process, with a journal of what they started: what agents.mjs is on the other SDK.

Takes the commands of the benchmark from Node's IPC channel: lines of JSON on the socket NODE_CHANNEL_FD.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import socket
from collections.abc import AsyncIterator
from typing import Any

from agent_fleet import Agent, AgentTask, Connected, ToolError

CHUNK_SECONDS = 0.1
REPEAT_SECONDS = 0.2
"""Pause before a tool call that was cut off is repeated."""
LEAVE_GRACE_SECONDS = 30
"""Limit for what an agent still works on when it leaves; longer than any work takes."""
LINE_BYTES_MAX = 1 << 20
COLLECT_EVERY_SECONDS = 10


async def use_tool(task: AgentTask, agent_type: str) -> Any:
    """Calls the tool of another agent until an answer comes: a call ends with the connection of either agent."""
    attempt = 1
    while True:
        try:
            return await task.call_tool("echo", {"call": f"{task.message_id}/{attempt}"}, target={"agent_type": agent_type})
        except ToolError as error:
            if not error.retryable and error.code != "AGENT_DISCONNECTED":
                raise
        await asyncio.sleep(REPEAT_SECONDS)
        attempt += 1


async def answer(task: AgentTask) -> AsyncIterator[str]:
    """The text of a message is `KIND ARGUMENT NAME`, see `load.mjs`; NAME ends the answer."""
    kind, argument, name = task.text.split(" ")
    if kind == "slow":
        await asyncio.sleep(int(argument) / 1000)
    if kind == "stream":
        for chunk in range(int(argument)):
            yield f"{chunk} "
            await asyncio.sleep(CHUNK_SECONDS)
    if kind == "ask":
        given = await task.ask("confirmation", title="Sure?", prompt="May it go on?")
        yield f"{given.resolution} "
    if kind == "tool":
        yield f"{await use_tool(task, argument)} "
    yield name


class Fleet:
    """The agents of this process, and what they did since the benchmark last read the journal."""

    def __init__(self, access: list[dict[str, str]]) -> None:
        self._access = access
        self._agents: dict[str, tuple[Agent, dict[str, Any]]] = {}
        """The agents that are not away, by their instance ids."""
        self._started: list[str] = []
        """Messages and tool calls."""
        self._connected: list[dict[str, Any]] = []

    async def join(self, instances: list[dict[str, Any]]) -> int:
        await asyncio.gather(*map(self._join, instances))
        return len(self._agents)

    async def journal(self, _: None) -> dict[str, Any]:
        facts = {"started": self._started, "connected": self._connected}
        self._started, self._connected = [], []
        return facts

    async def leave_and_return(self, options: dict[str, float]) -> str:
        """An agent finishes its work, leaves, and comes back as a new one of the same name. Gives its id.

        Any agent that is not away may be chosen.
        """
        id = list(self._agents)[int(options["chosen"] * len(self._agents))]
        agent, instance = self._agents.pop(id)
        await agent.close(LEAVE_GRACE_SECONDS)
        await asyncio.sleep(options["awayMs"] / 1000)
        await self._join(instance)
        return id

    async def _join(self, instance: dict[str, Any]) -> None:
        agent = self._new_agent(instance)
        await agent.connect()
        self._agents[instance["instanceId"]] = (agent, instance)

    def _new_agent(self, instance: dict[str, Any]) -> Agent:
        node = instance["node"]
        access = self._access[node]
        agent = Agent(
            instance["type"],
            instance_id=instance["instanceId"],
            url=access["url"],
            client_id=access["clientId"],
            client_secret=access["clientSecret"],
            ca=access["ca"],
            max_concurrent_sessions=0,
            drain_on_signals=False,
        )

        @agent.on_message
        def start(task: AgentTask) -> AsyncIterator[str]:
            self._started.append(task.message_id)
            return answer(task)

        @agent.tool
        async def echo(call: str) -> str:
            self._started.append(call)
            return "echoed"

        def connected(event: Connected) -> None:
            self._connected.append({"node": node, "meshId": event.mesh_id, "resumed": event.resumed})

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
        fleet = Fleet(options["access"])
        commands.update(join=fleet.join, journal=fleet.journal, leaveAndReturn=fleet.leave_and_return)

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
