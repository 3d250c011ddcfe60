"""An agent."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, overload

from ..access import Access, CertificateAuthority, TokenProvider
from ..connected.connected_agent import ConnectedAgent
from ..errors import AgentStoppedError
from ..handlers.handlers import Handlers
from ..interactive import is_interactive
from ..limits import CLOSE_GRACE_SECONDS_DEFAULT, CLOSE_GRACE_SECONDS_MAX, MAX_CONCURRENT_SESSIONS_DEFAULT
from ..log import DEFAULT_LOG
from ..tools.tool_caller import CallsTools, ToolCaller
from ..tools.tool_handlers import ToolHandlers
from .background import Background
from .drain_on_signals import drain_on_signals, drained
from .error_reporter import ErrorReporter, OnError
from .first_welcome import first_welcome
from .listeners import EventName, Listener, Listeners
from .make_connected import make_connected
from .options import AgentOptions, ReportedStatus

if TYPE_CHECKING:
    from ..hosted.hosted_app import HostedAgentApp

_REPLACED_GRACE_SECONDS = 1.0
_interactive: dict[str, Agent] = {}
"""In a notebook: the agent of each type that joined last."""

F = TypeVar("F", bound=Callable[..., Any])


class Agent(CallsTools):
    """An agent. Register the handlers first, then call `run()`, `await serve()` or `await connect()`.

    The address and the credential are those of `Access`; what is left out comes from the environment.
    """

    def __init__(
        self,
        type: str,
        *,
        url: str | None = None,
        client_id: str | None = None,
        client_secret: str | None = None,
        token: str | TokenProvider | None = None,
        ca: CertificateAuthority | None = None,
        instance_id: str | None = None,
        name: str | None = None,
        description: str = "",
        version: str | None = None,
        card: dict[str, Any] | None = None,
        max_concurrent_sessions: int = MAX_CONCURRENT_SESSIONS_DEFAULT,
        max_concurrent_tasks: int = 0,
        context: dict[str, Any] | None = None,
        idempotent: bool = False,
        drain_on_signals: bool = True,
        drain_grace_seconds: float = CLOSE_GRACE_SECONDS_DEFAULT,
        log: logging.Logger = DEFAULT_LOG,
        on_error: OnError | None = None,
        handshake_timeout_ms: float = 15_000,
    ) -> None:
        """`type` is the agent type; instances of the same type share its messages.

        - `instance_id` is unique in the tenant; a second process with the same id replaces the first. The platform chooses
          one by default.
        - `name` is the type by default. `card` has further members of the A2A agent card; with `defaultInputModes` the
          platform sends only files of these media types.
        - `max_concurrent_sessions`: how many sessions the agent serves at the same time; 0 is unlimited.
        - `max_concurrent_tasks`: how many messages the agent has at the same time, over all its sessions; 0 is unlimited.
        - `context` is free-form metadata about this instance.
        - `idempotent`: every message may be dispatched again after the loss of its agent, with the same `task.idempotency_key`; by
          default it fails with `AGENT_DISCONNECTED`. `skill(…, idempotent=True)` says so of one skill.
        - `drain_on_signals`: on SIGTERM and SIGINT the agent accepts no new work, finishes running work, and leaves.
        - `drain_grace_seconds`: how long running work may take then, and at `close()`, up to 3,600: as long as your longest task.
        - `log` gets a line when the agent joins, loses its connection and has it again, and drains, and each warning and
          error. By default it is the logger `agent_fleet`, and while the program has configured no logging, the lines stand on
          standard error. `SILENT_LOG` discards everything.
        - `on_error` gets each connection problem that is logged, once for each kind, and the `AgentStoppedError` that stops
          the agent after it has connected.
        - `handshake_timeout_ms` bounds the handshake, and again the wait for `welcome`; then the agent reconnects.
        """
        if not 0 <= drain_grace_seconds <= CLOSE_GRACE_SECONDS_MAX:
            raise ValueError(f"drain_grace_seconds is a number from 0 to {CLOSE_GRACE_SECONDS_MAX}, not {drain_grace_seconds!r}")
        self._options = AgentOptions(
            type=type,
            access=Access(url=url, client_id=client_id, client_secret=client_secret, token=token, ca=ca),
            instance_id=instance_id,
            name=name,
            description=description,
            version=version,
            card=card,
            max_concurrent_sessions=max_concurrent_sessions,
            max_concurrent_tasks=max_concurrent_tasks,
            context=context,
            idempotent=idempotent,
            drain_on_signals=drain_on_signals,
            drain_grace_seconds=drain_grace_seconds,
            log=log,
            on_error=on_error,
            handshake_timeout_ms=handshake_timeout_ms,
        )
        self._handlers = Handlers()
        self._tools = ToolHandlers(log)
        self._background = Background(f"agent {type}", log)
        self._listeners = Listeners(self._background)
        self._running: ConnectedAgent | None = None
        self._hosted: HostedAgentApp | None = None
        self._has_joined = False

    @property
    def instance_id(self) -> str:
        """The configured id, or the one that the platform chose; empty before the first registration."""
        present = self._running or self._hosted
        return (present.instance_id if present else "") or self._options.instance_id or ""

    def on_message(self, handler: F) -> F:
        """Decorates the handler of messages that no skill handler takes. It gets the `AgentTask`."""
        self._handlers.on_message(handler)
        return handler

    @overload
    def skill(self, id: F) -> F: ...
    @overload
    def skill(
        self,
        id: str | None = None,
        *,
        name: str | None = None,
        description: str | None = None,
        tags: list[str] | None = None,
        examples: list[str] | None = None,
        idempotent: bool = False,
    ) -> Callable[[F], F]: ...
    def skill(
        self,
        id: Any = None,
        *,
        name: str | None = None,
        description: str | None = None,
        tags: list[str] | None = None,
        examples: list[str] | None = None,
        idempotent: bool = False,
    ) -> Any:
        """Decorates the handler of messages to a skill (`skill_id`), which the agent card lists.

        Its id is the function's name by default, its description the docstring. The handler gets the `AgentTask`; its
        further parameters are read from the caller's `args`, or else the message's first data part. Input that does not fit
        their types fails the message with `INVALID_DISPATCH`.
        """

        def add(handler: F) -> F:
            skill_id = id if isinstance(id, str) else handler.__name__
            described = description if description is not None else inspect.getdoc(handler) or ""
            card = {"name": name, "description": described, "tags": tags, "examples": examples}
            self._handlers.add_skill(handler, skill_id, idempotent=idempotent, **card)
            return handler

        return add(id) if callable(id) else add

    @overload
    def tool(self, name: F) -> F: ...
    @overload
    def tool(self, name: str | None = None, *, description: str | None = None) -> Callable[[F], F]: ...
    def tool(self, name: Any = None, *, description: str | None = None) -> Any:
        """Decorates a tool that other agents and the platform can call.

        Its name is the function's by default, its description the docstring. Parameters and their types give its input
        schema; one that is annotated with `ToolCall` gets the call. What it returns is the result, a JSON value. The caller
        receives a raised `ToolError` with its code, any other error as `HANDLER_ERROR`.
        """

        def add(function: F) -> F:
            self._tools.add(name if isinstance(name, str) else function.__name__, description, function)
            return function

        return add(name) if callable(name) else add

    def on(self, event: EventName, listener: Listener) -> None:
        """Adds a listener, which gets a `Connected` or `Disconnected`. What it raises is logged and passed to `on_error`.

        A hosted agent has no connection, and no such events.
        """
        self._listeners.add(event, listener)

    def _tool_caller(self) -> tuple[ToolCaller, None]:
        """Calls outside any task: within one, use `task.call_tool`."""
        if self._running:
            return self._running.tools, None
        if self._hosted:
            return self._hosted.tool_calls, None
        raise RuntimeError("the agent has not joined yet")

    async def connect(self, *, timeout_ms: float | None = None) -> None:
        """Registers the agent and keeps a WebSocket to the mesh open until `close()`. Returns at the first `welcome`.

        A lost connection is reopened after 1, 2, 4, 8, 16, then 30 s (±25 %), and in-flight messages resume. Temporary
        problems (nothing answers, an untrusted certificate) are logged and retried, at most for `timeout_ms` where given.

        In a notebook the cell may run again: the agent, or another one of its type that an earlier run of the cell made, leaves first.

        Raises AgentStoppedError when the platform refuses the agent, or `timeout_ms` is over (`CONNECT_TIMEOUT`); ValueError
        when the address or the credential is missing or invalid.
        """
        if is_interactive():
            await self._replace_earlier()
        if self._has_joined:
            raise RuntimeError("the agent has joined already")
        self._has_joined = True
        errors = ErrorReporter(f"agent {self._options.type}", self._options.on_error, self._background.spawn, self._options.log)
        try:
            running = self._start(errors)
            await first_welcome(running, timeout_ms, errors)
        except BaseException:
            self._has_joined = False  # it may try again
            raise
        running.closed.add_done_callback(errors.ended)

    async def serve(self, *, timeout_ms: float | None = None) -> None:
        """Connects, and returns when the agent is over: `connect()`, then `closed()`. When it is canceled, the agent closes."""
        await self.connect(timeout_ms=timeout_ms)
        try:
            await self.closed()
            await drained()
        except asyncio.CancelledError:
            await self.close()
            raise

    def asgi(self, public_url: str) -> HostedAgentApp:
        """The agent as an ASGI app, for agents that the platform posts to: `app = agent.asgi("https://shop.example.com/")`.

        `public_url` is the address at which the platform reaches the app. It verifies the platform's tokens, registers the agent when the
        server starts, and drains when it stops. Needs the extra `agent-fleet[hosted]`.
        """
        try:
            from ..hosted.hosted_app import HostedAgentApp
        except ImportError as error:
            raise ImportError(f"{error}: install agent-fleet[hosted]") from error
        app = HostedAgentApp(self._options, self._handlers, self._tools, public_url)
        self._hosted = app
        return app

    def run(self) -> None:
        """Serves in an event loop of its own: the last line of a program that is nothing but an agent. Returns after Ctrl-C."""
        if asyncio._get_running_loop():
            raise RuntimeError("an event loop runs here already, as in a notebook: `await agent.connect()`, later `await agent.close()`")
        with contextlib.suppress(KeyboardInterrupt):  # the agent has drained; a second Ctrl-C ends it at once
            asyncio.run(self.serve())

    async def closed(self) -> None:
        """Returns after `close()`. Raises AgentStoppedError when the agent was refused, deregistered or replaced."""
        if self._running:
            await asyncio.shield(self._running.closed)

    def report_status(self, status: ReportedStatus) -> None:
        """Reports a status to the platform, at once and with every heartbeat."""
        if present := self._running or self._hosted:
            present.report_status(status)

    async def close(self, grace_seconds: float | None = None) -> None:
        """Accepts no new work, finishes running work, and disconnects.

        Work that takes longer than `grace_seconds` (by default the agent's `drain_grace_seconds`) fails with `AGENT_DISCONNECTED`.
        Raises AgentStoppedError when the agent was refused or replaced before.
        """
        if self._running:
            await self._running.close(self._options.drain_grace_seconds if grace_seconds is None else grace_seconds)

    async def _replace_earlier(self) -> None:
        earlier, _interactive[self._options.type] = _interactive.get(self._options.type), self
        if earlier and earlier._running:
            with contextlib.suppress(AgentStoppedError):
                await earlier.close(_REPLACED_GRACE_SECONDS)
            earlier._running, earlier._has_joined = None, False

    def _start(self, errors: ErrorReporter) -> ConnectedAgent:
        options = self._options
        running, api = make_connected(
            options, self._handlers, self._tools, errors, lambda event: self._listeners.emit(event, errors)
        )
        self._running = running
        # In a notebook an interrupt is for the cell that runs.
        ignore_signals = drain_on_signals(self.close) if options.drain_on_signals and not is_interactive() else None

        def release(_: object) -> None:
            if ignore_signals:
                ignore_signals()
            self._background.spawn(api.close())

        running.closed.add_done_callback(release)
        return running
