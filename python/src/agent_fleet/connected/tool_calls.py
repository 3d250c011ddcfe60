"""The tool calls of a connected agent, outgoing and incoming. They end with their connection."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from ..errors import ToolError
from ..handlers.task_deadline import TaskDeadline
from ..idle import Idle
from ..limits import PENDING_TOOL_CALLS
from ..tools.tool_caller import tool_failure
from ..tools.tool_handlers import ToolHandlers
from .frames import Frame, frame_id, is_tool_delivery
from .mesh_connection import MeshConnection

_LOST = tool_failure(ToolError("the connection to the mesh was lost", code="AGENT_DISCONNECTED"))
_NOT_CONNECTED = tool_failure(
    ToolError("there is no connection to the mesh", code="AGENT_DISCONNECTED", retryable=True)
)
_BUSY = tool_failure(ToolError("no more calls now", code="AGENT_BUSY", retryable=True))
_INVALID = tool_failure(ToolError("not a tool call of service.v1", code="BAD_REQUEST"))
_NO_RESULT = tool_failure(ToolError("not a result of service.v1", code="INTERNAL"))


@dataclass
class _OutgoingCall:
    """A call that waits for its result."""

    result: asyncio.Future[dict[str, Any]]
    deadline: TaskDeadline | None
    pause: ExitStack = field(default_factory=ExitStack)
    is_pending: bool = False
    """A human is asked about it."""

    def wait(self) -> None:
        """The platform says that a human is asked: its result follows."""
        if not self.is_pending and self.deadline:
            self.pause.enter_context(self.deadline.paused())
        self.is_pending = True

    def settle(self, result: dict[str, Any]) -> None:
        if not self.result.done():
            self.result.set_result(result)


class ConnectedToolCalls:
    """Sends and answers tool calls as frames."""

    def __init__(self, handlers: ToolHandlers) -> None:
        self._handlers = handlers
        self._incoming: dict[str, asyncio.Task[dict[str, Any]]] = {}
        """Calls that are being answered, by frame id."""
        self._outgoing: dict[str, _OutgoingCall] = {}
        """Calls that wait for a result, by frame id."""
        self._connection: MeshConnection | None = None
        self._all_idle = Idle(lambda: not self._incoming and not self._outgoing)

    def attach(self, connection: MeshConnection | None, resumed: bool = True) -> None:
        """Sets the connection, or None when it is lost.

        The calls of the previous connection fail, but for those that wait for a human: their results come on the connection
        that resumes it.
        """
        self._connection = connection
        for run in list(self._incoming.values()):
            run.cancel()
        self._incoming.clear()
        for call in list(self._outgoing.values()):
            if not call.is_pending or not resumed:
                call.settle(_LOST)
        self._all_idle.check()

    async def all_settled(self) -> None:
        """Returns when no incoming call is being answered and no outgoing call waits for a result."""
        await self._all_idle.wait()

    async def call(
        self, payload: dict[str, Any], traceparent: str, deadline: TaskDeadline | None = None
    ) -> dict[str, Any]:
        """Waits for the result of a call. Its cancelation withdraws the call."""
        if not self._connection:
            return _NOT_CONNECTED
        id = frame_id()
        call = _OutgoingCall(asyncio.get_running_loop().create_future(), deadline)
        self._outgoing[id] = call
        try:
            self._connection.send("tool_call", payload, id=id, traceparent=traceparent)
            return await call.result
        except asyncio.CancelledError:
            if self._connection:
                withdrawn = {"code": "CANCELED", "message": "withdrawn", "retryable": False}
                self._connection.send("error", withdrawn, in_reply_to=id)
            raise
        finally:
            del self._outgoing[id]
            call.pause.close()
            self._all_idle.check()

    def receive_call(self, frame: Frame, refuse: bool) -> None:
        """Handles a `tool_call`. `refuse`: the agent or the mesh is shutting down."""
        connection = self._connection
        if not connection or frame.id in self._incoming:
            return
        if not is_tool_delivery(frame.payload):
            connection.send("tool_result", _INVALID, in_reply_to=frame.id)
            return
        if refuse or len(self._incoming) >= PENDING_TOOL_CALLS:
            connection.send("tool_result", _BUSY, in_reply_to=frame.id)
            return
        run = asyncio.create_task(self._handlers.run(frame.payload, frame.traceparent, self))
        self._incoming[frame.id] = run

        def answered(run: asyncio.Task[dict[str, Any]]) -> None:
            if self._incoming.get(frame.id) is not run:
                return
            del self._incoming[frame.id]
            result = tool_failure(ToolError("the tool canceled itself", code="CANCELED")) if run.cancelled() else run.result()
            connection.send("tool_result", result, in_reply_to=frame.id)
            self._all_idle.check()

        run.add_done_callback(answered)

    def receive_result(self, frame: Frame) -> None:
        """Handles a `tool_result`."""
        call = self._outgoing.get(frame.in_reply_to or "")
        if not call:
            return
        error = frame.payload.get("error")
        is_result = frame.payload.get("ok") is True or (frame.payload.get("ok") is False and isinstance(error, dict))
        result = frame.payload if is_result else _NO_RESULT
        if result.get("ok") is False and result["error"].get("code") == "APPROVAL_PENDING":
            call.wait()
        else:
            call.settle(result)

    def receive_error(self, call_frame_id: str, code: str, message: str) -> None:
        """Handles an `error` frame about a call: it was canceled, exceeded its deadline, or was refused by the mesh."""
        call = self._outgoing.get(call_frame_id)
        if call:
            call.settle(tool_failure(ToolError(message, code=code)))
        run = self._incoming.pop(call_frame_id, None)
        if run:
            run.cancel()
        self._all_idle.check()
