"""The agent's description of itself."""

from __future__ import annotations

from typing import Any

from ..handlers.handlers import Handlers
from ..tools.tool_handlers import ToolHandlers
from ..version import __version__
from .options import AgentOptions

_INPUT_MODES = ["text/plain", "application/json", "*/*"]
"""The agent accepts any part; the first two entries are for clients that do not understand wildcards."""

_IDEMPOTENT_SKILLS_URI = "urn:agent-fleet:extensions:idempotent-skills"
_DISPATCH_URI = "urn:agent-fleet:dispatch:1"
_ANY_SKILL = "*"


class AgentProfile:
    """What `hello` and a registration say about the agent."""

    def __init__(self, options: AgentOptions, handlers: Handlers, tools: ToolHandlers) -> None:
        self._options = options
        self._handlers = handlers
        self._tools = tools

    @property
    def instance_id(self) -> str | None:
        return self._options.instance_id

    @property
    def capacity(self) -> dict[str, int]:
        """How much the agent does at once, as registrations and heartbeats say it."""
        options = self._options
        return {"max_concurrent_sessions": options.max_concurrent_sessions, "max_concurrent_tasks": options.max_concurrent_tasks}

    def hello(self) -> dict[str, Any]:
        """The members of `hello` that describe the agent."""
        return {**self._shared(), "sdk_version": f"agent-fleet-python/{__version__}"}

    def registration(self) -> dict[str, Any]:
        """The body of `/agents/register`, without its address."""
        context = self._options.context
        return {**self._shared(), **({"context": context} if context is not None else {})}

    def _shared(self) -> dict[str, Any]:
        options = self._options
        return {
            "agent_type": options.type,
            **({"agent_version": options.version} if options.version is not None else {}),
            "agent_card": self.card(),
            "skills": self._handlers.skills,
            "tools": self._tools.tools,
            **self.capacity,
        }

    def card(self, url: str | None = None) -> dict[str, Any]:
        """An A2A 0.3 agent card; `url` is the address of a hosted agent."""
        options = self._options
        return {
            "protocolVersion": "0.3.0",
            "name": options.name or options.type,
            "description": options.description,
            "version": options.version or "0.0.0",
            **({"url": url, "preferredTransport": "JSONRPC"} if url is not None else {}),
            "defaultInputModes": _INPUT_MODES,
            "defaultOutputModes": ["text/plain", "application/json"],
            "skills": self._handlers.skills,
            **(options.card or {}),
            "capabilities": self._capabilities((options.card or {}).get("capabilities"), is_hosted=url is not None),
        }

    def _capabilities(self, given: object, *, is_hosted: bool) -> dict[str, Any]:
        """What the agent's own card says, with the declaration of idempotent skills."""
        own = given if isinstance(given, dict) else {}
        extensions = [*(own.get("extensions") or []), *self._extensions(is_hosted)]
        return {
            "streaming": True,
            "pushNotifications": False,
            **own,
            **({"extensions": extensions} if extensions else {}),
        }

    def _extensions(self, is_hosted: bool) -> list[dict[str, Any]]:
        described = "Requests may have what the platform says of a dispatch beside `params`."
        dispatch = [{"uri": _DISPATCH_URI, "description": described, "required": False}] if is_hosted else []
        skills = [*self._handlers.idempotent_skills, *([_ANY_SKILL] if self._options.idempotent else [])]
        if not skills:
            return dispatch
        description = "Messages to these skills may be dispatched again after the agent was lost."
        return [*dispatch, {"uri": _IDEMPOTENT_SKILLS_URI, "description": description, "required": False, "params": {"skills": skills}}]
