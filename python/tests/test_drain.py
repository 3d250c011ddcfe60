"""How long an agent may take to leave."""

import asyncio
from typing import Any

import pytest

from agent_fleet import Agent


def test_an_agent_drains_for_as_long_as_it_says() -> None:
    graces: list[float] = []

    class Running:
        async def close(self, grace_seconds: float) -> None:
            graces.append(grace_seconds)

    async def close(**options: Any) -> None:
        agent = Agent("a", **options)
        agent._running = Running()  # type: ignore[assignment]
        await agent.close()
        await agent.close(5)

    asyncio.run(close())
    asyncio.run(close(drain_grace_seconds=600))
    assert graces == [30, 5, 600, 5]


def test_a_grace_that_the_mesh_would_not_take_is_refused() -> None:
    with pytest.raises(ValueError, match="from 0 to 3600, not 4000"):
        Agent("a", drain_grace_seconds=4000)
