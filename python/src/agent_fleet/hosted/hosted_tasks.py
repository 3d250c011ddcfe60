"""The dispatches of a hosted agent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from ..connected.frames import is_tool_delivery
from ..handlers.result_frame import ResultFrame, aborted_frame, error_frame_of, task_in
from ..handlers.run_dispatch import RunDeps, run_dispatch
from ..handlers.task_deadline import TaskDeadline
from ..handlers.task_output import ChunkContent, TaskOutput
from ..limits import DEADLINE_MS_MAX, DISPATCHES_IN_FLIGHT
from ..tools.tool_handlers import ToolHandlers

JsonObject = dict[str, Any]
ChunkListener = Callable[[ChunkContent], Awaitable[None]]


class HostedTask:
    """One dispatch. It continues when the connection of its request breaks."""

    def __init__(self, dispatch: JsonObject, deps: RunDeps, tools: ToolHandlers, listener: ChunkListener | None) -> None:
        self.dispatch = dispatch
        self.listener = listener
        """Gets each chunk; None while nobody listens."""
        self.done: asyncio.Future[ResultFrame] = asyncio.get_running_loop().create_future()
        """Ends with the result; never raises."""
        output = TaskOutput(str(dispatch["id"]), self._emit)
        self._deadline = TaskDeadline(min(dispatch["deadline_ms"], DEADLINE_MS_MAX), lambda: self.abort("DEADLINE_EXCEEDED"))
        call = _tool_call_in(dispatch)
        work = _answer_call(call, dispatch, deps, tools) if call else run_dispatch(dispatch, output, self._deadline, deps)
        self._run = asyncio.create_task(work)
        self._run.add_done_callback(self._ended)

    @property
    def is_over(self) -> bool:
        return self.done.done()

    def abort(self, code: str) -> None:
        """Fails the task with this code at once, and cancels its handler, which may take its time."""
        self._settle(aborted_frame(code))
        self._run.cancel()

    def snapshot(self) -> JsonObject:
        """The A2A task in its present state."""
        return task_of(self.done.result(), self.dispatch) if self.is_over else task_in("working", ids_of(self.dispatch))

    def _ended(self, run: asyncio.Task[ResultFrame]) -> None:
        if run.cancelled():
            self.abort("CANCELED")
        else:
            error = run.exception()
            self._settle(error_frame_of(error) if error else run.result())

    def _settle(self, frame: ResultFrame) -> None:
        if not self.is_over:
            self._deadline.stop()
            self.done.set_result(frame)

    async def _emit(self, content: ChunkContent) -> None:
        if self.listener and not self.is_over:
            await self.listener(content)


class HostedTasks:
    """All dispatches of an agent, by id. Ended ones are kept for a while, because the platform asks for what a broken connection lost."""

    def __init__(self, deps: RunDeps, tools: ToolHandlers) -> None:
        self._deps = deps
        self._tools = tools
        self._tasks: dict[str, HostedTask] = {}

    @property
    def running(self) -> list[HostedTask]:
        return [task for task in self._tasks.values() if not task.is_over]

    @property
    def session_count(self) -> int:
        """Number of different sessions with running tasks."""
        return len({task.dispatch["session_context"]["session_id"] for task in self.running})

    @property
    def is_full(self) -> bool:
        return len(self.running) >= DISPATCHES_IN_FLIGHT

    def get(self, task_id: object) -> HostedTask | None:
        return self._tasks.get(task_id) if isinstance(task_id, str) else None

    def start(self, dispatch: JsonObject, listener: ChunkListener | None = None) -> HostedTask:
        """The task of a dispatch; one that is known is not run again. Its chunks go to the last listener."""
        known = self._tasks.get(dispatch["dispatch_id"])
        if known:
            known.listener = listener or known.listener
            return known
        over = [id for id, task in self._tasks.items() if task.is_over]
        for id in over[: max(0, len(over) - DISPATCHES_IN_FLIGHT)]:
            del self._tasks[id]
        task = self._tasks[dispatch["dispatch_id"]] = HostedTask(dispatch, self._deps, self._tools, listener)
        return task

    async def drain(self, grace_seconds: float) -> int:
        """Waits for what runs, and aborts what takes longer: so many tasks."""
        running = [task.done for task in self.running]
        if running:
            await asyncio.wait(running, timeout=grace_seconds)
        cut_off = self.running
        for task in cut_off:
            task.abort("AGENT_DISCONNECTED")
        return len(cut_off)


def task_of(frame: ResultFrame, dispatch: JsonObject) -> JsonObject:
    """The A2A task of a result; `usage`, and the `error` of a failure, are in its metadata."""
    if frame.type == "error":
        return {**task_in("failed", ids_of(dispatch), frame.payload["message"]), "metadata": {"error": frame.payload}}
    usage = frame.payload.get("usage")
    return {**frame.payload["result"], "id": dispatch["dispatch_id"], **({"metadata": {"usage": usage}} if usage else {})}


def ids_of(dispatch: JsonObject) -> tuple[str, str]:
    """The ids of a dispatch's task for the platform, which asks for it by that of the dispatch."""
    return dispatch["dispatch_id"], dispatch["session_context"]["session_id"]


def _tool_call_in(dispatch: JsonObject) -> JsonObject | None:
    """The tool call in a dispatch; None without one. Its arguments are in a data part, all else is in the metadata."""
    call = (dispatch["params"].get("metadata") or {}).get("tool_call")
    data = next((part.get("data") for part in dispatch["params"]["message"]["parts"] if part["kind"] == "data"), None)
    if not isinstance(call, dict) or not isinstance(data, dict):
        return None
    delivery = {**call, "arguments": data.get("arguments"), "session_id": dispatch["session_context"]["session_id"]}
    return delivery if is_tool_delivery(delivery) else None


async def _answer_call(call: JsonObject, dispatch: JsonObject, deps: RunDeps, tools: ToolHandlers) -> ResultFrame:
    """Runs a tool. The platform expects its result as one data part."""
    traceparent = (dispatch["session_context"].get("propagation_headers") or {}).get("traceparent") or ""
    answer = await tools.run(call, traceparent, deps.tools)
    artifact = {"artifactId": str(dispatch["id"]), "parts": [{"kind": "data", "data": answer}]}
    return ResultFrame("dispatch_result", {"result": {**task_in("completed", ids_of(dispatch)), "artifacts": [artifact]}})
