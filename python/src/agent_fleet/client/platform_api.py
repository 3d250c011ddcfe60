"""Authenticated requests to the platform."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any, TypeVar

from ..access import Access, Role
from ..errors import ApiError, is_transient
from .streams.event_reader import read_lines
from .streams.followed_events import followed_events
from .token_source import TokenSource
from .transport import SILENCE_MS, Answer, JsonObject, Transport

STREAM_SILENCE_MS = 60_000
"""Four missed keep-alive comments: the connection is lost."""
_RETRIES = 3
_RETRY_FIRST_MS = 200
_RETRY_AFTER_MS_MAX = 30_000

T = TypeVar("T")


class PlatformApi:
    """Authenticated API requests with one credential. Tokens are renewed before they expire, and once after a 401."""

    def __init__(self, options: Access, agent_type: str | None = None, role: Role = "caller") -> None:
        access = options.resolved(role)
        self.ca = access.ca
        self.access = access
        self._transport = Transport(access.url, access.ca)
        self.tokens = TokenSource(self._transport, access, agent_type)

    @property
    def base_url(self) -> str:
        return self._transport.base_url

    async def call(
        self,
        path: str,
        body: object = None,
        *,
        method: str = "POST",
        params: Mapping[str, Any] | None = None,
        form: Mapping[str, Any] | None = None,
        retry: bool = False,
        silence_ms: float = SILENCE_MS,
    ) -> JsonObject:
        """One request with its JSON answer. Only with `retry` it is repeated after a temporary failure.

        Raises ApiError or UnreachableError.
        """

        async def once() -> JsonObject:
            opened = self.open(path, body, method=method, params=params, form=form, silence_ms=silence_ms)
            async with opened as answer:
                return await answer.json()

        return await with_retries(once) if retry else await once()

    @asynccontextmanager
    async def open(self, path: str, body: object = None, **options: Any) -> AsyncIterator[Answer]:
        """Sends a request and gives the answer at its headers; repeated only once, when the token was refused."""
        async with AsyncExitStack() as stack:
            bearer = await self.tokens.get()
            try:
                answer = await stack.enter_async_context(self._transport.request(path, body, bearer=bearer, **options))
            except ApiError as error:
                if error.status != 401:
                    raise
                self.tokens.invalidate(bearer)
                bearer = await self.tokens.get()
                answer = await stack.enter_async_context(self._transport.request(path, body, bearer=bearer, **options))
            yield answer

    def events(self, path: str, body: object) -> AsyncIterator[JsonObject]:
        """The data of server-sent events, each a JSON object, as they arrive; a broken connection does not end them."""

        def open_stream(last_event_id: str) -> AbstractAsyncContextManager[Answer]:
            headers = {"last-event-id": last_event_id} if last_event_id else {}
            return self.open(path, body, headers=headers, silence_ms=STREAM_SILENCE_MS)

        return followed_events(open_stream)

    async def lines(self, path: str, body: object) -> AsyncIterator[JsonObject]:
        """The JSON Lines of an answer, as they arrive."""
        async with self.open(path, body) as answer:
            async for line in read_lines(answer.chunks()):
                yield json.loads(line)

    async def close(self) -> None:
        """Closes the connections; in-flight requests fail with `UnreachableError`."""
        await self._transport.close()


async def with_retries(attempt: Callable[[], Awaitable[T]]) -> T:
    """Up to four attempts: after 0.2, 0.4 and 0.8 s (±25 %), or as long as the platform asks to wait."""
    failures = 0
    while True:
        try:
            return await attempt()
        except Exception as error:
            if failures >= _RETRIES or not is_transient(error):
                raise
            wait_ms = _retry_wait_ms(error, failures)
        failures += 1
        await asyncio.sleep(wait_ms / 1000)


def _retry_wait_ms(error: Exception, failures: int) -> float:
    retry_after_ms = error.retry_after_ms if isinstance(error, ApiError) else None
    if retry_after_ms is not None:
        return min(retry_after_ms, _RETRY_AFTER_MS_MAX)
    step: int = _RETRY_FIRST_MS << failures
    return step * (0.75 + random.random() / 2)
