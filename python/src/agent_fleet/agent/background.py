"""Work beside the agent."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from typing import Any


class Background:
    """Runs what nobody waits for; what it raises is logged."""

    def __init__(self, name: str, log: logging.Logger) -> None:
        """`name` stands before each line of the log."""
        self._name = name
        self._log = log
        self._running: set[asyncio.Future[Any]] = set()

    def spawn(self, work: Awaitable[Any]) -> None:
        task = asyncio.ensure_future(work)
        self._running.add(task)  # the loop keeps only a weak reference
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Future[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()):
            self._log.error("%s: on_error raised", self._name, exc_info=error)
