"""The answers of tasks: their text, and their data."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterable, Mapping
from typing import Any, TypeVar, overload

from ..errors import TaskFailedError, TaskNotEndedError
from ..parts import text_of_parts
from ..values.parameters import read_as
from .rpc import StreamEvent

T = TypeVar("T")


def text_of(value: Mapping[str, Any] | Iterable[Mapping[str, Any]]) -> str:
    """The text of a task's answer, or of a message's (`client.messages.wait_for`). Also the text of an artifact, of an A2A message, or of
    parts. Texts are joined by line feeds.

    It is never a question, and never an error. Raises TaskNotEndedError for a task that waits for a human or still works, and
    TaskFailedError for one that has ended without an answer.
    """
    if not isinstance(value, Mapping):
        return text_of_parts(value)
    if "assistant_output" in value:
        _require_answer(value["message_id"], value["state"], _reason_of(value), _error_code_of(value.get("error")))
        return str(value["assistant_output"])
    if "status" not in value:
        return text_of_parts(value["parts"])
    status, text = value["status"], _status_text(value["status"])
    _require_answer(value["id"], status["state"], text, _error_code_of((value.get("metadata") or {}).get("error")))
    texts = [text for artifact in value.get("artifacts") or [] if (text := text_of_parts(artifact["parts"]))]
    return "\n".join(texts) or text


@overload
def data_of(value: Mapping[str, Any]) -> dict[str, Any]: ...
@overload
def data_of(value: Mapping[str, Any], type: type[T]) -> T: ...
def data_of(value: Mapping[str, Any], type: Any = dict) -> Any:
    """The first data part of a task's or a message's answer, as pydantic reads it for a type: a dict, a model or a dataclass.

    Raises ValueError for an answer without data, or with other data; for a task without an answer what `text_of` raises.
    """
    text_of(value)
    for artifact in value.get("artifacts") or []:
        for part in artifact["parts"]:
            if part["kind"] == "data":
                return read_as(type, part["data"])
    raise ValueError("the answer has no data part")


async def text_stream(
    events: AsyncIterable[StreamEvent], *, on_restart: Callable[[], object] | None = None
) -> AsyncGenerator[str, None]:
    """The text of a streamed answer as it arrives: `async for text in text_stream(client.stream("Hello"))`.

    Together the pieces are `text_of` the task. An artifact that is sent again, whole, adds only what is new of it; where it says
    something else than was streamed, it follows on a line of its own. When the agent was lost and the answer starts anew, the text that
    repeats what is there is dropped; `on_restart` is called instead where it is given, and the whole text follows.

    Raises TaskFailedError when the task ends without being completed, and TaskNotEndedError when it waits for a human: a stream with
    `through_questions=True` goes on with the answer.
    """
    output = _StreamedText()
    waiting: TaskNotEndedError | None = None
    try:
        async for event in events:
            if output.starts_anew(event) and on_restart:
                output = _StreamedText()
                on_restart()
            waiting = None
            for piece in _pieces_of(event, output):
                if piece:
                    yield piece
            try:
                if text := _end_of(event, output):
                    yield text
            except TaskNotEndedError as error:
                waiting = error  # a stream through questions goes on
        if waiting:
            raise waiting
    finally:
        if isinstance(events, AsyncGenerator):
            await events.aclose()  # else its connection would be closed by the end of the event loop, in no order


def _pieces_of(event: Mapping[str, Any], output: _StreamedText) -> list[str]:
    match event["kind"]:
        case "artifact-update":
            return [output.add(event["artifact"], event.get("append") is True)]
        case "task":
            return [output.add(artifact, False) for artifact in event.get("artifacts") or []]
    return []


def _end_of(event: Mapping[str, Any], output: _StreamedText) -> str:
    """The text of the status of an answer where nothing else was shown. Raises what `text_of` raises, but for a task that works."""
    if event["kind"] != "task" and not (event["kind"] == "status-update" and event["final"]):
        return ""
    task_id = event["id"] if event["kind"] == "task" else event["taskId"]
    state, text = event["status"]["state"], _status_text(event["status"])
    if state in ("submitted", "working", "unknown"):
        return ""
    _require_answer(task_id, state, text, _error_code_of((event.get("metadata") or {}).get("error")))
    return text if output.is_empty else ""


def _require_answer(task_id: str, state: str, text: str, code: str | None) -> None:
    if state in ("failed", "canceled", "rejected"):
        raise TaskFailedError(text or f"the task is {state}", code=code or state, task_id=task_id, state=state)
    if state != "completed":
        what = f"waits for a human: {text}" if state in ("input-required", "auth-required") else f"is {state}"
        remedy = "Wait for its end: `through_questions=True`, or `client.messages.wait_for_end(id)`."
        raise TaskNotEndedError(f"The task {what}. {remedy}", task_id=task_id, state=state, text=text)


def _status_text(status: Mapping[str, Any]) -> str:
    return text_of_parts((status.get("message") or {}).get("parts") or [])


def _reason_of(record: Mapping[str, Any]) -> str:
    asked, error = record.get("input_request"), record.get("error")
    return str(asked["prompt"] if asked else error["message"] if error else "")


def _error_code_of(error: object) -> str | None:
    code = error.get("code") if isinstance(error, Mapping) else None
    return str(code) if code else None


class _StreamedText:
    """The text of artifacts that grow, or are replaced."""

    def __init__(self) -> None:
        self._shown: dict[str, tuple[str, bool]] = {}
        """By artifact: the text that the reader has, and whether it ends in plain text, which further plain text continues."""
        self._last: str | None = None
        """The artifact whose text came last."""
        self._text = ""
        """All that the reader has."""
        self._before = ""
        """What the reader has of a run that was lost, and the present one has not said again."""

    @property
    def is_empty(self) -> bool:
        return self._last is None and not self._before

    def starts_anew(self, event: Mapping[str, Any]) -> bool:
        """Whether the event says that the answer begins again. What was shown counts as said by the new run as far as it repeats it."""
        if event["kind"] != "status-update" or (event.get("metadata") or {}).get("restarted") is not True:
            return False
        self._before, self._text = self._text, ""
        self._shown.clear()
        self._last = None
        return True

    def add(self, artifact: Mapping[str, Any], append: bool) -> str:
        """Takes an update, and gives what the reader lacks."""
        return self._unrepeated(self._piece(artifact, append))

    def _unrepeated(self, piece: str) -> str:
        """The piece without what the reader has of a lost run. Where the new run says something else, all its text so far."""
        self._text += piece
        if not self._before or not piece:
            return piece
        if self._before.startswith(self._text):
            return ""
        repeated, self._before = self._before, ""
        return self._text[len(repeated) :] if self._text.startswith(repeated) else f"\n{self._text}"

    def _piece(self, artifact: Mapping[str, Any], append: bool) -> str:
        id = artifact["artifactId"]
        known, continues = self._shown.get(id, ("", False))
        now = (known, continues) if append else ("", False)
        for part in artifact["parts"]:
            now = _with_part(now, part)
        self._shown[id] = now
        text = now[0]
        if text == known or (not append and known.startswith(text)):
            return ""
        is_continued = text.startswith(known)
        piece = text[len(known) :] if is_continued else text
        needs_break = self._last is not None and (not is_continued or self._last != id)
        self._last = id
        return f"\n{piece}" if needs_break else piece


def _with_part(shown: tuple[str, bool], part: Mapping[str, Any]) -> tuple[str, bool]:
    text, continues = shown
    if part.get("kind") != "text":
        return text, False
    is_plain = not part.get("metadata")
    if continues and is_plain:
        return text + part["text"], True
    return f"{text}\n{part['text']}" if text else part["text"], is_plain
