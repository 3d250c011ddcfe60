"""Where and with what the next connection is made."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from ..errors import AgentError
from .mesh_connection import ConnectionEnd
from .registration import Registration
from .resume_address import ResumeAddress

_RESUME_TIMEOUT_MS = 5_000
"""Time limit for an attempt to resume at the node's own address, so that the resume window is not spent on one that does not answer."""


@dataclass(frozen=True)
class ConnectTarget:
    """The address of one connection."""

    url: str
    """`wss` address with the `instance_id`."""
    token: str
    handshake_timeout_ms: float
    """Time limit for the handshake, and again for `welcome`."""
    is_own_address: bool
    """It is the own address of the node that holds the agent's work."""


class ConnectTargets:
    """Chooses the address of each connection: first that of the node that holds the agent's work, then the one of the registration."""

    def __init__(self, registration: Registration, handshake_timeout_ms: float, log: logging.Logger) -> None:
        self._registration = registration
        self._handshake_timeout_ms = handshake_timeout_ms
        self._log = log
        self._resume_address = ResumeAddress()
        self._preparing: asyncio.Task[ConnectTarget] | None = None

    async def next(self, on_slow: Callable[[AgentError], None]) -> ConnectTarget | None:
        """None where `give_up` was called meanwhile. Raises what `Registration.connect_target` raises."""
        preparing = self._preparing = asyncio.create_task(self._next(on_slow))
        try:
            await asyncio.wait({preparing})  # the end of this task is not that of the preparation, and is raised
            return None if preparing.cancelled() else preparing.result()
        finally:
            preparing.cancel()
            self._preparing = None

    def give_up(self) -> None:
        """Ends the preparation of the next connection, if one is under way."""
        if self._preparing:
            self._preparing.cancel()

    async def _next(self, on_slow: Callable[[AgentError], None]) -> ConnectTarget:
        url, token = await self._registration.connect_target(on_slow)
        own_address = self._resume_address.next()
        if own_address is None:
            return ConnectTarget(url, token, self._handshake_timeout_ms, False)
        return ConnectTarget(own_address, token, min(self._handshake_timeout_ms, _RESUME_TIMEOUT_MS), True)

    def welcomed(self, resume_url: object, connected_to: str) -> None:
        """`resume_url` is that of the newest `welcome`, `connected_to` the address of its connection."""
        self._resume_address.set(resume_url, connected_to)

    def leave_node(self) -> None:
        """The node keeps nothing for the agent, or stops."""
        self._resume_address.forget()

    def not_resumed(self, end: ConnectionEnd, token: str) -> None:
        """An attempt at the node's own address brought no `welcome`: the usual address follows without a wait."""
        self._resume_address.failed(end)
        if end.http_status == 401:
            self._registration.connection_ended(end, token)
        text = "the node does not answer at its own address (http_status=%s): %s"
        self._log.debug(text, end.http_status, end.message)
