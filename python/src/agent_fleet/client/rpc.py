"""JSON-RPC of A2A 0.3 over `/send`."""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator
from typing import Any, Literal, NotRequired, cast

from typing_extensions import TypedDict

from ..errors import ApiError, UnreachableError
from ..parts import Artifact, JsonObject
from .generated.models import TaskStatus
from .sent_task import Task
from .streams.event_reader import read_events
from .transport import Answer


class StatusUpdate(TypedDict):
    """The state of a task has changed."""

    kind: Literal["status-update"]
    taskId: str
    contextId: str
    status: TaskStatus
    final: bool
    metadata: NotRequired[JsonObject]


class ArtifactUpdate(TypedDict):
    """A task has further output."""

    kind: Literal["artifact-update"]
    taskId: str
    contextId: str
    artifact: Artifact
    append: NotRequired[bool]
    lastChunk: NotRequired[bool]
    metadata: NotRequired[JsonObject]


StreamEvent = Task | StatusUpdate | ArtifactUpdate
"""One event of a stream, told by its `kind`: the task first, then its updates. A newer platform may send other kinds."""


def rpc_request(method: str, params: JsonObject) -> JsonObject:
    """A JSON-RPC 2.0 request."""
    return {"jsonrpc": "2.0", "id": str(uuid.uuid4()), "method": method, "params": params}


_STATUS_OF_CODE = {
    **dict.fromkeys(("TASK_NOT_FOUND", "SESSION_NOT_FOUND", "PUSH_CONFIG_NOT_FOUND", "NOT_FOUND"), 404),
    **dict.fromkeys(("SESSION_CLOSED", "ALREADY_TERMINAL", "NOT_AWAITING_INPUT", "IDEMPOTENCY_MISMATCH", "UNSUPPORTED_OPERATION"), 409),
    **{"forbidden": 403, "unauthorized": 401, "PAYLOAD_TOO_LARGE": 413, "SERVICE_UNAVAILABLE": 503},
    **dict.fromkeys(("RATE_LIMITED", "QUOTA_EXCEEDED"), 429),
}
_STATUS_OF_NUMBER = {-32001: 404, -32002: 409, -32004: 409, -32601: 404, -32603: 500}
_BAD_REQUEST = 400


def rpc_result(response: JsonObject, request_id: str = "") -> Any:
    """The `result` of a JSON-RPC response. Raises ApiError when the response is an error; `request_id` is that of its HTTP answer."""
    error = response.get("error")
    if not isinstance(error, dict):
        return response.get("result")
    number = error.get("code")
    rpc_code = number if isinstance(number, int) else None
    code = _code_of(error)
    status = _STATUS_OF_CODE.get(code) or _STATUS_OF_NUMBER.get(rpc_code or 0, _BAD_REQUEST)
    text = str(error.get("message") or "JSON-RPC error")
    raise ApiError(text, status=status, code=code, rpc_code=rpc_code, request_id=request_id)


def _code_of(error: JsonObject) -> str:
    """The platform's code, which is in `error.data`: directly, or in the first item of a list."""
    data = error.get("data")
    if isinstance(data, list):
        data = data[0] if data else None
    if isinstance(data, str):
        return data
    found = (data.get("code"), data.get("reason")) if isinstance(data, dict) else ()
    return next((code for code in found if isinstance(code, str)), str(error.get("code", "RPC_ERROR")))


async def stream_events(answer: Answer) -> AsyncIterator[tuple[str, StreamEvent]]:
    """The events of a streamed answer, each with the id after which a resume continues; empty when the stream has no ids.

    A JSON answer instead of a stream is an error or a single event. Raises ApiError for a JSON-RPC error, UnreachableError when
    the connection breaks before the stream's end.
    """
    if not answer.headers.get("content-type", "").startswith("text/event-stream"):
        yield "", cast(StreamEvent, rpc_result(await answer.json(), answer.request_id))
        return
    async for event in read_events(answer.chunks()):
        try:
            response = json.loads(event.data)
        except ValueError as error:
            raise UnreachableError(answer.url, error) from error
        yield event.id, cast(StreamEvent, rpc_result(response, answer.request_id))
