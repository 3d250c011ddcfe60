"""The agent of the load balancer's tests on the Python SDK: what counting-agents.ts has on the TypeScript SDK.

Writes its connections to standard output, one JSON object a line; a line on standard input says that it has counted enough.
"""

import asyncio
import json
import logging
import os
import sys

from agent_fleet import Agent, AgentTask, Connected, Disconnected

enough = asyncio.Event()
agent = Agent(os.environ["AGENT_TYPE"], instance_id=f"{os.environ['AGENT_TYPE']}-1", drain_on_signals=False)


@agent.on_message
async def count(task: AgentTask) -> None:
    number = 0
    while not enough.is_set():
        await task.stream(f"{number} ")
        number += 1
        await asyncio.sleep(0.02)


def connected(event: Connected) -> None:
    print(json.dumps({"meshId": event.mesh_id, "resumed": event.resumed}), flush=True)


def disconnected(event: Disconnected) -> None:
    print("{}", flush=True)


async def main() -> None:
    agent.on("connected", connected)
    agent.on("disconnected", disconnected)
    await agent.connect()
    while await asyncio.to_thread(sys.stdin.readline):
        enough.set()


logging.getLogger("agent_fleet").setLevel(logging.CRITICAL)  # the tests cut its connections
asyncio.run(main())
