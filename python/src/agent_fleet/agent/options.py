"""The options of an agent."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Any, Literal

from ..access import Access
from ..limits import CLOSE_GRACE_SECONDS_DEFAULT, MAX_CONCURRENT_SESSIONS_DEFAULT
from ..log import DEFAULT_LOG
from .error_reporter import OnError

ReportedStatus = Literal["available", "busy", "draining", "unhealthy"]
"""The status that an agent reports; a `busy` agent gets no new work until it is `available` again."""


@dataclass(frozen=True, kw_only=True)
class AgentOptions:
    """What `Agent` takes."""

    type: str
    access: Access = field(default_factory=Access)
    instance_id: str | None = None
    name: str | None = None
    description: str = ""
    version: str | None = None
    card: dict[str, Any] | None = None
    max_concurrent_sessions: int = MAX_CONCURRENT_SESSIONS_DEFAULT
    max_concurrent_tasks: int = 0
    context: dict[str, Any] | None = None
    idempotent: bool = False
    drain_on_signals: bool = True
    drain_grace_seconds: float = CLOSE_GRACE_SECONDS_DEFAULT
    log: logging.Logger = DEFAULT_LOG
    on_error: OnError | None = None
    handshake_timeout_ms: float = 15_000


@dataclass(frozen=True)
class Connected:
    """The agent has a connection."""

    instance_id: str
    mesh_id: str
    resumed: bool


@dataclass(frozen=True)
class Disconnected:
    """The connection was lost, or could not be made."""

    code: str
    """The platform's; empty when it gave none."""
    message: str
    retry_in_ms: float
