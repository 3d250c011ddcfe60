"""The registration of a connected agent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..agent.describe_error import describe_error, is_host_unreachable, is_unknown_agent
from ..agent.profile import AgentProfile
from ..agent.slow_response import SILENCE_MS, warn_when_slow
from ..client.platform_api import PlatformApi
from ..errors import AgentError, ApiError, UnreachableError
from ..limits import CLOSE_INSTANCE_ID_MISMATCH, CLOSE_TOKEN_EXPIRED
from .mesh_connection import ConnectionEnd
from .resume_address import with_instance

_UNANSWERED_MAX = 3
"""After this many unanswered handshakes in a row, the mesh may have moved."""


class Registration:
    """The agent's instance id, its token, the address of the mesh, and its `hello`."""

    def __init__(self, api: PlatformApi, profile: AgentProfile) -> None:
        self._api = api
        self._profile = profile
        self.instance_id = profile.instance_id or ""
        """The configured id, or the one that the platform chose; empty before the first registration."""
        self.has_joined = False
        """Whether the platform has registered the agent in this process."""
        self._connect_url: str | None = None
        self._unanswered = 0

    @property
    def ca(self) -> str | None:
        return self._api.ca

    @property
    def url(self) -> str:
        """Address of the API."""
        return self._api.base_url

    @property
    def renew_at_ms(self) -> float:
        """Time to renew the current token, in milliseconds since the epoch."""
        return self._api.tokens.renew_at_ms

    async def connect_target(self, on_slow: Callable[[AgentError], None]) -> tuple[str, str]:
        """Address and token for the next connection. Registers the agent first, if necessary.

        `on_slow` is called when the platform takes longer than usual. Raises ApiError or UnreachableError.
        """
        return await warn_when_slow(self._connect_target(), self.url, on_slow)

    async def renew_token(self, on_error: Callable[[AgentError], None]) -> str | None:
        """Renews a token that is about to expire. Gives a valid token, or None when there is none."""
        try:
            return await self._api.tokens.get()
        except Exception as error:  # a token function of the program may raise anything
            on_error(describe_error(error, self.url))
            return None

    def connection_ended(self, end: ConnectionEnd, token: str) -> None:
        """Records the end of a connection: invalidates a refused `token` and an outdated address."""
        if end.http_status == 401 or end.close_code == CLOSE_TOKEN_EXPIRED:
            self._api.tokens.invalidate(token)
        is_unknown_instance = end.http_status == 404 or end.close_code == CLOSE_INSTANCE_ID_MISMATCH
        self._unanswered = self._unanswered + 1 if end.nothing_sent else 0
        # A busy mesh keeps its address. When the mesh may have moved, a new registration returns its current address.
        may_have_moved = is_host_unreachable(end.error) or self._unanswered >= _UNANSWERED_MAX
        if is_unknown_instance or may_have_moved:
            self._unanswered = 0
            self._connect_url = None

    def hello(self) -> dict[str, Any]:
        """The members of `hello` that identify the agent."""
        return {**self._profile.hello(), "instance_id": self.instance_id}

    async def _connect_target(self) -> tuple[str, str]:
        if self._connect_url is None:
            self._connect_url = await self._register()
        return self._connect_url, await self._api.tokens.get()

    async def _register(self) -> str:
        if self.has_joined:
            await self._check_not_deregistered()
        body = {**self._profile.registration(), "deployment_mode": "connected"}
        if self.instance_id:
            body["instance_id"] = self.instance_id
        answer = await self._api.call("/agents/register", body, silence_ms=SILENCE_MS)
        instance_id, connect_url = answer.get("instance_id"), answer.get("connect_url")
        if not isinstance(instance_id, str) or not isinstance(connect_url, (str, type(None))):
            cause = ValueError("the answer is no registration")
            raise UnreachableError(self.url, cause) from cause
        self.has_joined = True
        self.instance_id = instance_id
        if connect_url is None:
            raise ApiError("registered as hosted", status=409, code="DEPLOYMENT_MODE_MISMATCH")
        return with_instance(connect_url, instance_id)

    async def _check_not_deregistered(self) -> None:
        """A new registration must not undo a deregistration. Raises ApiError with `DEREGISTERED` when there was one meanwhile."""
        try:
            await self._api.call("/agents/heartbeat", {"instance_id": self.instance_id}, silence_ms=SILENCE_MS)
        except ApiError as error:
            if not is_unknown_agent(error):
                raise
