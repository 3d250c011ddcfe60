"""When an agent stops for good."""

from __future__ import annotations

from ..connected.mesh_connection import ConnectionEnd
from ..errors import AgentStoppedError, ApiError
from ..limits import CLOSE_DEREGISTERED, CLOSE_POLICY_DENIED, CLOSE_REPLACED
from .describe_error import describe_error

_FINAL_STATUSES = (400, 403, 405, 409, 426)
"""A retry does not change these. A 401 is final only for the credential itself: a token is renewed."""
_REPLACED = "another process connected with the same instance_id and took its place (REPLACED)"
_DEREGISTERED = "the agent was deregistered (DEREGISTERED); start it again to register it anew"


def stop_reason(end: ConnectionEnd) -> AgentStoppedError | None:
    """The reason to stop for good after this end of a connection; None when the agent should reconnect."""
    if end.close_code == CLOSE_REPLACED or end.code == "REPLACED":
        return AgentStoppedError("REPLACED", _REPLACED)
    if end.close_code == CLOSE_DEREGISTERED or end.code == "DEREGISTERED":
        return AgentStoppedError("DEREGISTERED", _DEREGISTERED)
    if end.close_code == CLOSE_POLICY_DENIED:
        return AgentStoppedError("POLICY_DENIED", f"a policy denies the agent: {end.message}")
    if end.http_status in _FINAL_STATUSES:
        return AgentStoppedError(end.code, f"the mesh refused the agent: {end.message}")
    return None


def stop_reason_of_error(error: BaseException, *, url: str, has_joined: bool) -> AgentStoppedError | None:
    """Like `stop_reason`, for a failed registration or token request.

    `url` is the API's; after the first registration (`has_joined`) a 404 counts as a temporary answer of a proxy.
    """
    if isinstance(error, AgentStoppedError):
        return error
    if not isinstance(error, ApiError):
        return None
    if error.code == "DEREGISTERED":
        return AgentStoppedError("DEREGISTERED", _DEREGISTERED)
    if error.status not in (*_FINAL_STATUSES, 401) and (has_joined or error.status != 404):
        return None
    described = describe_error(error, url)
    return AgentStoppedError(described.code, described.message)
