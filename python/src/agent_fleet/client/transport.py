"""HTTP requests to one platform."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx

from ..access import tls_context
from ..errors import ApiError, UnreachableError

SILENCE_MS = 300_000
"""Longer than `SEND_WAIT_MS`, during which `message/send` sends nothing."""
_JSON_BYTES_MAX = 32 * 1024 * 1024
_ERROR_BYTES_MAX = 64 * 1024
_CONNECT_SECONDS = 60.0

_BODY_BYTES_MAX = 1024 * 1024
_DOCUMENTS_BYTES_MAX = 32 * 1024 * 1024
"""Of a request that takes documents."""
_TOO_LARGE = 413
_SHORTER = f"A request has at most {_BODY_BYTES_MAX} bytes: send the URI of a file, or put documents into a knowledge base."

JsonObject = dict[str, Any]


class Answer:
    """An answer whose body has not been read yet."""

    def __init__(self, response: httpx.Response) -> None:
        self._response = response
        self.url = str(response.url)
        self.status = response.status_code
        self.headers = response.headers
        self.request_id: str = response.headers.get("x-request-id", "")

    async def chunks(self) -> AsyncIterator[bytes]:
        """The bytes of the body. Raises UnreachableError when the connection breaks."""
        try:
            async for chunk in self._response.aiter_bytes():
                yield chunk
        except (httpx.HTTPError, httpx.StreamError) as error:
            raise UnreachableError(self.url, error) from error

    async def json(self) -> JsonObject:
        """Reads the body as a JSON object. Raises UnreachableError when it breaks off or is none."""
        body = await self._read(_JSON_BYTES_MAX)
        try:
            value = json.loads(body)
            if not isinstance(value, dict):
                raise ValueError("the answer is not a JSON object")
        except ValueError as error:
            raise UnreachableError(self.url, error) from error
        return value

    async def error(self) -> ApiError:
        """What an answer with another status than 2xx says."""
        try:
            value = json.loads(await self._read(_ERROR_BYTES_MAX))
        except (UnreachableError, ValueError):
            value = {}  # not JSON, for example a proxy's page: only the status is known
        body = value if isinstance(value, dict) else {}
        return ApiError(
            _text_or(body.get("error"), f"HTTP {self.status}") + (f" {_SHORTER}" if self.status == _TOO_LARGE else ""),
            status=self.status,
            code=_text_or(body.get("code"), f"HTTP_{self.status}"),
            request_id=_text_or(body.get("request_id"), self.request_id),
            retry_after_ms=retry_after_ms(self.headers),
        )

    async def _read(self, bytes_max: int) -> bytes:
        body = bytearray()
        async for chunk in self.chunks():
            body += chunk
            if len(body) > bytes_max:
                raise UnreachableError(self.url, f"an answer of more than {bytes_max} bytes")
        return bytes(body)


class Transport:
    """HTTP requests to one platform. Trusts its certificate authority, raises error answers as `ApiError`, and follows no redirects."""

    def __init__(self, base_url: str, ca: str | None) -> None:
        self.base_url = base_url.rstrip("/")
        self._http = httpx.AsyncClient(
            verify=tls_context(ca),
            follow_redirects=False,
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=20),
        )

    @asynccontextmanager
    async def request(
        self,
        path: str,
        body: object = None,
        *,
        method: str = "POST",
        bearer: str | None = None,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, Any] | None = None,
        form: Mapping[str, Any] | None = None,
        silence_ms: float = SILENCE_MS,
    ) -> AsyncIterator[Answer]:
        """Sends a request and gives the answer at its headers. `silence_ms` bounds the time without any byte.

        Raises ApiError for a status other than 2xx, and for a body that the platform would not take (`PAYLOAD_TOO_LARGE`): it closes the
        connection while such a body is sent. Raises UnreachableError without an answer.
        """
        url = f"{self.base_url}{path}"
        sent = {**(headers or {}), **({"authorization": f"Bearer {bearer}"} if bearer is not None else {})}
        timeout = httpx.Timeout(silence_ms / 1000, connect=min(_CONNECT_SECONDS, silence_ms / 1000), pool=None)
        request = self._http.build_request(
            method, url, json=body, data=form, headers=sent, params=params, timeout=timeout
        )
        _require_size(request, path)
        try:
            response = await self._http.send(request, stream=True)
        except (httpx.HTTPError, RuntimeError) as error:  # RuntimeError: the client is closed
            raise UnreachableError(url, error) from error
        try:
            answer = Answer(response)
            if not response.is_success:
                raise await answer.error()
            yield answer
        finally:
            await response.aclose()

    async def close(self) -> None:
        """Closes the connections; in-flight requests fail with `UnreachableError`."""
        await self._http.aclose()


def _require_size(request: httpx.Request, path: str) -> None:
    size = int(request.headers.get("content-length", 0))
    bytes_max = _DOCUMENTS_BYTES_MAX if path.startswith("/knowledge_base/") else _BODY_BYTES_MAX
    if size > bytes_max:
        remedy = _SHORTER if bytes_max == _BODY_BYTES_MAX else f"This request has at most {bytes_max} bytes: ingest documents one by one."
        raise ApiError(f"The body has {size} bytes. {remedy}", status=_TOO_LARGE, code="PAYLOAD_TOO_LARGE")


def retry_after_ms(headers: Mapping[str, str]) -> float | None:
    """The wait in milliseconds that an answer asks for in `Retry-After`; None without one."""
    try:
        seconds = float(headers.get("retry-after", ""))
    except ValueError:  # absent, or a date: the platform sends seconds
        return None
    return seconds * 1000 if seconds > 0 else None


def _text_or(value: object, fallback: str) -> str:
    return value if isinstance(value, str) and value else fallback
