"""An agent on the Python SDK for tests on a platform."""

import asyncio
import logging
from collections.abc import AsyncIterator

from agent_fleet import Agent, AgentTask

logging.basicConfig(level=logging.INFO)
agent = Agent("python", instance_id="python-1", description="An agent of tests")


@agent.on_message
def answer(task: AgentTask) -> str:
    return f"You said: {task.text}"


@agent.skill
async def count(task: AgentTask) -> AsyncIterator[str]:
    try:
        for number in range(1, int(task.text) + 1):
            yield f"{number} "
            await asyncio.sleep(0.2)
    except asyncio.CancelledError:
        print("canceled")
        raise


@agent.skill
async def sum(task: AgentTask) -> str:
    numbers = [int(number) for number in task.text.split()]
    return str(await task.call_tool("total", {"numbers": numbers}, target={"agent_type": "clerk"}))


@agent.skill
async def order(task: AgentTask) -> str:
    sure = await task.ask("confirmation", title="Order?", prompt=f"Order {task.text}?")
    if not sure.accepted:
        return "Nothing was ordered."
    wrap = await task.ask("confirmation", title="Wrap?", prompt="Wrap it?")
    return f"Ordered {task.text}, {'wrapped' if wrap.accepted else 'not wrapped'}."


@agent.tool
async def longest(words: list[str]) -> str:
    """The longest of some words"""
    return max(words, key=len)


agent.run()
