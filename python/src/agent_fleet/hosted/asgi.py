"""What an ASGI app needs, without a framework."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
ASGIApp = Callable[[Scope, Receive, Send], Awaitable[None]]

CARD_PATH = "/.well-known/agent-card.json"
"""The end of the path of an agent card, which everybody may read."""


def header(scope: Scope, name: str) -> str | None:
    """A header of a request."""
    wanted = name.encode()
    return next((value.decode("latin-1") for key, value in scope["headers"] if key == wanted), None)


def is_card_request(scope: Scope) -> bool:
    return scope["method"] in ("GET", "HEAD") and str(scope["path"]).endswith(CARD_PATH)


async def send_json(send: Send, status: int, body: object, headers: list[tuple[bytes, bytes]] | None = None) -> None:
    """Answers with JSON."""
    sent = [(b"content-type", b"application/json"), *(headers or [])]
    await send({"type": "http.response.start", "status": status, "headers": sent})
    await send({"type": "http.response.body", "body": json.dumps(body).encode()})


async def send_refusal(send: Send, verdict: str) -> None:
    """Answers a request whose token was not trusted. A stranger gets no details."""
    if verdict == "not_ready":  # the request is not read, so the platform may send it to another agent
        await send_json(send, 503, {"error": "the agent cannot check the bearer token yet", "code": "AGENT_NOT_READY"})
    else:
        await send_json(send, 401, {"error": "the bearer token is not the platform's"}, [(b"www-authenticate", b"Bearer")])


async def read_body(receive: Receive, bytes_max: int) -> bytes | None:
    """The body of a request; None for one that is too large, or broke off."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        body += message.get("body", b"")
        if len(body) > bytes_max:
            return None
        if not message.get("more_body"):
            return bytes(body)
