"""Pings of a connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ..limits import MISSED_PINGS_MAX


class KeepAlive:
    """Sends `ping` frames. Calls `dead` when three in a row are unanswered, after about 90 s."""

    def __init__(self, interval_ms: float, *, ping: Callable[[], None], dead: Callable[[], None]) -> None:
        self._interval = interval_ms / 1000
        self._send_ping = ping
        self._dead = dead
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(self._interval, self._ping)
        self._dead_timer: asyncio.TimerHandle | None = None
        """Runs from the third unanswered ping on."""
        self._unanswered = 0

    def frame_received(self) -> None:
        """Any received frame counts as an answer."""
        self._unanswered = 0
        if self._dead_timer:
            self._dead_timer.cancel()

    def stop(self) -> None:
        self._timer.cancel()
        if self._dead_timer:
            self._dead_timer.cancel()

    def _ping(self) -> None:
        self._timer = self._loop.call_later(self._interval, self._ping)
        self._send_ping()
        self._unanswered += 1
        if self._unanswered == MISSED_PINGS_MAX:
            self._dead_timer = self._loop.call_later(self._interval / MISSED_PINGS_MAX, self._dead)
