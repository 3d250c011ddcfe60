"""Verification of the platform's tokens for any ASGI app."""

from __future__ import annotations

from ..access import CertificateAuthority
from .asgi import ASGIApp, Receive, Scope, Send, header, is_card_request, send_refusal
from .platform_tokens import PlatformTokens


class PlatformAuth:
    """ASGI middleware that lets only the platform's requests to an app, for example to an A2A server of another library.

    `app.add_middleware(PlatformAuth, jwks_url=…, instance_id=…, tenant_id=…)` in Starlette and FastAPI, with what
    `client.agents.register(…)` has answered. The agent card stays public.
    """

    def __init__(
        self, app: ASGIApp, *, jwks_url: str, instance_id: str, tenant_id: str, ca: CertificateAuthority | None = None
    ) -> None:
        self._app = app
        self._tokens = PlatformTokens(jwks_url=jwks_url, instance_id=instance_id, tenant_id=tenant_id, ca=ca)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] == "http" and not is_card_request(scope):
            verdict = await self._tokens.verify(header(scope, "authorization"))
            if verdict != "trusted":
                await send_refusal(send, verdict)
                return
        await self._app(scope, receive, send)
