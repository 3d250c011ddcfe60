"""The address of the node that holds the agent's work."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from .mesh_connection import ConnectionEnd

_ADDRESS_CHARS_MAX = 2_048
"""Longest address that is taken from a `welcome`."""
_ATTEMPTS_MAX = 2
"""Attempts at the address of the node when each is answered with 401: the second has a new token."""


class ResumeAddress:
    """The node's own address, as its `welcome` gave it: it is tried before the agent's usual address."""

    def __init__(self) -> None:
        self._url: str | None = None
        self._attempts = 0

    def set(self, resume_url: object, connected_to: str) -> None:
        """Takes the address of the newest `welcome`. `connected_to` is the address of its connection."""
        self._url = _acceptable(resume_url, connected_to)
        self._attempts = 0

    def forget(self) -> None:
        """The node keeps nothing for the agent, or stops."""
        self._url = None

    def next(self) -> str | None:
        """The address for the next attempt; None: the agent's usual one."""
        if self._url is not None:
            self._attempts += 1
        return self._url

    def failed(self, end: ConnectionEnd) -> None:
        """An attempt at this address brought no `welcome`."""
        if end.http_status != 401 or self._attempts >= _ATTEMPTS_MAX:
            self._url = None


def with_instance(url: str, instance_id: str) -> str:
    """The address of a mesh with the `instance_id` parameter, and without a fragment."""
    parts = urlsplit(url)
    query = [(name, value) for name, value in parse_qsl(parts.query, keep_blank_values=True) if name != "instance_id"]
    return urlunsplit((parts.scheme, parts.netloc, parts.path, urlencode([*query, ("instance_id", instance_id)]), ""))


def _acceptable(given: object, connected_to: str) -> str | None:
    """The address when the agent may send its token there; None otherwise.

    Over a connection with TLS only an address with TLS counts, so that a `welcome` cannot make the agent show its token in the
    clear.
    """
    if not isinstance(given, str) or len(given) > _ADDRESS_CHARS_MAX:
        return None
    try:
        url, current = urlsplit(given), urlsplit(connected_to)
        has_host = bool(url.hostname) and url.port != 0  # `port` raises for one that is no number
    except ValueError:
        return None
    scheme = {"http": "ws", "https": "wss"}.get(url.scheme, url.scheme)
    is_allowed = scheme == "wss" or (scheme == "ws" and current.scheme == "ws")
    if not has_host or not is_allowed or "@" in url.netloc or any(char.isspace() for char in given):
        return None
    instance_id = dict(parse_qsl(current.query)).get("instance_id", "")
    return with_instance(urlunsplit((scheme, url.netloc, url.path, url.query, "")), instance_id)
