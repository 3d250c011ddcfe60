"""One dispatch."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from ..handlers.result_frame import ResultFrame
from ..handlers.run_dispatch import RunDeps, run_dispatch
from ..handlers.task_deadline import TaskDeadline
from ..handlers.task_output import ChunkContent, TaskOutput
from ..limits import DEADLINE_MS_MAX
from .chunk_buffer import ChunkBuffer, FrameSink


class DispatchRun:
    """One dispatch: its handler, its chunks, and its result, which is kept until the mesh has received it."""

    def __init__(self, frame_id: str, dispatch: dict[str, Any], sink: FrameSink) -> None:
        self.frame_id = frame_id
        self.dispatch = dispatch
        self.is_aborted = False
        """Whether the dispatch was canceled, lost or exceeded its deadline; nothing more is sent."""
        self.result_sent_at: float | None = None
        """When the result was sent on the current connection, by `time.monotonic()`; None before."""
        self._chunks = ChunkBuffer(frame_id)
        # The mesh names unnamed output by the frame id as well.
        self._output = TaskOutput(frame_id, self._add_chunk)
        deadline_ms = min(dispatch["deadline_ms"], DEADLINE_MS_MAX)
        self._deadline = TaskDeadline(deadline_ms, self.abort)
        self._sink: FrameSink | None = None
        self._result: ResultFrame | None = None
        self._handler: asyncio.Task[ResultFrame] | None = None
        self.attach(sink)

    @property
    def session_id(self) -> str:
        session_id: str = self.dispatch["session_context"]["session_id"]
        return session_id

    @property
    def resume_after_seq(self) -> int:
        return self._chunks.resume_after_seq

    def start(self, deps: RunDeps, on_ended: Callable[[], None]) -> None:
        """Runs the handler. `on_ended` is called when it is over, unless the dispatch was aborted."""

        def ended(handler: asyncio.Task[ResultFrame]) -> None:
            self._deadline.stop()
            if self.is_aborted or handler.cancelled():
                return
            self._result = handler.result()
            self.flush()
            on_ended()

        self._handler = asyncio.create_task(run_dispatch(self.dispatch, self._output, self._deadline, deps))
        self._handler.add_done_callback(ended)

    def attach(self, sink: FrameSink | None) -> None:
        """Sets the connection, or None when it is lost. A new connection gets all buffered chunks and the result again."""
        self._sink = sink
        self.result_sent_at = None
        self._chunks.attach(sink)
        self.flush()

    def flush(self) -> None:
        """Sends chunks until the connection's buffer is full; the result follows the last chunk."""
        if self.is_aborted or not self._sink:
            return
        self._chunks.flush()
        if not self._result or self.result_sent_at is not None or not self._chunks.is_flushed:
            return
        payload = self._result.payload
        if self._result.type == "dispatch_result":
            payload = {**payload, "chunk_count": self._chunks.count}
        self.result_sent_at = time.monotonic()
        self._sink.send(self._result.type, payload, self.frame_id)

    def abort(self) -> None:
        """Ends the dispatch without a result; its handler is canceled."""
        self.is_aborted = True
        self._deadline.stop()
        self._sink = None
        self._chunks.attach(None)
        if self._handler:
            self._handler.cancel()

    async def _add_chunk(self, content: ChunkContent) -> None:
        if not self.is_aborted and not self._result:
            await self._chunks.add(content)
