"""Access tokens."""

from __future__ import annotations

import asyncio
import base64
import inspect
import json
import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from ..access import ResolvedAccess, TokenProvider
from ..errors import ApiError, UnreachableError
from .transport import Transport

_REFRESH_EARLY_MS = 60_000
_SILENCE_MS = 60_000
"""Time limit without any byte from the platform, for a token request. All callers wait for the same request."""


@dataclass(frozen=True)
class _CachedToken:
    token: str
    renew_at_ms: float
    """Milliseconds since the epoch; infinite for never."""


class TokenSource:
    """Caches an access token and gets a new one before it expires."""

    def __init__(self, transport: Transport, access: ResolvedAccess, agent_type: str | None) -> None:
        self._cached: _CachedToken | None = None
        self._pending: asyncio.Task[_CachedToken] | None = None
        self._fetch: Callable[[], Awaitable[_CachedToken]]
        if access.token is None:
            self._fetch = lambda: _request_token(transport, access, agent_type)
        else:
            self._fetch = _configured_token(access.token)

    @property
    def renew_at_ms(self) -> float:
        """When to renew the current token: a minute before it expires, or a fifth of its lifetime if that is shorter."""
        return self._cached.renew_at_ms if self._cached else 0

    async def get(self) -> str:
        """A valid token. Concurrent callers share one request. Raises ApiError or UnreachableError."""
        if self._cached and _now_ms() < self._cached.renew_at_ms:
            return self._cached.token
        if self._pending is None:
            self._pending = asyncio.ensure_future(self._renew())
            self._pending.add_done_callback(self._settled)
        return (await asyncio.shield(self._pending)).token

    def invalidate(self, token: str) -> None:
        """Drops `token` after a 401, unless a newer one has replaced it."""
        if self._cached and self._cached.token == token:
            self._cached = None

    async def _renew(self) -> _CachedToken:
        self._cached = await self._fetch()
        return self._cached

    def _settled(self, pending: asyncio.Task[_CachedToken]) -> None:
        self._pending = None
        if not pending.cancelled():
            pending.exception()  # every caller has it; one that was canceled meanwhile needs none


async def _request_token(transport: Transport, access: ResolvedAccess, agent_type: str | None) -> _CachedToken:
    body = {"client_id": access.client_id, "client_secret": access.client_secret}
    if agent_type:
        body["agent_type"] = agent_type
    async with transport.request("/auth/get_token", body, silence_ms=_SILENCE_MS) as answer:
        granted = await answer.json()
    token, expires_in = granted.get("token"), granted.get("expires_in")
    if not isinstance(token, str) or not isinstance(expires_in, (int, float)):
        cause = ValueError("the answer holds no token")
        raise UnreachableError(answer.url, cause) from cause
    return _CachedToken(token, _renew_at(expires_in * 1000))


def _configured_token(given: str | TokenProvider) -> Callable[[], Awaitable[_CachedToken]]:
    """A token from the options: a function is called for each new token; a fixed token that was refused has no replacement."""
    used = False

    async def fetch() -> _CachedToken:
        nonlocal used
        if callable(given):
            made = given()
            token = await made if inspect.isawaitable(made) else made
            return _CachedToken(token, _renew_at(_lifetime_ms(token)))
        if used:
            raise ApiError("the access token was refused", status=401, code="unauthorized")
        used = True
        return _CachedToken(given, math.inf)

    return fetch


def _renew_at(life_ms: float) -> float:
    return _now_ms() + life_ms - min(_REFRESH_EARLY_MS, life_ms / 5)


def _lifetime_ms(token: str) -> float:
    """The remaining lifetime of a JWT by its `exp`; infinite without one."""
    try:
        claims = token.split(".")[1]
        expires = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["exp"]
        return float(expires) * 1000 - _now_ms()
    except (IndexError, KeyError, TypeError, ValueError):
        return math.inf  # not a JWT: the platform answers 401 when it has expired


def _now_ms() -> float:
    return time.time() * 1000
