"""The connection of an agent, over as many sockets as necessary."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Callable
from typing import Any

from ..agent.describe_error import describe_connection_end, describe_error, origin_of
from ..agent.error_reporter import ErrorReporter
from ..agent.lifecycle_log import LifecycleLog
from ..agent.options import Connected, Disconnected, ReportedStatus
from ..agent.stop_reason import stop_reason, stop_reason_of_error
from ..backoff import Backoff
from ..errors import AgentError, ApiError
from ..limits import CLOSE_GOING_AWAY, CLOSE_NORMAL
from .connect_targets import ConnectTarget, ConnectTargets
from .dispatch_runs import DispatchRuns
from .mesh_connection import ConnectionEnd
from .open_connection import OpenConnection
from .ready_connection import ReadyConnection
from .registration import Registration
from .tool_calls import ConnectedToolCalls


class ConnectedAgent:
    """Keeps a WebSocket to the mesh open, and reconnects when it is lost."""

    def __init__(
        self,
        registration: Registration,
        runs: DispatchRuns,
        tools: ConnectedToolCalls,
        errors: ErrorReporter,
        lifecycle: LifecycleLog,
        *,
        capacity: dict[str, int],
        handshake_timeout_ms: float,
        emit: Callable[[Connected | Disconnected], None],
    ) -> None:
        self.tools = tools
        self.lifecycle = lifecycle
        self._registration = registration
        self._runs = runs
        self._errors = errors
        self._capacity = capacity
        self._emit = emit
        self._targets = ConnectTargets(registration, handshake_timeout_ms, lifecycle.log)
        self._backoff = Backoff()
        self._loop = asyncio.get_running_loop()
        self._closing = asyncio.Event()
        """Set by `close()`: no new work. The agent still reconnects for running work and for answers that may not have arrived."""
        self._stopped = asyncio.Event()
        """Set when the agent stops: it does not reconnect any more."""
        self._stop_reason: BaseException | None = None
        self._connection: OpenConnection | None = None
        self._resume_token: str | None = None
        self._status: ReportedStatus = "available"
        self._grace_ends_at = math.inf
        """End of the grace period of `close()`, by the clock of the loop."""
        self._closed_normally = False
        """Whether the mesh closed the last connection with 1000, and so keeps nothing for a resume."""
        self.welcomed: asyncio.Future[None] = self._loop.create_future()
        """Settles at the first `welcome`."""
        self.closed = asyncio.create_task(self._stay_connected())
        """Ends after `close()`; fails with AgentStoppedError when the agent was refused, deregistered or replaced."""
        self.closed.add_done_callback(lambda closed: closed.cancelled() or closed.exception())

    @property
    def instance_id(self) -> str:
        """The configured id, or the one that the platform chose; empty before the first registration."""
        return self._registration.instance_id

    async def ready(self) -> None:
        """Returns at the first `welcome`. Raises what ends the agent before."""
        await asyncio.wait({self.welcomed, self.closed}, return_when=asyncio.FIRST_COMPLETED)
        if not self.welcomed.done():
            self.closed.result()

    def report_status(self, status: ReportedStatus) -> None:
        """Reports a status at once and with every heartbeat. A closing agent stays `draining`."""
        if self.is_closing():
            return
        self._status = status
        if self._ready:
            self._ready.heartbeat()

    async def close(self, grace_seconds: float) -> None:
        """Asks for no new work, finishes running work, and disconnects.

        The mesh closes the connection once it has every answer: until then a dispatch may have crossed the `close_request`, or
        an answer may be on a network that stands still.
        """
        if not self.is_closing():
            self._grace_ends_at = self._loop.time() + grace_seconds
            self._status = "draining"
            self.lifecycle.draining(grace_seconds)
            self._announce_close()
            self._closing.set()
            if self._ready or self._needs_connection():
                await asyncio.wait({self.closed}, timeout=grace_seconds)
            self._shut_down()
        await asyncio.shield(self.closed)

    def stop(self, reason: BaseException) -> None:
        """Stops at once: `closed` fails with `reason`."""
        self._stop_reason = reason
        self._shut_down()

    def _announce_close(self) -> None:
        if self._ready:
            self._ready.heartbeat()
            self._ready.request_close(self._grace_ends_at - self._loop.time())

    def _shut_down(self) -> None:
        self._closing.set()
        if self._stopped.is_set():
            return
        self._stopped.set()
        if self._runs.count:
            self.lifecycle.cut_off(self._runs.count)
        self._targets.give_up()
        if self._connection:
            self._connection.stop()

    @property
    def _ready(self) -> ReadyConnection | None:
        return self._connection.ready if self._connection else None

    def _needs_connection(self) -> bool:
        """Whether the agent should be connected."""
        if self._stopped.is_set():
            return False
        return not self.is_closing() or (not self._closed_normally and not self._runs.is_idle)

    async def _stay_connected(self) -> None:
        try:
            while self._needs_connection():
                wait_ms = await self._connect_once()
                if wait_ms > 0 and self._needs_connection():
                    await self._pause(wait_ms)
            if self._stop_reason:
                raise self._stop_reason
        finally:
            self._shut_down()
            self._runs.abort_all()

    async def _connect_once(self) -> float:
        """Makes one connection and waits for its end. Gives the milliseconds to wait before the next one."""
        try:
            target = await self._targets.next(lambda error: self.warn(error, self._registration.url))
        except Exception as error:  # a token function of the program may raise anything
            return self._not_registered(error)
        if target is None or self._stopped.is_set():
            return 0
        connection = self._connection = OpenConnection(target, self, self._registration, self._runs, self.tools)
        try:
            end = await connection.run(self._resume_token, lambda welcome: self._welcomed(welcome, target))
        finally:
            self._connection = None
        return self._connection_ended(target, end, connection.ready)

    def _not_registered(self, error: Exception) -> float:
        if self._stopped.is_set():
            return 0
        registration = self._registration
        reason = stop_reason_of_error(error, url=registration.url, has_joined=registration.has_joined)
        if reason:
            if not self.is_closing():
                raise reason from error
            self._shut_down()  # a closing agent has nothing more to do
            return 0
        described = describe_error(error, registration.url)
        self._retries(described, registration.url, was_connected=False)
        return self._disconnected("", described.message, error.retry_after_ms if isinstance(error, ApiError) else None)

    def _connection_ended(self, target: ConnectTarget, end: ConnectionEnd, ready: ReadyConnection | None) -> float:
        if ready and ready.renewal.is_reconnecting:
            return 0
        if target.is_own_address and not ready:
            self._targets.not_resumed(end, target.token)
            return 0
        is_draining = ready is not None and ready.is_mesh_draining
        is_normal = end.close_code == CLOSE_NORMAL
        if ready:
            self._closed_normally = is_normal
        # A node that stops closes the sockets of its agents once it keeps nothing for them any more.
        is_orderly = is_normal or (is_draining and end.close_code == CLOSE_GOING_AWAY)
        if is_orderly:
            self._targets.leave_node()
        reason = stop_reason(end)
        if reason:
            raise reason
        self._registration.connection_ended(end, ready.renewal.token if ready else target.token)
        described = describe_connection_end(end, target.url)
        if not (is_draining or self.is_closing()) or not is_orderly:
            self._retries(described, origin_of(target.url), was_connected=ready is not None)
        return self._disconnected(end.code, described.message, end.retry_after_ms)

    def _disconnected(self, code: str, message: str, min_wait_ms: float | None) -> float:
        retry_in_ms = self._backoff.next(min_wait_ms or 0)
        if not self.is_closing():
            self._emit(Disconnected(code, message, retry_in_ms))
        return retry_in_ms

    def heartbeat(self) -> dict[str, Any]:
        """The payload of a heartbeat."""
        return {
            "instance_id": self.instance_id,
            "status": self._status,
            "current_sessions": self._runs.session_count,
            **self._capacity,
        }

    def is_closing(self) -> bool:
        """Whether `close()` was called, or the agent has stopped."""
        return self._closing.is_set()

    def on_stable(self) -> None:
        """The connection has lasted: later trouble is reported again."""
        self._errors.reset()

    def warn(self, error: AgentError, scope: str) -> None:
        """Reports trouble that may pass."""
        if not self._stopped.is_set():
            self._errors.warn(error, scope)

    def _retries(self, error: AgentError, scope: str, *, was_connected: bool) -> None:
        if not self._stopped.is_set():
            self.lifecycle.retries(error, scope, was_connected=was_connected)

    def _welcomed(self, welcome: dict[str, Any], target: ConnectTarget) -> None:
        self._resume_token = welcome["resume_token"]
        self._targets.welcomed(welcome.get("resume_url"), target.url)
        self._backoff.reset()
        mesh_id, resumed = str(welcome.get("mesh_id", "")), welcome["resumed"]
        self.lifecycle.connected(self.instance_id, self._registration.url, bool(resumed))
        self.lifecycle.log.debug("agent connected (mesh_id=%s, resumed=%s)", mesh_id, resumed)
        if self.is_closing():
            self._announce_close()
        self._emit(Connected(self.instance_id, mesh_id, resumed))
        if not self.welcomed.done():
            self.welcomed.set_result(None)

    async def _pause(self, wait_ms: float) -> None:
        """Waits before the next connection. `close()` ends the wait, because remaining answers have only the grace period."""
        event = self._stopped if self.is_closing() else self._closing
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait_ms / 1000):
                await event.wait()
