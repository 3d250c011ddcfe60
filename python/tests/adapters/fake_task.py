"""A task without a platform, for tests of adapters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agent_fleet.handlers.agent_task import AgentTask
from agent_fleet.handlers.conversation import TaskClient, Turn
from agent_fleet.handlers.questions import Questions
from agent_fleet.handlers.task_deadline import TaskDeadline
from agent_fleet.handlers.task_output import TaskOutput


class NoTools:
    """No tool call gets anywhere."""

    async def call(self, payload: dict[str, Any], traceparent: str, deadline: TaskDeadline | None = None) -> dict[str, Any]:
        return {"ok": False, "error": {"code": "TOOL_NOT_FOUND"}}


class Record:
    """A record with the states of messages alone."""

    def __init__(self, states: Mapping[str, str]) -> None:
        self._states = states

    async def history(self, task: AgentTask, limit: int) -> list[Turn]:
        return []

    async def state_of(self, message_id: str) -> str | None:
        return self._states.get(message_id)

    def client(self, task: AgentTask) -> TaskClient:
        return None  # type: ignore[return-value]  # no adapter sends


def answered(title: str, *, resolution: str = "approved", kind: str = "confirmation", **more: Any) -> dict[str, Any]:
    """What a dispatch carries of a question that a human has answered."""
    return {"request_id": f"req_{title}", "source": "agent", "kind": kind, "title": title, "resolution": resolution, **more}


async def run_task(
    handler: Any,
    text: str,
    *,
    session_id: str = "ses_1",
    message_id: str = "msg_1",
    answers: Sequence[dict[str, Any]] = (),
    states: Mapping[str, str] | None = None,
) -> tuple[Any, list[str]]:
    """What a handler returned, a question as such, and the pieces of text that it has streamed.

    `answers` are those of humans, the oldest first; `states` are those of the other messages on the record.
    """
    pieces: list[str] = []

    async def send(content: dict[str, Any]) -> None:
        pieces.extend(part["text"] for part in content["artifact"]["parts"])

    metadata = {"resolutions": list(answers)}
    questions = Questions(metadata)
    dispatch = {
        "params": {"message": {"parts": [{"kind": "text", "text": text}]}, "metadata": metadata},
        "dispatch_id": "dsp_1",
        "deadline_ms": 60_000,
        "session_context": {"session_id": session_id, "message_id": message_id},
    }
    deadline = TaskDeadline(60_000, lambda: None)
    try:
        task = AgentTask(
            dispatch,
            output=TaskOutput("out", send),
            questions=questions,
            tools=NoTools(),
            deadline=deadline,
            conversation=Record(states or {}),
        )
        return questions.result_of(await handler(task)), pieces
    finally:
        deadline.stop()
