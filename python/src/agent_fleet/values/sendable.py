"""What can be sent: JSON within the platform's limits."""

from __future__ import annotations

import inspect
import json
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError

from ..errors import UnsendableError
from ..limits import FRAME_BYTES, JSON_DEPTH
from .json_values import jsonable

ANSWER_BYTES_MAX = FRAME_BYTES - 1_024
"""The mesh refuses larger frames; the envelope and the ids around an answer need less than 1 KiB."""
_TEXT_MAX = 4_096
_SHOWN_CHARS = 100
_PATH_CHARS = 120


@dataclass(frozen=True, kw_only=True)
class Field:
    """A member of a frame whose value comes from a handler."""

    name: str
    """For error messages."""
    schema: TypeAdapter[Any]
    depth: int
    """Nesting level in the frame: the frame is 1, its payload 2."""
    remedy: str
    """What to return instead of an invalid value; the end of the error message."""
    max_bytes: int = ANSWER_BYTES_MAX
    """Limit on the JSON text; the size of a frame by default."""


def sendable(value: Any, field: Field) -> Any:
    """A copy of the value as the mesh will parse it, so that later changes of the handler's object do not change what is sent.

    Raises UnsendableError when it is no JSON, does not match the schema, or exceeds the platform's limits.
    """
    text = _json_of(value, field)
    size = len(well_formed(text))
    if size > field.max_bytes:
        message = f"{field.name}: {size} bytes of JSON are more than {field.max_bytes}; shorten it, or send the URI of a file"
        raise UnsendableError(message, "PAYLOAD_TOO_LARGE")
    copy = json.loads(text)
    problem = _problem_in(copy, field.depth, [field.name])
    if problem:
        raise UnsendableError(problem)
    try:
        field.schema.validate_python(copy, strict=True)
    except ValidationError as error:
        raise UnsendableError(f"{field.name}{_first_issue(error)}; {field.remedy}") from None
    return copy


def well_formed(text: str) -> bytes:
    """UTF-8; halves of surrogate pairs, which it does not have, become U+FFFD."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def shown(value: object) -> str:
    """A value of any type as text, for an error message. A coroutine in it is named: an `await` is missing."""
    values = value if isinstance(value, (list, tuple)) else [value]
    forgotten = next((each for each in values if inspect.iscoroutine(each)), None)
    if forgotten is None:
        return repr(value)[:_SHOWN_CHARS]
    forgotten.close()  # the error says it: no warning beside it
    return f"the coroutine {forgotten.__name__}(…), which was not awaited (write `await` before its call)"


def error_text(error: object) -> str:
    """The message of an error, as text that a frame can carry."""
    text = str(error) or type(error).__name__
    return text.replace("\0", "\ufffd")[:_TEXT_MAX]


def is_error_code(code: object) -> bool:
    """Whether the value can be an error code."""
    return isinstance(code, str) and 1 <= len(code) <= 64 and "\0" not in code


def issues_of(error: ValidationError) -> str:
    """Every problem that validation found, one a line."""
    issues = error.errors(include_url=False, include_context=False, include_input=False)
    return "\n".join(f"{'.'.join(map(str, issue['loc'])) or 'value'}: {issue['msg']}" for issue in issues)


def _json_of(value: Any, field: Field) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=jsonable)
    except (TypeError, ValueError, RecursionError) as error:
        raise UnsendableError(f"{field.name} cannot be written as JSON: {error_text(error)}; {field.remedy}") from None


def _problem_in(value: Any, depth: int, path: list[str]) -> str | None:
    """Why the platform does not accept a JSON value: its depth, NUL characters, keys that reach a JavaScript prototype."""
    if isinstance(value, str):
        return _problem(path, "holds a NUL character", "remove it: text.replace('\\0', '')") if "\0" in value else None
    if not isinstance(value, (dict, list)):
        return None
    if depth > JSON_DEPTH:
        remedy = "the levels of the frame around it count too: make it flatter, or send it as text"
        return _problem(path, f"is nested deeper than {JSON_DEPTH}", remedy)
    members = value.items() if isinstance(value, dict) else ((str(at), item) for at, item in enumerate(value))
    for key, member in members:
        if isinstance(value, dict) and (problem := _key_problem(key, member)):
            return _problem(path, problem, "rename it")
        found = _problem_in(member, depth + 1, [*path, key])
        if found:
            return found
    return None


def _key_problem(key: str, member: Any) -> str | None:
    if key == "__proto__":
        return f"holds the key {key}"
    if key == "constructor" and isinstance(member, dict) and "prototype" in member:
        return "holds the key constructor.prototype"
    if "\0" in key:
        return "holds a NUL character in a key"
    return "holds a key that is not well-formed Unicode" if any("\ud800" <= char <= "\udfff" for char in key) else None


def _problem(path: list[str], problem: str, remedy: str) -> str:
    where = ".".join(path).replace("\0", "\ufffd")
    return f"{where if len(where) <= _PATH_CHARS else where[:_PATH_CHARS] + '…'} {problem}; {remedy}"


def _first_issue(error: ValidationError) -> str:
    issue = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = "".join(f".{item}" for item in issue["loc"])[:_PATH_CHARS]
    return f"{where}: {issue['msg']}"
