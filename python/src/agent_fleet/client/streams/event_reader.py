"""Server-sent events and lines."""

from __future__ import annotations

import codecs
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass

_EVENT_CHARS_MAX = 8 * 1024 * 1024
_LINE_END = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True)
class ServerSentEvent:
    """One server-sent event."""

    id: str
    """The last `id` of the stream, from this event or an earlier one; empty without one."""
    type: str
    """`event` of the event; `message` without one."""
    data: str


async def read_events(body: AsyncIterator[bytes]) -> AsyncIterator[ServerSentEvent]:
    """Reads server-sent events (WHATWG HTML, section 9.2).

    Comments and unknown fields are skipped; an incomplete event at the end of the stream is dropped. Raises ValueError for an
    event of more than 8 Mi characters.
    """
    id = ""
    type = ""
    data: list[str] = []
    async for line in read_lines(body):
        if line == "":
            if data:
                yield ServerSentEvent(id, type or "message", "\n".join(data))
            type = ""
            data = []
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            data.append(value)
        elif name == "event":
            type = value
        elif name == "id" and "\0" not in value:
            id = value


async def read_lines(body: AsyncIterator[bytes]) -> AsyncIterator[str]:
    """Lines without their terminator: CR LF, LF or CR. What follows the last one is dropped."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    rest = ""
    async for chunk in body:
        rest += decoder.decode(chunk)
        # A CR at the end may be half of a CR LF: keep it until more bytes arrive.
        held = "\r" if rest.endswith("\r") else ""
        *lines, rest = _LINE_END.split(rest[: len(rest) - len(held)])
        rest += held
        if len(rest) > _EVENT_CHARS_MAX:
            raise ValueError(f"an event of more than {_EVENT_CHARS_MAX} characters")
        for line in lines:
            yield line
