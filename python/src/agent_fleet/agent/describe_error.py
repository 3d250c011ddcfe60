"""What a failed request or connection means, and what to do about it."""

from __future__ import annotations

import errno
import socket
import ssl
from urllib.parse import urlsplit

from ..connected.mesh_connection import ConnectionEnd
from ..errors import AgentError, ApiError, UnreachableError, is_transient

_CHECK_URL = "check `url` or FLEET_BASE_URL"
_CREDENTIAL = "`client_id` and `client_secret` (FLEET_CLIENT_ID, FLEET_CLIENT_SECRET), or `token` (FLEET_TOKEN)"
_HOST_UNREACHABLE = {errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN, errno.ETIMEDOUT}
_NOT_VALID_NOW = {9, 10}
"""OpenSSL: not yet valid, expired."""
_OTHER_NAME = {62, 63, 64}
"""OpenSSL: the name, the e-mail or the IP address differs."""


def describe_error(error: BaseException, url: str) -> AgentError:
    """Explains a failed registration or token request. `url` is the API's."""
    if isinstance(error, AgentError):
        return error
    origin = origin_of(url)
    if isinstance(error, ApiError):
        return _describe_api_error(error, origin)
    if isinstance(_innermost(error), ValueError) and isinstance(error, UnreachableError):
        return AgentError("NOT_A_PLATFORM", f"{origin} answers, but not as the platform does: {_CHECK_URL}")
    return _describe_network_error(error, origin, _CHECK_URL) or AgentError(
        "UNREACHABLE", str(error) or type(error).__name__
    )


def describe_connection_end(end: ConnectionEnd, url: str) -> AgentError:
    """Explains the end of a connection to the mesh. `url` is the mesh's."""
    origin = origin_of(url)
    if end.http_status is not None:
        code = end.code or f"HTTP_{end.http_status}"
        return AgentError(code, f"the mesh at {origin} refused the connection: {end.message}")
    if end.timed_out:
        return AgentError("MESH_SILENT", f"the mesh at {origin} is silent: {end.message}")
    check = "it is the address of the mesh that the platform named: can it be reached from here?"
    described = _describe_network_error(end.error, origin, check) if end.error else None
    if described:
        return described
    if end.code:
        return AgentError(end.code, f"the mesh ended the connection with {end.code}: {end.message}")
    detail = ", ".join(str(part) for part in (end.close_code, end.message) if part)
    return AgentError("CONNECTION_LOST", f"the connection to the mesh at {origin} was lost ({detail})")


def no_answer(url: str) -> AgentError:
    """The server accepted a request and has not answered it yet."""
    return AgentError("NO_ANSWER", f"{origin_of(url)} has taken a request and does not answer it: {_CHECK_URL}")


def is_host_unreachable(error: BaseException | None) -> bool:
    """Whether no host answers at the address, which may be outdated."""
    if error is None:
        return False
    cause = _innermost(error)
    if isinstance(cause, (socket.gaierror, ConnectionRefusedError)):
        return True
    # asyncio joins the failures of several addresses of one name into one error without a number.
    is_joined = isinstance(cause, OSError) and cause.errno is None and "Connect call failed" in str(cause)
    return is_joined or (isinstance(cause, OSError) and cause.errno in _HOST_UNREACHABLE)


def is_unknown_agent(error: BaseException) -> bool:
    """Whether the platform does not know the agent any more, for example after a long silence."""
    return isinstance(error, ApiError) and error.status == 404 and error.code == "NOT_FOUND"


def origin_of(url: str) -> str:
    """Scheme, host and port, without credentials and parameters."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _describe_api_error(error: ApiError, origin: str) -> AgentError:
    status, code, message = error.status, error.code, error.message
    if status == 401:
        return AgentError(code, f"the platform refused the credential: {message} Check {_CREDENTIAL}.")
    if status == 403:
        remedy = "Check the `type` of the agent, and which types its credential may ask for and may join."
        return AgentError(code, f"the platform refused the agent: {message} {remedy}")
    if status == 426 or (status == 404 and code == "NOT_FOUND"):
        remedy = "that is the address of the mesh. Give the API's, for example http://127.0.0.1:8080"
        return AgentError("NOT_THE_API", f"{origin} is not the platform's API ({message}): {remedy}; {_CHECK_URL}")
    if 300 <= status <= 399:
        remedy = "redirects are not followed; give the address that it leads to"
        return AgentError(code, f"{origin} answers with a redirect ({status}): {remedy}; {_CHECK_URL}")
    if code != f"HTTP_{status}":
        return AgentError(code, f"the platform at {origin} answered {status} {code}: {message}")
    # Every error of the platform has a code. An answer without one is from another program, or from a proxy.
    if status < 500 and not is_transient(error):
        return AgentError("NOT_A_PLATFORM", f"{origin} is no platform ({message}): {_CHECK_URL}")
    return AgentError(code, f"{origin} answers {status}, and not as the platform does: is it running? {_CHECK_URL}")


def _describe_network_error(error: BaseException, origin: str, check: str) -> AgentError | None:
    cause = _innermost(error)
    if isinstance(cause, socket.gaierror):
        return AgentError("UNKNOWN_HOST", f"the host of {origin} is not known ({cause.strerror}): {check}")
    if isinstance(cause, ssl.SSLCertVerificationError):
        what = cause.verify_message
        if cause.verify_code in _NOT_VALID_NOW:
            remedy = "renew it, or set the clock"
            return AgentError("INVALID_CERTIFICATE", f"the certificate of {origin} is not valid now ({what}): {remedy}")
        if cause.verify_code in _OTHER_NAME:
            remedy = "use a name that it is for, or give the server another one"
            return AgentError("INVALID_CERTIFICATE", f"the certificate of {origin} is for other names ({what}): {remedy}")
        remedy = "set `ca` or FLEET_CA_FILE to the certificate authority that issued it"
        return AgentError("UNTRUSTED_CERTIFICATE", f"the certificate of {origin} is not trusted ({what}): {remedy}")
    if isinstance(cause, ssl.SSLError):
        return AgentError("NO_TLS", f"{origin} does not speak TLS ({cause.reason}): is it http:// there? {check}")
    if is_host_unreachable(cause):
        return AgentError("UNREACHABLE", f"nothing answers at {origin} ({cause}): is the platform running? {check}")
    return None


def _innermost(error: BaseException) -> BaseException:
    """The error at the root of a chain."""
    if isinstance(error, BaseExceptionGroup):
        return _innermost(error.exceptions[0])
    cause = error.__cause__ or error.__context__
    return _innermost(cause) if cause is not None else error
