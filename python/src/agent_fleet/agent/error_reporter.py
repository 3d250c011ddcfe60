"""Reports of trouble."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from ..errors import AgentError
from ..log import printable

_KINDS_MAX = 64
"""Limit on the kinds that are remembered: a foreign server may answer with any number of codes."""

OnError = Callable[[AgentError], Any]


class ErrorReporter:
    """Reports errors to the log and to `on_error`: each kind once, until the connection has been stable for a while."""

    def __init__(self, name: str, on_error: OnError | None, spawn: Callable[[Awaitable[Any]], None], log: logging.Logger) -> None:
        """`name` stands before each line of the log. `spawn` runs what an asynchronous `on_error` gives."""
        self.last: AgentError | None = None
        """The latest error, whether it was reported or not."""
        self._name = name
        self._on_error = on_error
        self._spawn = spawn
        self._log = log
        self._reported: set[str] = set()

    def warn(self, error: AgentError, scope: str = "", text: str = "agent error") -> bool:
        """Reports a temporary error. Errors with the same code and scope are one kind; gives whether it was the first, and so was logged.

        `text` says what it means for the agent.
        """
        self.last = error
        kind = f"{error.code} {scope}"
        if kind in self._reported or len(self._reported) >= _KINDS_MAX:
            return False
        self._reported.add(kind)
        self._log.warning("%s: %s: %s (code=%s)", self._name, text, printable(error.message), printable(error.code))
        self._notify(error)
        return True

    def stopped(self, error: AgentError) -> None:
        """Reports the error that stopped the agent."""
        self._log.error("%s: agent stopped: %s (code=%s)", self._name, printable(error.message), printable(error.code))
        self._notify(error)

    def ended(self, closed: asyncio.Task[None]) -> None:
        """Reports the end of an agent, where an error has ended it."""
        error = None if closed.cancelled() else closed.exception()
        if isinstance(error, AgentError):
            self.stopped(error)
        elif error:
            self.stopped(AgentError("INTERNAL", str(error) or type(error).__name__))

    def reset(self) -> None:
        """Forgets the reported kinds, so that later errors are reported again."""
        self._reported.clear()

    def _notify(self, error: AgentError) -> None:
        if not self._on_error:
            return
        try:
            made = self._on_error(error)
        except Exception:
            self._log.exception("%s: on_error raised", self._name)
            return
        if inspect.isawaitable(made):
            self._spawn(made)
