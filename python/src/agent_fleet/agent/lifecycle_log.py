"""What the log says of where an agent stands."""

from __future__ import annotations

import logging

from ..errors import AgentError
from ..log import announce, printable
from .error_reporter import ErrorReporter


class LifecycleLog:
    """Says that an agent has joined, has no connection and has one again, and drains."""

    def __init__(self, name: str, log: logging.Logger, errors: ErrorReporter) -> None:
        """`name` stands before each line."""
        self.log = log
        self._name = name
        self._errors = errors
        self._has_joined = False
        self._is_loss_logged = False
        """Whether the log says that there is no connection, so that it is to say when there is one."""

    def connected(self, instance_id: str, url: str, resumed: bool) -> None:
        """`url` is the platform's. `resumed`: whether the agent's work goes on."""
        where = f"instance_id={instance_id}, url={url}"
        if not self._has_joined:
            self._announce(f"joined the platform ({where})")
        elif self._is_loss_logged:
            self._announce(f"connected again ({where}, resumed={resumed})")
        self._has_joined = True
        self._is_loss_logged = False

    def retries(self, error: AgentError, scope: str, *, was_connected: bool) -> None:
        """There is no connection, and the agent tries again. `scope` as in `ErrorReporter.warn`."""
        text = f"{'connection lost' if was_connected else 'not connected'}, trying again"
        if self._errors.warn(error, scope, text):
            self._is_loss_logged = True

    def mesh_drains(self, grace_seconds: float) -> None:
        """The mesh node stops, and the agent moves to another."""
        self._announce(f"the mesh is shutting down (grace_seconds={grace_seconds:g})")
        self._is_loss_logged = True

    def cut_off(self, dispatches: int) -> None:
        """The agent stops with so many dispatches that have not ended."""
        text = "stopped before its work was done: what was running is given up"
        self.log.warning("%s: %s (dispatches=%d)", self._name, text, dispatches)

    def draining(self, grace_seconds: float) -> None:
        self._announce(f"draining: takes no new work and finishes what runs (grace_seconds={grace_seconds:g})")

    def _announce(self, text: str) -> None:
        announce(self.log, f"{self._name}: {printable(text)}")
