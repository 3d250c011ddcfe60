"""The text of answers."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Iterable, Mapping
from typing import Any

from ..errors import TaskFailedError
from ..parts import text_of_parts
from .rpc import StreamEvent


def text_of(value: Mapping[str, Any] | Iterable[Mapping[str, Any]]) -> str:
    """The text of a task's answer: that of its artifacts, or where they have none, of its status, which is the question that it
    asks or why it failed. Also the text of an artifact, of a message, or of parts. Texts are joined by line feeds."""
    if not isinstance(value, Mapping):
        return text_of_parts(value)
    if "parts" in value:
        return text_of_parts(value["parts"])
    texts = [text for artifact in value.get("artifacts") or [] if (text := text_of_parts(artifact["parts"]))]
    return "\n".join(texts) or text_of_parts((value["status"].get("message") or {}).get("parts") or [])


async def text_stream(events: AsyncIterable[StreamEvent]) -> AsyncGenerator[str, None]:
    """The text of a streamed answer as it arrives: `async for text in text_stream(client.stream("Hello"))`.

    Together the pieces are `text_of` the task. An artifact that is sent again, whole, adds only what is new of it; where it says
    something else than was streamed, it follows on a line of its own. Raises TaskFailedError when the task ends without being
    completed.
    """
    output = _StreamedText()
    try:
        async for event in events:
            for piece in _pieces_of(event, output):
                if piece:
                    yield piece
    finally:
        if isinstance(events, AsyncGenerator):
            await events.aclose()  # else its connection would be closed by the end of the event loop, in no order


def _pieces_of(event: Mapping[str, Any], output: _StreamedText) -> list[str]:
    match event["kind"]:
        case "artifact-update":
            return [output.add(event["artifact"], event.get("append") is True)]
        case "task":
            pieces = [output.add(artifact, False) for artifact in event.get("artifacts") or []]
            return [*pieces, _end_of(event["id"], event, output)]
        case "status-update":
            return [_end_of(event["taskId"], event, output)] if event["final"] else []
    return []  # of a newer platform


def _end_of(task_id: str, event: Mapping[str, Any], output: _StreamedText) -> str:
    """The text of the status where nothing else was shown. Raises TaskFailedError."""
    status = event["status"]
    state = status["state"]
    text = text_of_parts((status.get("message") or {}).get("parts") or [])
    if state in ("failed", "canceled", "rejected"):
        error = (event.get("metadata") or {}).get("error")
        code = error.get("code") if isinstance(error, dict) else None
        raise TaskFailedError(text or f"the task is {state}", code=str(code or state), task_id=task_id, state=state)
    return text if state not in ("submitted", "working") and output.is_empty else ""


class _StreamedText:
    """The text of artifacts that grow, or are replaced."""

    def __init__(self) -> None:
        self._shown: dict[str, tuple[str, bool]] = {}
        """By artifact: the text that the reader has, and whether it ends in plain text, which further plain text continues."""
        self._last: str | None = None
        """The artifact whose text came last."""

    @property
    def is_empty(self) -> bool:
        return self._last is None

    def add(self, artifact: Mapping[str, Any], append: bool) -> str:
        """Takes an update, and gives what the reader lacks."""
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
