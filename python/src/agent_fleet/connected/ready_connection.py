"""A connection after its `welcome`."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable
from typing import Any

from ..limits import CLOSE_GRACE_SECONDS_DEFAULT, CLOSE_GRACE_SECONDS_MAX, CLOSE_NORMAL
from .dispatch_runs import DispatchRuns
from .frames import Frame
from .mesh_connection import MeshConnection
from .token_renewal import TokenRenewal
from .tool_calls import ConnectedToolCalls

_DRAIN_MARGIN_SECONDS = 5.0
"""Extra time for the mesh to close a drained connection."""
_STABLE_SECONDS = 60.0
"""A connection that has lasted this long counts as stable."""


class ReadyConnection:
    """Sends heartbeats, renews the token, and routes received frames."""

    def __init__(
        self,
        connection: MeshConnection,
        welcome: dict[str, Any],
        *,
        runs: DispatchRuns,
        tools: ConnectedToolCalls,
        renewal: TokenRenewal,
        heartbeat: Callable[[], dict[str, Any]],
        is_closing: Callable[[], bool],
        on_stable: Callable[[], None],
        on_mesh_drain: Callable[[float], None],
        log: logging.Logger,
    ) -> None:
        self.is_mesh_draining = False
        """Whether the mesh announced its shutdown."""
        self.renewal = renewal
        self._connection = connection
        self._runs = runs
        self._tools = tools
        self._heartbeat_payload = heartbeat
        self._is_closing = is_closing
        self._on_mesh_drain = on_mesh_drain
        self._log = log
        self._loop = asyncio.get_running_loop()
        tools.attach(connection, welcome["resumed"])
        runs.connected(connection, welcome)
        self._timers = [self._loop.call_later(_STABLE_SECONDS, on_stable)]
        self._heartbeats = asyncio.create_task(self._send_heartbeats(welcome["heartbeat_interval_ms"] / 1000))
        self.heartbeat()

    def heartbeat(self) -> None:
        self._connection.send("heartbeat", self._heartbeat_payload())

    def request_close(self, grace_seconds: float) -> None:
        """Asks for no new work. The mesh closes the socket when nothing is in flight, at the latest after the grace period."""
        grace = min(max(0, math.ceil(grace_seconds)), CLOSE_GRACE_SECONDS_MAX)
        self._connection.send("close_request", {"grace_seconds": grace, "reason": "agent stops"})

    def close(self) -> None:
        self._connection.close(CLOSE_NORMAL)

    def lost(self) -> None:
        """Called when the socket is closed. Handlers keep running, and their output is buffered."""
        self.renewal.stop()
        self._heartbeats.cancel()
        for timer in self._timers:
            timer.cancel()
        self._runs.disconnected()
        self._tools.attach(None)

    def receive(self, frame: Frame) -> None:
        if self.renewal.receive(frame):
            return
        match frame.type:
            case "dispatch":
                self._runs.accept(frame)
            case "tool_call":
                self._tools.receive_call(frame, self._is_closing() or self.is_mesh_draining)
            case "tool_result":
                self._tools.receive_result(frame)
            case "error":
                code, message = str(frame.payload.get("code")), str(frame.payload.get("message", ""))
                self._runs.ended_by_mesh(frame.in_reply_to or "", code)
                self._tools.receive_error(frame.in_reply_to or "", code, message)
            case "close_request":
                self._drain(frame)
            case other:
                self._log.debug("frame ignored (type=%s)", other)

    async def _send_heartbeats(self, interval_seconds: float) -> None:
        while True:
            await asyncio.sleep(interval_seconds)
            self.heartbeat()

    def _drain(self, frame: Frame) -> None:
        """The mesh shuts down. It closes the socket itself, at the latest after the grace period."""
        given = frame.payload.get("grace_seconds")
        grace_seconds = given if isinstance(given, (int, float)) else CLOSE_GRACE_SECONDS_DEFAULT
        self.is_mesh_draining = True
        self._on_mesh_drain(grace_seconds)
        self._timers.append(self._loop.call_later(grace_seconds + _DRAIN_MARGIN_SECONDS, self._connection.cut))
