"""From the result of a handler to the frame that ends its dispatch."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from ..errors import UnsendableError
from ..parts import Artifact, Usage
from ..values.json_values import is_record, parts_of
from ..values.parameters import InvalidInput
from ..values.sendable import ANSWER_BYTES_MAX, error_text, is_error_code, sendable, shown, well_formed
from .answer_fields import ARTIFACTS, PART_FORMS, PARTS, QUESTION, USAGE
from .form_schema import require_form
from .results import Completed, Failed, InputRequired

_ANSWER_FORMS = (
    "return text, a part, a dict, a pydantic model, a dataclass, or a list of these; Completed(…), Failed(…), task.ask(…), "
    "None after streaming, or an iterator"
)


@dataclass(frozen=True)
class ResultFrame:
    """Type and payload of the frame that ends a dispatch: `dispatch_result` or `error`."""

    type: str
    payload: dict[str, Any]


def result_frame_of(
    result: object, streamed: Artifact, dispatch: dict[str, Any], on_invalid_usage: Callable[[str], None]
) -> ResultFrame:
    """The frame for what a handler returned.

    `streamed` is the answer when it returned none. A returned answer uses the same artifact id, so that a reader of the stream
    sees one output. `on_invalid_usage` gets the reason why `usage` is left out; an invalid usage does not fail the answer.
    Raises UnsendableError when the mesh would refuse the frame.
    """
    frame = _build(_normalize(result), streamed, dispatch, on_invalid_usage)
    size = len(well_formed(json.dumps(frame.payload, ensure_ascii=False, separators=(",", ":"))))
    if size <= ANSWER_BYTES_MAX:
        return frame
    raise UnsendableError(f"the answer has {size} bytes, at most {ANSWER_BYTES_MAX} can be sent; shorten it")


def error_frame_of(error: object) -> ResultFrame:
    """The frame for an error that a handler raised."""
    code = "INVALID_DISPATCH" if isinstance(error, InvalidInput) else "HANDLER_ERROR"
    return ResultFrame("error", {"code": code, "message": error_text(error), "retryable": False})


def aborted_frame(code: str) -> ResultFrame:
    """The frame of a dispatch whose handler was ended from outside."""
    payload: dict[str, Any] = {"code": code, "message": f"the task was ended ({code})", "retryable": False}
    if code == "AGENT_DISCONNECTED":
        payload["unfinished"] = True
    return ResultFrame("error", payload)


def task_in(state: str, ids: tuple[str, str], text: str | None = None) -> dict[str, Any]:
    """An A2A task in a state, with an optional text of its status. `ids` are those of the task and of its context."""
    id, context_id = ids
    status: dict[str, Any] = {"state": state, "timestamp": now()}
    if text is not None:
        said = {"kind": "message", "messageId": str(uuid.uuid4()), "role": "agent", "parts": [{"kind": "text", "text": text}]}
        status["message"] = {**said, "taskId": id, "contextId": context_id}
    return {"kind": "task", "id": id, "contextId": context_id, "status": status}


def message_ids(dispatch: dict[str, Any]) -> tuple[str, str]:
    """The ids of a message's task for its callers."""
    context = dispatch["session_context"]
    return context["message_id"], context["session_id"]


def now() -> str:
    """ISO 8601 UTC with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _normalize(result: object) -> Completed | InputRequired | Failed:
    if result is None or result == "":
        return Completed()
    if isinstance(result, str):
        return Completed(text=result)
    if isinstance(result, (Completed, InputRequired, Failed)):
        return result
    if isinstance(result, (list, tuple)):
        return Completed(parts=result)
    if is_record(result):
        return Completed(parts=[result])
    raise UnsendableError(f"the answer is {shown(result)}; {_ANSWER_FORMS}")


def _build(
    result: Completed | InputRequired | Failed,
    streamed: Artifact,
    dispatch: dict[str, Any],
    on_invalid_usage: Callable[[str], None],
) -> ResultFrame:
    if isinstance(result, Failed):
        return _failed(result)
    usage = _usage_of(result.usage, on_invalid_usage)
    if isinstance(result, Completed):
        status: dict[str, Any] = {"state": "completed"}
        artifacts, task = _artifacts_of(result, streamed), task_in("completed", message_ids(dispatch))
    else:
        question = sendable(result.question, QUESTION)
        require_form(question)
        status = {"state": "input-required", "input_request": question}
        artifacts, task = _non_empty(streamed), task_in("input-required", message_ids(dispatch), question["prompt"])
    if artifacts:
        task["artifacts"] = artifacts
    return ResultFrame("dispatch_result", {"result": task, "status": status, **({"usage": usage} if usage else {})})


def _artifacts_of(result: Completed, streamed: Artifact) -> list[Artifact]:
    """A returned answer replaces the streamed output; without one the streamed output is the answer."""
    artifacts = sendable(list(result.artifacts or []), ARTIFACTS)
    if artifacts:
        return [cast(Artifact, {"artifactId": f"artifact-{at}", **each}) for at, each in enumerate(artifacts, 1)]
    parts_given = result.parts if isinstance(result.parts, (list, tuple)) else [] if result.parts is None else [result.parts]
    given = [*([result.text] if result.text else []), *parts_given]
    unsent = parts_of(given)
    if unsent is None:
        raise UnsendableError(f"parts: {shown(given)}; give text, parts, dicts, models or dataclasses, where {PART_FORMS}")
    parts = sendable(unsent, PARTS)
    return _non_empty({"artifactId": streamed["artifactId"], "parts": parts} if parts else streamed)


def _usage_of(usage: Usage | None, on_invalid: Callable[[str], None]) -> Usage | None:
    if usage is None:
        return None
    try:
        return cast(Usage, sendable(usage, USAGE))
    except UnsendableError as error:
        on_invalid(str(error))
        return None


def _failed(failed: Failed) -> ResultFrame:
    if not is_error_code(failed.code):
        problem = f"code: {shown(failed.code)} is not valid; a code has 1 to 64 characters"
        raise UnsendableError(f"{problem}. The failure was: {error_text(failed.message)}")
    message = error_text(failed.message)
    return ResultFrame("error", {"code": failed.code, "message": message, "retryable": failed.retryable is True})


def _non_empty(artifact: Artifact) -> list[Artifact]:
    return [artifact] if artifact["parts"] else []
