"""The time that a task has left."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class TaskDeadline:
    """Stands still while a tool call of the task waits for a human, as it does on the platform."""

    def __init__(self, deadline_ms: float, on_passed: Callable[[], None]) -> None:
        self._on_passed = on_passed
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(deadline_ms / 1000, on_passed)
        self._pauses = 0
        self._left = 0.0
        """Seconds that were left when the first of the pauses began."""
        self._is_stopped = False

    @property
    def left_ms(self) -> float:
        """Milliseconds that are left."""
        left = self._left if self._pauses > 0 else self._timer.when() - self._loop.time()
        return max(0.0, left * 1000)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stops the clock."""
        if self._pauses == 0:
            self._left = max(0.001, self._timer.when() - self._loop.time())
        self._pauses += 1
        self._timer.cancel()
        try:
            yield
        finally:
            self._pauses -= 1
            if self._pauses == 0 and not self._is_stopped:
                self._timer = self._loop.call_later(self._left, self._on_passed)

    def stop(self) -> None:
        self._is_stopped = True
        self._timer.cancel()
