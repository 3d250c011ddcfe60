"""The platform's address and the caller's credential, from options and the environment."""

from __future__ import annotations

import json
import os
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from os import PathLike
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

CertificateAuthority = str | bytes | PathLike[str]
"""Certificates in PEM, as text or bytes, or the path of a file that holds them."""

TokenProvider = Callable[[], str | Awaitable[str]]
"""Returns a valid access token. Called again when the last token is about to expire, or was refused."""

Role = Literal["caller", "agent"]
"""Selects the credential of a local platform: the one for callers, or the one for agents."""

_TLS_CONTEXTS_MAX = 16
"""Limit on the TLS contexts that are kept, one for each `ca`."""
_EXAMPLE = "for example http://127.0.0.1:8080"


@dataclass(frozen=True, kw_only=True)
class Access:
    """The options `url`, `client_id`, `client_secret`, `token` and `ca` of `Agent` and `FleetClient`.

    Missing ones come from the environment: `FLEET_BASE_URL`, `FLEET_TOKEN`, or `FLEET_CLIENT_ID` and
    `FLEET_CLIENT_SECRET`, and `FLEET_CA_FILE`. Without any address the SDK uses the local platform that `npm start`
    runs, as `dev.json` in `FLEET_DATA_DIR` (`.fleet` by default) describes it.
    """

    url: str | None = None
    client_id: str | None = None
    client_secret: str | None = None
    token: str | TokenProvider | None = None
    ca: CertificateAuthority | None = None

    def resolved(self, role: Role = "caller", environment: Mapping[str, str] | None = None) -> ResolvedAccess:
        """Completes missing options from the environment.

        Raises ValueError that names the missing or invalid option.
        """
        env = os.environ if environment is None else environment
        url = self.url or env.get("FLEET_BASE_URL")
        found = self._complete(url, env) if url else self._local(role, env)
        _require_api_url(found.url)
        return found

    def _complete(self, url: str, env: Mapping[str, str]) -> ResolvedAccess:
        file = env.get("FLEET_CA_FILE")
        given, source = (self.ca, "`ca`") if self.ca is not None else (Path(file) if file else None, "FLEET_CA_FILE")
        ca = None if given is None else certificates(given, source)
        if self.token is not None:
            return ResolvedAccess(url, None, None, self.token, ca)
        client_id = self.client_id or env.get("FLEET_CLIENT_ID")
        client_secret = self.client_secret or env.get("FLEET_CLIENT_SECRET")
        if client_id and client_secret:
            return ResolvedAccess(url, client_id, client_secret, None, ca)
        token = env.get("FLEET_TOKEN")
        if token:
            return ResolvedAccess(url, None, None, token, ca)
        raise ValueError(
            "No credential: give client_id and client_secret, or a token (or FLEET_CLIENT_ID and FLEET_CLIENT_SECRET)."
        )

    def _local(self, role: Role, env: Mapping[str, str]) -> ResolvedAccess:
        """Takes both the address and the credential from `dev.json`, so that a local credential goes to no other address."""
        file = Path(env.get("FLEET_DATA_DIR") or ".fleet").resolve() / "dev.json"
        try:
            dev = json.loads(file.read_text("utf-8"))
        except (OSError, ValueError) as cause:
            raise ValueError(
                f"No platform: give url (or FLEET_BASE_URL); none runs here either ({file} cannot be read)."
            ) from cause
        prefix = "agent_" if role == "agent" else ""
        local = {
            "FLEET_CLIENT_ID": dev.get(f"{prefix}client_id") or "",
            "FLEET_CLIENT_SECRET": dev.get(f"{prefix}client_secret") or "",
            "FLEET_CA_FILE": dev.get("ca_file") or "",
        }
        return replace(self, url=None)._complete(dev.get("base_url") or "", local)


@dataclass(frozen=True)
class ResolvedAccess:
    """`Access` with every missing option resolved: `client_id` and `client_secret`, or `token`."""

    url: str
    client_id: str | None
    client_secret: str | None
    token: str | TokenProvider | None
    ca: str | None


@lru_cache(maxsize=_TLS_CONTEXTS_MAX)
def tls_context(ca: str | None) -> ssl.SSLContext:
    """The TLS context of this process that trusts `ca` (PEM) in addition to the default authorities.

    All connections share it: reading the default authorities takes tens of milliseconds, in which the event loop stands still,
    and a megabyte.
    """
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])  # as httpx does with the context that it is given; WebSockets begin with it too
    if ca is not None:
        context.load_verify_locations(cadata=ca)
    return context


def certificates(ca: CertificateAuthority, source: str) -> str:
    """The certificates in PEM. Raises ValueError that says where they come from: `source`, and text, bytes or which file."""
    if isinstance(ca, str) and "-----BEGIN" in ca:
        pem, what = ca, f"the text in {source}"
    elif isinstance(ca, bytes):
        pem, what = ca.decode("ascii", "replace"), f"the bytes in {source}"
    else:
        file = Path(ca).absolute()
        what = f"the file {file} ({source})"
        try:
            pem = file.read_text("utf-8")
        except (OSError, ValueError) as cause:
            hint = "; PEM as text begins with -----BEGIN CERTIFICATE-----" if isinstance(ca, str) else ""
            raise ValueError(f"The certificate authority cannot be read: {what}: {cause}{hint}.") from cause
    try:
        tls_context(pem)
    except (ssl.SSLError, ValueError) as cause:
        raise ValueError(f"The certificate authority is not one or more certificates in PEM: {what}.") from cause
    return pem


def _require_api_url(url: str) -> None:
    parts = urlsplit(url)
    scheme = parts.scheme
    if scheme in ("http", "https") and parts.netloc:
        if parts.query or parts.fragment:
            raise ValueError(f"{url} has parameters. Give the address alone, with its path if it has one (`url` or FLEET_BASE_URL).")
        return
    is_mesh = scheme in ("ws", "wss")
    remedy = "That is the address of a mesh; give the API's" if is_mesh else "Give one with http:// or https://"
    raise ValueError(f"{url} is not the address of an API. {remedy} (`url` or FLEET_BASE_URL), {_EXAMPLE}.")
