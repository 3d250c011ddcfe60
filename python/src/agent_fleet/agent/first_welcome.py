"""The wait of an agent that connects."""

from __future__ import annotations

import asyncio

from ..connected.connected_agent import ConnectedAgent
from ..errors import AgentStoppedError
from .error_reporter import ErrorReporter


async def first_welcome(running: ConnectedAgent, timeout_ms: float | None, errors: ErrorReporter) -> None:
    """Returns at the first `welcome`.

    Raises AgentStoppedError `CONNECT_TIMEOUT` after `timeout_ms` (None: no limit), with the last problem in its text, or the one that stops
    the agent before. Where connecting is canceled, the agent stops.
    """
    try:
        async with asyncio.timeout(None if timeout_ms is None else timeout_ms / 1000):
            await running.ready()
    except TimeoutError:
        detail = f": {errors.last.message}" if errors.last else ""
        stopped = AgentStoppedError("CONNECT_TIMEOUT", f"not connected within {timeout_ms} ms{detail}")
        running.stop(stopped)
        raise stopped from None
    except asyncio.CancelledError:
        running.stop(AgentStoppedError("CANCELED", "connecting was canceled"))
        raise
