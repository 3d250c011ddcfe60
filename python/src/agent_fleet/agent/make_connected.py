"""The parts of a connected agent, put together."""

from __future__ import annotations

from collections.abc import Callable

from ..client.platform_api import PlatformApi
from ..connected.connected_agent import ConnectedAgent
from ..connected.dispatch_runs import DispatchRuns
from ..connected.registration import Registration
from ..connected.tool_calls import ConnectedToolCalls
from ..handlers.handlers import Handlers
from ..handlers.run_dispatch import RunDeps
from ..tools.tool_handlers import ToolHandlers
from .conversation import PlatformConversation
from .error_reporter import ErrorReporter
from .lifecycle_log import LifecycleLog
from .options import AgentOptions, Connected, Disconnected
from .profile import AgentProfile


def make_connected(
    options: AgentOptions, handlers: Handlers, tools: ToolHandlers, errors: ErrorReporter, emit: Callable[[Connected | Disconnected], None]
) -> tuple[ConnectedAgent, PlatformApi]:
    """An agent that joins at once, and what it asks the platform with, which is closed after it."""
    api = PlatformApi(options.access, options.type, "agent")
    calls = ConnectedToolCalls(tools)
    profile = AgentProfile(options, handlers, tools)
    agent = ConnectedAgent(
        Registration(api, profile),
        DispatchRuns(RunDeps(handlers, calls, PlatformConversation(api), options.log)),
        calls,
        errors,
        LifecycleLog(f"agent {options.type}", options.log, errors),
        capacity=profile.capacity,
        handshake_timeout_ms=options.handshake_timeout_ms,
        emit=emit,
    )
    return agent, api
