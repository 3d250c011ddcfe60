"""The chunks of one dispatch."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from dataclasses import dataclass
from typing import Any, Protocol

from ..limits import BUFFERED_BYTES_SOFT, CHUNK_BYTES_BUFFERED_PER_DISPATCH, CHUNKS_KEPT_PER_DISPATCH
from ..values.sendable import well_formed


class FrameSink(Protocol):
    """Sends frames on the current connection."""

    @property
    def buffered_bytes(self) -> int: ...

    def send(self, type: str, payload: dict[str, Any], in_reply_to: str) -> None:
        """When the frame was written to the network, the owner of the sink flushes every buffer again."""


@dataclass(frozen=True)
class _BufferedChunk:
    chunk: dict[str, Any]
    size: int


class ChunkBuffer:
    """The chunks of one dispatch, in order and without gaps.

    Keeps the newest sent chunks (up to 4,096 and 1 MiB), because a broken connection does not tell which chunks arrived. After a
    resume the kept chunks are sent again, and the mesh drops repeats.
    """

    def __init__(self, frame_id: str) -> None:
        """`frame_id` is that of the dispatch."""
        self._frame_id = frame_id
        self._sink: FrameSink | None = None
        self._chunks: deque[_BufferedChunk] = deque()
        self._sent = 0
        """How many of the chunks, from the front, were sent on the current connection."""
        self._buffered_bytes = 0
        self._unsent_bytes = 0
        self._next_seq = 0
        self._has_room = asyncio.Event()
        self._has_room.set()

    @property
    def count(self) -> int:
        """Number of chunks so far."""
        return self._next_seq

    @property
    def is_flushed(self) -> bool:
        """Whether every chunk was sent on the current connection."""
        return self._sink is not None and self._sent == len(self._chunks)

    @property
    def resume_after_seq(self) -> int:
        """The sequence number after which chunks are sent again after a resume; -1 means from the first."""
        first: int = self._chunks[0].chunk["seq"] if self._chunks else self._next_seq
        return first - 1

    async def add(self, content: dict[str, Any]) -> None:
        """Adds a chunk. Returns when at most 256 KiB are unsent.

        Raises RuntimeError when more than 1 MiB would be unsent, because `stream` was called without `await`.
        """
        size = len(well_formed(json.dumps(content, ensure_ascii=False, separators=(",", ":"))))
        if self._unsent_bytes + size > CHUNK_BYTES_BUFFERED_PER_DISPATCH:
            raise RuntimeError("output is produced faster than it is sent: await stream()")
        self._chunks.append(_BufferedChunk({"seq": self._next_seq, **content}, size))
        self._next_seq += 1
        self._buffered_bytes += size
        self._unsent_bytes += size
        self.flush()
        await self._has_room.wait()

    def attach(self, sink: FrameSink | None) -> None:
        """Sets the connection, or None when it is lost. A new connection sends all buffered chunks again."""
        self._sink = sink
        self._sent = 0
        self._unsent_bytes = self._buffered_bytes
        self.flush()

    def flush(self) -> None:
        """Sends chunks until the connection's buffer is full."""
        while self._sink and self._sink.buffered_bytes < BUFFERED_BYTES_SOFT and self._sent < len(self._chunks):
            following = self._chunks[self._sent]
            self._sent += 1
            self._unsent_bytes -= following.size
            self._sink.send("dispatch_chunk", following.chunk, self._frame_id)
        self._drop_oldest()
        if self._unsent_bytes <= BUFFERED_BYTES_SOFT:
            self._has_room.set()
        else:
            self._has_room.clear()

    def _drop_oldest(self) -> None:
        while self._sent > 0 and (
            len(self._chunks) > CHUNKS_KEPT_PER_DISPATCH or self._buffered_bytes > CHUNK_BYTES_BUFFERED_PER_DISPATCH
        ):
            self._buffered_bytes -= self._chunks.popleft().size
            self._sent -= 1
