"""When a stream opens another connection, and when it gives up."""

from __future__ import annotations

import asyncio
import math
import time

from ...backoff import Backoff
from ...errors import ApiError

_GIVE_UP_SECONDS = 120.0
"""Time without an event or a stable connection after which a stream fails."""
_STABLE_SECONDS = 15.0
"""A connection that was open for longer proves that the platform is up, even without events: it sends a keep-alive every 15 s."""


class Reconnection:
    """The waits between the connections of one stream."""

    def __init__(self) -> None:
        self._backoff = Backoff()
        self._last_seen_at = time.monotonic()
        self._opened_at = math.inf

    def opened(self) -> None:
        """Called when a connection is open."""
        self._opened_at = time.monotonic()

    def seen(self) -> None:
        """Called with each event."""
        self._last_seen_at = time.monotonic()
        self._backoff.reset()

    async def wait(self, failure: Exception) -> None:
        """Waits until another connection is due. Raises `failure`, which ended the last one, after two minutes without the platform."""
        if time.monotonic() - self._opened_at > _STABLE_SECONDS:
            self.seen()
        self._opened_at = math.inf
        if time.monotonic() - self._last_seen_at > _GIVE_UP_SECONDS:
            raise failure
        retry_after = (failure.retry_after_ms if isinstance(failure, ApiError) else None) or 0
        await asyncio.sleep(self._backoff.next(retry_after) / 1000)
