"""SIGTERM and SIGINT."""

from __future__ import annotations

import asyncio
import functools
import signal
import sys
import threading
from collections.abc import Awaitable, Callable
from types import FrameType
from typing import Any

Drain = Callable[[], Awaitable[object]]

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_Handler = Callable[[int, FrameType | None], Any] | int | None

_drains: set[Drain] = set()
"""The drain function of each agent in this process."""
_replaced: dict[signal.Signals, _Handler] = {}
"""The handlers that were there before."""
_draining: set[asyncio.Task[None]] = set()


def drain_on_signals(drain: Drain) -> Callable[[], None]:
    """On the first SIGTERM or SIGINT, drains all agents of the process and then raises the signal again.

    A second signal ends the process at once. A signal for which the program has a handler of its own is left to it, and so are
    all of them outside the main thread and on Windows, where an event loop handles none. Gives a function that removes the agent.
    """
    if not _drains:
        _install()
    _drains.add(drain)

    def remove() -> None:
        _drains.discard(drain)
        if not _drains:
            _restore()

    return remove


async def drained() -> None:
    """Returns when no signal is being handled, so that its drain ends the process and not the program before it."""
    while _draining:
        await asyncio.wait(_draining)


def _install() -> None:
    if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
        return
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        handler = signal.getsignal(number)
        if _is_default(handler):
            _replaced[number] = handler
            loop.add_signal_handler(number, _on_signal, number)


def _is_default(handler: _Handler) -> bool:
    """Also the handler of `asyncio.run`, which cancels the main task on SIGINT."""
    if handler in (signal.SIG_DFL, signal.default_int_handler):
        return True
    return isinstance(handler, functools.partial) and isinstance(getattr(handler.func, "__self__", None), asyncio.Runner)


def _restore() -> None:
    for number, handler in _replaced.items():
        asyncio.get_running_loop().remove_signal_handler(number)
        signal.signal(number, handler)
    _replaced.clear()


def _on_signal(number: signal.Signals) -> None:
    task = asyncio.get_running_loop().create_task(_drain_all(number))
    _draining.add(task)  # the loop keeps only a weak reference
    task.add_done_callback(_draining.discard)


async def _drain_all(number: signal.Signals) -> None:
    drains = list(_drains)
    _drains.clear()  # an agent that starts from now on installs the handlers again
    _restore()
    # `closed` of the agent reports why a drain failed.
    await asyncio.gather(*(drain() for drain in drains), return_exceptions=True)
    signal.raise_signal(number)
