"""The registration of a hosted agent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from ..agent.describe_error import describe_error, is_unknown_agent
from ..agent.error_reporter import ErrorReporter
from ..agent.lifecycle_log import LifecycleLog
from ..agent.profile import AgentProfile
from ..agent.slow_response import SILENCE_MS
from ..agent.stop_reason import stop_reason_of_error
from ..backoff import Backoff
from ..client.platform_api import PlatformApi
from ..errors import ApiError, UnreachableError

_HEARTBEAT_SECONDS = 30.0


class Membership:
    """Keeps a hosted agent registered: registers it, then sends a heartbeat every 30 s.

    Registers again only when the platform does not know the agent; one that was deregistered stays away.
    """

    def __init__(
        self,
        api: PlatformApi,
        profile: AgentProfile,
        public_url: str,
        lifecycle: LifecycleLog,
        errors: ErrorReporter,
        *,
        heartbeat: Callable[[], dict[str, Any]],
        on_registered: Callable[[dict[str, Any]], None],
    ) -> None:
        """`heartbeat` gives the members of a heartbeat; `on_registered` gets the answer to each registration."""
        self.instance_id = profile.instance_id or ""
        self._api = api
        self._profile = profile
        self._public_url = public_url
        self._lifecycle = lifecycle
        self._errors = errors
        self._heartbeat_body = heartbeat
        self._on_registered = on_registered
        self._has_joined = False

    async def run(self) -> None:
        """Until it is canceled. Raises AgentStoppedError when the platform refuses or has deregistered the agent."""
        backoff = Backoff()
        while True:
            wait_seconds = _HEARTBEAT_SECONDS
            try:
                await self._ensure_registered()
                backoff.reset()
                self._errors.reset()
                self._lifecycle.connected(self.instance_id, self._api.base_url, False)
            except (ApiError, UnreachableError) as error:
                url = self._api.base_url
                reason = stop_reason_of_error(error, url=url, has_joined=self._has_joined)
                if reason:
                    raise reason from error
                self._lifecycle.retries(describe_error(error, url), url, was_connected=self._has_joined)
                wait_seconds = backoff.next((error.retry_after_ms if isinstance(error, ApiError) else None) or 0) / 1000
            await asyncio.sleep(wait_seconds)

    async def heartbeat(self) -> None:
        """Sends a heartbeat now. Raises ApiError or UnreachableError."""
        await self._api.call("/agents/heartbeat", {"instance_id": self.instance_id, **self._heartbeat_body()}, silence_ms=SILENCE_MS)

    async def _ensure_registered(self) -> None:
        if self._has_joined:
            try:
                await self.heartbeat()
                return
            except ApiError as error:
                if not is_unknown_agent(error):
                    raise
        where = {"deployment_mode": "hosted", "public_url": self._public_url, "agent_card": self._profile.card(self._public_url)}
        body = {**self._profile.registration(), **where, **({"instance_id": self.instance_id} if self.instance_id else {})}
        answer = await self._api.call("/agents/register", body, silence_ms=SILENCE_MS)
        self.instance_id = answer["instance_id"]
        self._has_joined = True
        self._on_registered(answer)
        await self.heartbeat()
