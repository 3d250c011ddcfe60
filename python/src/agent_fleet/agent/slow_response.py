"""Waiting for an answer of the platform."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from ..errors import AgentError
from .describe_error import no_answer

_SLOW_SECONDS = 8.0
"""An answer that takes longer is reported: the address may be wrong."""
SILENCE_MS = 60_000
"""Time limit without any byte from the platform, for a registration or a heartbeat."""

T = TypeVar("T")


async def warn_when_slow(answer: Awaitable[T], url: str, on_slow: Callable[[AgentError], None]) -> T:
    """Waits for an answer, without a limit of its own. `on_slow` is called once when it takes longer than 8 s."""
    timer = asyncio.get_running_loop().call_later(_SLOW_SECONDS, lambda: on_slow(no_answer(url)))
    try:
        return await answer
    finally:
        timer.cancel()
