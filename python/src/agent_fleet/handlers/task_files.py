"""The files of a message."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import dataclass

from ..parts import Part


@dataclass(frozen=True, kw_only=True)
class TaskFile:
    """A file in a message: its bytes, or the address where they are. The SDK fetches nothing."""

    name: str | None
    mime_type: str | None
    """The media type that the sender states."""
    uri: str | None
    """None for a file that is sent whole."""
    encoded: str | None
    """The bytes in base64; None for a file that is sent by its address."""

    @property
    def content(self) -> bytes | None:
        """The bytes; None for a file that is sent by its address."""
        return None if self.encoded is None else base64.b64decode(self.encoded)


def files_of(parts: Iterable[Part]) -> list[TaskFile]:
    """The files among parts."""
    files = [part["file"] for part in parts if part["kind"] == "file"]
    return [
        TaskFile(name=file.get("name"), mime_type=file.get("mimeType"), uri=file.get("uri"), encoded=file.get("bytes"))
        for file in files
    ]
