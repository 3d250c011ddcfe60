"""The tokens with which the platform posts to hosted agents."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any, Literal

import httpx
import jwt

from ..access import CertificateAuthority, certificates, tls_context
from ..log import DEFAULT_LOG

Verdict = Literal["trusted", "refused", "not_ready"]
"""`not_ready`: the token cannot be checked now, because the platform's keys cannot be fetched."""

_LEEWAY_SECONDS = 5
_COOLDOWN_SECONDS = 1.0
"""Minimum interval between two fetches, failed ones too: keys are rotated, but strangers must not cause requests at will."""
_KEYS_SECONDS = 10.0
_FRESH_SECONDS = 600.0
"""Keys that are older are fetched again: one that the platform has withdrawn is trusted no longer."""
_STALE_SECONDS = 3_600.0
"""How old keys may be while they cannot be fetched again."""


class _KeysUnavailable(Exception):
    """The platform's keys cannot be fetched."""


class PlatformTokens:
    """Checks the token that the platform sends with every dispatch: signed by it, for this instance and this tenant.

    The audience alone is not enough, because another tenant may have an instance with the same id.
    """

    def __init__(
        self,
        *,
        jwks_url: str,
        instance_id: str,
        tenant_id: str,
        ca: CertificateAuthority | None = None,
        log: logging.Logger = DEFAULT_LOG,
    ) -> None:
        """`jwks_url`, `instance_id` and `tenant_id` are those of the answer to the registration. `ca` as for `Agent`."""
        self._jwks_url = jwks_url
        self._instance_id = instance_id
        self._tenant_id = tenant_id
        self._tls = tls_context(None if ca is None else certificates(ca, "`ca`"))
        self._log = log
        self._keys: dict[str, jwt.PyJWK] = {}
        self._fetched_at = float("-inf")
        self._tried_at = float("-inf")
        self._failure: Exception | None = None
        """Of the last fetch; None where it succeeded."""
        self._fetching = asyncio.Lock()
        self._reported: set[str] = set()

    async def verify(self, authorization: str | None) -> Verdict:
        """The verdict on an `Authorization` header. Each reason of a refusal is logged once."""
        scheme, _, token = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            return self._refuse("missing", "a request without a token was refused: callers use the platform's /send")
        try:
            claims = await self._claims_of(token.strip())
        except _KeysUnavailable as error:
            self._refuse("keys", f"the platform's keys at {self._jwks_url} cannot be fetched: {error}")
            return "not_ready"
        except jwt.ExpiredSignatureError:
            return self._refuse("expired", "a token was refused as expired: do the clocks of this machine and the platform's agree?")
        except (jwt.InvalidAudienceError, jwt.MissingRequiredClaimError):
            return self._refuse("other_agent", "a token was refused: it is for another instance")
        except (jwt.PyJWTError, KeyError) as error:
            return self._refuse("invalid", f"a token was refused: none of the keys at {self._jwks_url} signed it ({error})")
        if claims.get("tenant_id") != self._tenant_id:
            return self._refuse("other_agent", "a token was refused: it is for another tenant")
        return "trusted"

    async def _claims_of(self, token: str) -> dict[str, Any]:
        key_id = str(jwt.get_unverified_header(token).get("kid"))
        if self._needs_fetch(key_id):
            async with self._fetching:
                if self._needs_fetch(key_id) and time.monotonic() - self._tried_at >= _COOLDOWN_SECONDS:
                    await self._fetch()
        if self._failure and (key_id not in self._keys or self._age > _STALE_SECONDS):
            raise _KeysUnavailable(repr(self._failure)) from self._failure
        key = self._keys[key_id]
        required = ["exp", "aud", "tenant_id"]
        return jwt.decode(
            token, key, algorithms=["EdDSA"], audience=self._instance_id, leeway=_LEEWAY_SECONDS, options={"require": required}
        )

    @property
    def _age(self) -> float:
        return time.monotonic() - self._fetched_at

    def _needs_fetch(self, key_id: str) -> bool:
        return key_id not in self._keys or self._age > _FRESH_SECONDS

    async def _fetch(self) -> None:
        try:
            async with httpx.AsyncClient(verify=self._tls, timeout=_KEYS_SECONDS) as http:
                answer = (await http.get(self._jwks_url)).raise_for_status()
            keys = jwt.PyJWKSet.from_dict(answer.json()).keys
        except (httpx.HTTPError, jwt.PyJWTError, ValueError, AttributeError, TypeError) as error:
            self._failure = error  # AttributeError and TypeError: JSON that is no set of keys
        else:
            self._failure = None
            self._fetched_at = time.monotonic()
            self._keys = {key.key_id: key for key in keys if key.key_id}
        self._tried_at = time.monotonic()

    def _refuse(self, reason: str, text: str) -> Verdict:
        if reason not in self._reported:
            self._reported.add(reason)
            self._log.warning("%s", text)
        return "refused"
