"""Waiting until nothing is left to do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Idle:
    """Lets others wait for a condition; `check` is called after every change that may fulfil it."""

    def __init__(self, is_idle: Callable[[], bool]) -> None:
        self._is_idle = is_idle
        self._waiting: list[asyncio.Future[None]] = []

    async def wait(self) -> None:
        if self._is_idle():
            return
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        await waiter

    def check(self) -> None:
        if not self._waiting or not self._is_idle():
            return
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)
        self._waiting.clear()
