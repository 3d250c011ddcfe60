"""A task without a platform, for tests of adapters."""

from __future__ import annotations

from typing import Any

from agent_fleet.handlers.agent_task import AgentTask
from agent_fleet.handlers.questions import Questions
from agent_fleet.handlers.task_deadline import TaskDeadline
from agent_fleet.handlers.task_output import TaskOutput


class NoTools:
    """No tool call gets anywhere."""

    async def call(self, payload: dict[str, Any], traceparent: str, deadline: TaskDeadline | None = None) -> dict[str, Any]:
        return {"ok": False, "error": {"code": "TOOL_NOT_FOUND"}}


async def run_task(
    handler: Any, text: str, *, session_id: str = "ses_1", message_id: str = "msg_1", resolution: dict[str, Any] | None = None
) -> tuple[object, list[str]]:
    """What a handler returned, a question as such, and the pieces of text that it has streamed."""
    pieces: list[str] = []

    async def send(content: dict[str, Any]) -> None:
        pieces.extend(part["text"] for part in content["artifact"]["parts"])

    metadata = {"resolutions": [{"source": "agent", **resolution}]} if resolution else {}
    questions = Questions(metadata)
    dispatch = {
        "params": {"message": {"parts": [{"kind": "text", "text": text}]}, "metadata": metadata},
        "dispatch_id": "dsp_1",
        "deadline_ms": 60_000,
        "session_context": {"session_id": session_id, "message_id": message_id},
    }
    deadline = TaskDeadline(60_000, lambda: None)
    try:
        task = AgentTask(dispatch, output=TaskOutput("out", send), questions=questions, tools=NoTools(), deadline=deadline)
        return questions.result_of(await handler(task)), pieces
    finally:
        deadline.stop()
