"""One connection of an agent, from its target to its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from ..agent.lifecycle_log import LifecycleLog
from ..errors import AgentError
from .connect_targets import ConnectTarget
from .dispatch_runs import DispatchRuns
from .frames import Frame
from .mesh_connection import ConnectionEnd, ConnectionOptions, MeshConnection
from .ready_connection import ReadyConnection
from .registration import Registration
from .token_renewal import TokenRenewal
from .tool_calls import ConnectedToolCalls


class ConnectionOwner(Protocol):
    """What the agent does while it has a connection."""

    lifecycle: LifecycleLog

    def heartbeat(self) -> dict[str, Any]: ...
    def is_closing(self) -> bool: ...
    def on_stable(self) -> None: ...
    def warn(self, error: AgentError, scope: str) -> None: ...


class OpenConnection:
    """Makes the socket, and serves it once the mesh has sent `welcome`."""

    def __init__(
        self,
        target: ConnectTarget,
        owner: ConnectionOwner,
        registration: Registration,
        runs: DispatchRuns,
        tools: ConnectedToolCalls,
    ) -> None:
        self.ready: ReadyConnection | None = None
        """Set from `welcome` on."""
        self._target = target
        self._owner = owner
        self._registration = registration
        self._runs = runs
        self._tools = tools
        self._connection: MeshConnection | None = None

    async def run(self, resume_token: str | None, on_welcome: Callable[[dict[str, Any]], None]) -> ConnectionEnd:
        """Returns when the socket is closed."""
        target = self._target

        def welcomed(welcome: dict[str, Any]) -> None:
            self.ready = self._serve(connection, welcome)
            on_welcome(welcome)

        hello = {
            **self._registration.hello(),
            "current_sessions": self._runs.session_count,
            "resume_token": resume_token,
            "inflight": self._runs.inflight(),
        }
        connection = MeshConnection(
            ConnectionOptions(
                url=target.url,
                token=target.token,
                ca=self._registration.ca,
                hello=hello,
                handshake_timeout_ms=target.handshake_timeout_ms,
                on_welcome=welcomed,
                on_frame=self._receive,
            )
        )
        self._connection = connection
        try:
            return await connection.run()
        finally:
            if self.ready:
                self.ready.lost()

    def stop(self) -> None:
        """Closes the socket, or gives up its handshake."""
        if self.ready:
            self.ready.close()
        elif self._connection:
            self._connection.cut()

    def _receive(self, frame: Frame) -> None:
        if self.ready:
            self.ready.receive(frame)

    def _serve(self, connection: MeshConnection, welcome: dict[str, Any]) -> ReadyConnection:
        owner, registration = self._owner, self._registration
        renewal = TokenRenewal(
            connection,
            self._tools,
            token=self._target.token,
            takes_reauth=welcome.get("reauth") is True,
            renew_at_ms=lambda: registration.renew_at_ms,
            renew_token=lambda: registration.renew_token(lambda error: owner.warn(error, registration.url)),
            log=owner.lifecycle.log,
        )
        return ReadyConnection(
            connection,
            welcome,
            runs=self._runs,
            tools=self._tools,
            renewal=renewal,
            heartbeat=owner.heartbeat,
            is_closing=owner.is_closing,
            on_stable=owner.on_stable,
            on_mesh_drain=owner.lifecycle.mesh_drains,
            log=owner.lifecycle.log,
        )
