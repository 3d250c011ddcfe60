"""Listeners to the events of a connection."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Literal

from ..errors import AgentError
from .background import Background
from .error_reporter import ErrorReporter
from .options import Connected, Disconnected

EventName = Literal["connected", "disconnected"]
Listener = Callable[[Any], Any]


class Listeners:
    """Calls listeners, plain and asynchronous ones."""

    def __init__(self, background: Background) -> None:
        self._background = background
        self._listeners: dict[EventName, list[Listener]] = {"connected": [], "disconnected": []}

    def add(self, event: EventName, listener: Listener) -> None:
        self._listeners[event].append(listener)

    def emit(self, event: Connected | Disconnected, errors: ErrorReporter) -> None:
        """What a listener raises is reported to `errors`."""
        name: EventName = "connected" if isinstance(event, Connected) else "disconnected"
        for listener in self._listeners[name]:
            self._background.spawn(_call(name, listener, event, errors))


async def _call(name: str, listener: Listener, event: object, errors: ErrorReporter) -> None:
    try:
        made = listener(event)
        if inspect.isawaitable(made):
            await made
    except Exception as error:
        errors.warn(AgentError("LISTENER_FAILED", f"a listener of '{name}' raised: {error}"), name)
