"""The streamed output of a handler."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from functools import partial
from typing import Any, cast

from ..errors import UnsendableError
from ..limits import STATUS_TEXT_MAX
from ..parts import Artifact, Part
from ..values.json_values import parts_of
from ..values.sendable import ANSWER_BYTES_MAX, sendable, shown, well_formed
from .answer_fields import PART_FORMS, PARTS, STATUS
from .output_source import Output, OutputSource, chunks_of, is_source

ChunkContent = dict[str, Any]
"""A chunk without its sequence number."""


class TaskOutput:
    """One growing artifact, and status texts."""

    def __init__(self, artifact_id: str, send: Callable[[ChunkContent], Awaitable[None]]) -> None:
        """`artifact_id` is the id that the mesh gives to unnamed output, so that a reader of the stream sees one output."""
        self.artifact: Artifact = {"artifactId": artifact_id, "parts": []}
        """Everything that was streamed so far."""
        self.failure: Exception | None = None
        """Why a chunk could not be sent. It fails the task even when the handler catches the error."""
        self._send = send
        self._bytes = 0

    async def stream(self, output: Output | OutputSource) -> None:
        """Raises UnsendableError for a chunk that cannot be sent, or when the whole output exceeds the size of a frame."""
        if not is_source(output):
            await self._add(lambda: self._content_of(output))
            return
        async with aclosing(chunks_of(output)) as chunks:
            async for chunk in chunks:
                await self._add(partial(self._content_of, chunk))

    async def status(self, text: str) -> None:
        """Raises UnsendableError for anything but text."""
        await self._add(lambda: {"status_text": sendable(text, STATUS)[:STATUS_TEXT_MAX]})

    async def _add(self, make_content: Callable[[], ChunkContent | None]) -> None:
        try:
            content = make_content() if self.failure is None else None
            if content:
                await self._send(content)
        except Exception as error:
            self.failure = self.failure or error
        if self.failure is not None:
            raise self.failure

    def _content_of(self, output: object) -> ChunkContent | None:
        parts = _parts_of(output)
        if not parts:
            return None
        self._bytes += len(well_formed(json.dumps(parts, ensure_ascii=False, separators=(",", ":"))))
        if self._bytes > ANSWER_BYTES_MAX:
            raise UnsendableError(
                f"an answer has at most {ANSWER_BYTES_MAX} bytes; shorten it, or send the URI of a file"
            )
        all_parts = self.artifact["parts"]
        append = len(all_parts) > 0
        for part in parts:
            _append_part(all_parts, part)
        return {"artifact": {"artifactId": self.artifact["artifactId"], "parts": parts}, "append": append}


def _parts_of(output: object) -> list[Part]:
    """Empty text is dropped: models send it between other chunks."""
    if output == "":
        return []
    # Most chunks are plain text, in which only NUL is invalid: skip the full check.
    if isinstance(output, str) and "\0" not in output:
        return [{"kind": "text", "text": output}]
    parts = parts_of(output)
    if parts is not None:
        return cast(list[Part], sendable(parts, PARTS))
    forms = f"send text, a part, a dict, a model or a dataclass, or a list of these, where {PART_FORMS}"
    raise UnsendableError(f"a chunk of the answer is {shown(output)}; {forms}")


def _append_part(parts: list[Part], part: Part) -> None:
    """Adjacent text parts without metadata are merged into one."""
    last = parts[-1] if parts else None
    if last and last["kind"] == "text" and part["kind"] == "text" and not last.get("metadata") and not part.get("metadata"):
        parts[-1] = {"kind": "text", "text": last["text"] + part["text"]}
    else:
        parts.append(part)
