"""All dispatches of an agent, across its connections."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from ..handlers.result_frame import now
from ..handlers.run_dispatch import RunDeps
from ..limits import DISPATCHES_IN_FLIGHT
from .dispatch_run import DispatchRun
from .frames import Frame, is_dispatch
from .mesh_connection import MeshConnection


class ConnectionSink:
    """Sends the frames of dispatches, and flushes their buffers as the network takes them."""

    def __init__(self, connection: MeshConnection, on_sent: Callable[[], None]) -> None:
        self._connection = connection
        self._on_sent = on_sent

    @property
    def buffered_bytes(self) -> int:
        return self._connection.buffered_bytes

    def send(self, type: str, payload: dict[str, Any], in_reply_to: str) -> None:
        self._connection.send(type, payload, in_reply_to=in_reply_to, on_sent=self._on_sent)


class DispatchRuns:
    """The dispatches that run, and those whose answer the mesh may not have."""

    def __init__(self, deps: RunDeps) -> None:
        self._deps = deps
        self._running: dict[str, DispatchRun] = {}
        self._answered: dict[str, DispatchRun] = {}
        """Dispatches whose handler has ended; kept for the resume window, because the connection may break before the mesh has the
        result. Of those that were sent no more than may be in flight: the mesh asks for no others."""
        self._sink: ConnectionSink | None = None
        self._resume_window_ms = 0.0
        self._max_inflight = DISPATCHES_IN_FLIGHT

    @property
    def session_count(self) -> int:
        """Number of different sessions with running dispatches."""
        return len({run.session_id for run in self._running.values()})

    @property
    def count(self) -> int:
        """Number of running dispatches."""
        return len(self._running)

    @property
    def is_idle(self) -> bool:
        """Whether no handler is running and every result was sent on the current connection."""
        unsent = (run for run in self._answered.values() if not run.is_aborted and run.result_sent_at is None)
        return not self._running and next(unsent, None) is None

    def inflight(self) -> list[dict[str, Any]]:
        """The dispatches that `hello` reports as in flight."""
        self._drop_delivered()
        return [{"dispatch_id": run.dispatch["dispatch_id"], "last_seq": run.resume_after_seq} for run in self._all()]

    def connected(self, connection: MeshConnection, welcome: dict[str, Any]) -> None:
        """Called after `welcome`. Without a resume the mesh has failed all dispatches, so they are aborted here too."""
        self._resume_window_ms = welcome["resume_window_ms"]
        limits = welcome.get("limits")
        if isinstance(limits, dict) and isinstance(limits.get("max_inflight"), int):
            self._max_inflight = limits["max_inflight"]
        self._sink = ConnectionSink(connection, self._flush_all)
        if not welcome["resumed"]:
            self.abort_all()
        for run in self._all():
            run.attach(self._sink)

    def disconnected(self) -> None:
        """Called when the connection is lost. Handlers keep running, and their output is buffered."""
        self._sink = None
        for run in self._all():
            run.attach(None)

    def accept(self, frame: Frame) -> None:
        """Handles a `dispatch`. A known one is not run again; one that crossed a `close_request` is run like any other."""
        sink = self._sink
        if not sink or frame.id in self._running:
            return
        answered = self._answered.get(frame.id)
        if answered:
            answered.attach(sink)
        elif not is_dispatch(frame.payload):
            problem = {"code": "INVALID_DISPATCH", "message": "not a dispatch of service.v1", "retryable": False}
            sink.send("error", problem, frame.id)
        elif len(self._running) >= self._max_inflight:
            busy = {"code": "AGENT_BUSY", "message": "too many dispatches at once", "retryable": True}
            sink.send("error", busy, frame.id)
        else:
            self._start(frame, sink)

    def ended_by_mesh(self, frame_id: str, code: str) -> None:
        """Handles an `error` frame: the mesh has ended the dispatch, if `frame_id` is one."""
        self._answered.pop(frame_id, None)
        run = self._running.get(frame_id)
        if run:
            self._deps.log.debug("dispatch ended by the mesh (dispatch_id=%s, code=%s)", run.dispatch["dispatch_id"], code)
            self._remove(run)
            run.abort()

    def abort_all(self) -> None:
        for run in list(self._running.values()):
            self._remove(run)
            run.abort()
        self._answered.clear()

    def _start(self, frame: Frame, sink: ConnectionSink) -> None:
        run = DispatchRun(frame.id, frame.payload, sink)
        self._running[frame.id] = run
        sink.send("dispatch_ack", {"accepted_at": now()}, frame.id)

        def ended() -> None:
            if frame.id in self._running:
                self._answered[frame.id] = run
                self._remove(run)

        run.start(self._deps, ended)

    def _remove(self, run: DispatchRun) -> None:
        self._running.pop(run.frame_id, None)
        self._drop_delivered()

    def _drop_delivered(self) -> None:
        expired_before = time.monotonic() - self._resume_window_ms / 1000
        for frame_id, run in list(self._answered.items()):
            sent_at = run.result_sent_at
            is_over = sent_at is not None and (sent_at < expired_before or len(self._answered) > self._max_inflight)
            if run.is_aborted or is_over:
                del self._answered[frame_id]

    def _all(self) -> list[DispatchRun]:
        return [*self._running.values(), *self._answered.values()]

    def _flush_all(self) -> None:
        for run in self._all():
            run.flush()
