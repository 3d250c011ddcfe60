"""Tests of agents without a platform: `run(agent, "Pay it back", answers=["confirmed"])`."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from typing_extensions import Unpack

from .agent.agent import Agent
from .client.rpc import StreamEvent
from .client.send_options import MessageOptions
from .client.sent_task import Task
from .client.text import data_of, text_of
from .errors import ToolError
from .handlers.conversation import TaskClient, Turn
from .handlers.result_frame import ResultFrame, aborted_frame, message_ids, task_in
from .handlers.run_dispatch import RunDeps, run_dispatch
from .handlers.task_deadline import TaskDeadline
from .handlers.task_output import TaskOutput
from .log import SILENT_LOG
from .parts import Artifact, Part, Question, Usage
from .tools.tool_caller import tool_failure
from .values.json_values import is_record, jsonable, parts_of

T = TypeVar("T")

Answer = bool | str | Mapping[str, Any] | Any
"""What a human answers: whether they agree, a resolution (`approved`, `declined`, …), or the values of a form."""

_YES = {"confirmation": "confirmed", "form": "submitted", "approval": "approved"}
_NO = {"confirmation": "declined", "form": "declined", "approval": "rejected"}
_DEADLINE_MS = 60_000


@dataclass(kw_only=True)
class Run:
    """How a message ended."""

    task: Task
    """As a caller gets it."""
    pieces: list[str] = field(default_factory=list)
    """The text of each chunk that was streamed in the last run of the handler."""
    statuses: list[str] = field(default_factory=list)
    """The texts of `task.status`."""
    questions: list[Question] = field(default_factory=list)
    """Everything that humans were asked."""
    tool_calls: list[tuple[str, Any]] = field(default_factory=list)
    """Names and arguments of the tools that were called."""
    usage: Usage | None = None
    """Of the last run of the handler."""
    error: ToolError | None = None
    """Why the message failed: `code`, `message` and `retryable`."""

    @property
    def state(self) -> str:
        """`completed`, `failed`, or `input-required` where `answers` did not answer every question."""
        return self.task["status"]["state"]

    @property
    def text(self) -> str:
        """The text of the answer. Raises TaskFailedError where the message failed, TaskNotEndedError where it waits for a human."""
        return text_of(self.task)

    @property
    def artifacts(self) -> list[Artifact]:
        return self.task.get("artifacts") or []

    @property
    def parts(self) -> list[Part]:
        """The parts of all artifacts."""
        return [part for artifact in self.artifacts for part in artifact["parts"]]

    def data(self, type: Any = dict) -> Any:
        """The data of the answer, as pydantic reads it for a type."""
        return data_of(self.task, type)


def run(agent: Agent, content: Any = "", **options: Any) -> Run:
    """Gives the agent a message, and humans' answers to its questions, in an event loop of its own. Options are those of `run_async`."""
    return asyncio.run(run_async(agent, content, **options))


async def run_async(
    agent: Agent,
    content: Any = "",
    *,
    answers: Sequence[Answer] = (),
    skill_id: str | None = None,
    args: Any = None,
    metadata: Mapping[str, Any] | None = None,
    tools: Mapping[str, Any] | None = None,
    agents: Mapping[str, Any] | None = None,
    history: Sequence[Turn] = (),
    user_id: str | None = None,
    session_id: str = "ses_test",
    message_id: str = "msg_test",
    deadline_ms: int = _DEADLINE_MS,
    traceparent: str = "",
    log: logging.Logger = SILENT_LOG,
) -> Run:
    """Gives the agent a message, as the platform would, and runs its handler again for each answer.

    - `content`: text, a part or parts, or data (a dict, a model, a dataclass). `skill_id` and `args` choose a skill, with its input.
    - `answers`: True or False, a resolution, or the values of a form; one for each question, in order.
    - `tools`: what the tools of other agents return, by name: a value, or a function that gets the arguments as parameters.
    - `agents`: what other agents answer to `task.client`, by their type: a text, or a function of the content.
    - `history` is that of the session.

    Raises LookupError for a skill that the agent does not list: the platform would find no agent for it.
    """
    _require_skill(agent, skill_id)
    record = _Run(agent, tools or {}, agents or {}, history, log)
    resolutions: list[dict[str, Any]] = []
    left = list(answers)
    while True:
        dispatch = {
            "dispatch_id": f"dsp_{len(resolutions) + 1}",
            "deadline_ms": deadline_ms,
            **({"skill_id": skill_id} if skill_id is not None else {}),
            **({"args": jsonable(args)} if args is not None else {}),
            "params": {
                "message": {"kind": "message", "messageId": message_id, "role": "user", "parts": _content(content)},
                "metadata": {**(metadata or {}), "resolutions": list(resolutions)},
            },
            "session_context": {
                "session_id": session_id,
                "message_id": message_id,
                "user_id": user_id,
                "propagation_headers": {"traceparent": traceparent},
            },
        }
        ended = await record.dispatch(dispatch)
        if ended.state != "input-required" or not left:
            return ended
        resolutions.append(_resolution(ended.questions[-1], left.pop(0), len(resolutions)))


def run_tool(agent: Agent, name: str, args: Any = None, **options: Any) -> Any:
    """Calls a tool of the agent in an event loop of its own. Options are those of `run_tool_async`."""
    return asyncio.run(run_tool_async(agent, name, args, **options))


async def run_tool_async(
    agent: Agent, name: str, args: Any = None, *, caller_agent_type: str = "test", tools: Mapping[str, Any] | None = None
) -> Any:
    """Calls a tool of the agent, and gives its result. Raises the ToolError that its caller would get."""
    delivery = {
        "tool": name,
        "arguments": {} if args is None else jsonable(args),
        "dispatch_id": "dsp_test",
        "deadline_ms": _DEADLINE_MS,
        "caller": {"agent_type": caller_agent_type},
    }
    calls = _Tools(tools or {})
    answer = await agent._tools.run(delivery, "", calls)
    if answer["ok"]:
        return answer["result"]
    raise _tool_error(answer["error"])


def _require_skill(agent: Agent, skill_id: str | None) -> None:
    skills = [skill["id"] for skill in agent._handlers.skills]
    if skill_id is not None and skill_id not in skills:
        raise LookupError(f"the agent has no skill {skill_id}: it has {', '.join(skills) or 'none'} (TARGET_UNAVAILABLE)")


class _Run:
    """The runs of one message's handler."""

    def __init__(
        self, agent: Agent, tools: Mapping[str, Any], agents: Mapping[str, Any], history: Sequence[Turn], log: logging.Logger
    ) -> None:
        self._tools = _Tools(tools)
        self._deps = RunDeps(agent._handlers, self._tools, _Conversation(agents, history), log)
        self._questions: list[Question] = []
        self._statuses: list[str] = []

    async def dispatch(self, dispatch: dict[str, Any]) -> Run:
        pieces: list[str] = []

        async def send(content: dict[str, Any]) -> None:
            if "status_text" in content:
                self._statuses.append(content["status_text"])
            else:
                pieces.extend(part["text"] for part in content["artifact"]["parts"] if part["kind"] == "text")

        running: list[asyncio.Task[ResultFrame]] = []

        def end() -> None:
            running[0].cancel()

        deadline = TaskDeadline(dispatch["deadline_ms"], end)
        try:
            running.append(asyncio.create_task(run_dispatch(dispatch, TaskOutput("output", send), deadline, self._deps)))
            frame = await running[0]
        except asyncio.CancelledError:
            if deadline.left_ms > 0:
                raise
            frame = aborted_frame("DEADLINE_EXCEEDED")
        finally:
            deadline.stop()
        payload = frame.payload
        error = _tool_error(payload) if frame.type == "error" else None
        if payload.get("status", {}).get("state") == "input-required":
            self._questions.append(payload["status"]["input_request"])
        return Run(
            task=_failed(dispatch, payload) if error else payload["result"],
            pieces=pieces,
            statuses=self._statuses,
            questions=self._questions,
            tool_calls=self._tools.calls,
            usage=payload.get("usage"),
            error=error,
        )


class _Tools:
    """Answers tool calls."""

    def __init__(self, tools: Mapping[str, Any]) -> None:
        self.calls: list[tuple[str, Any]] = []
        self._tools = tools

    async def call(self, payload: dict[str, Any], traceparent: str, deadline: TaskDeadline | None = None) -> dict[str, Any]:
        name, arguments = payload["tool"], payload["arguments"]
        self.calls.append((name, arguments))
        if name not in self._tools:
            return tool_failure(ToolError(f"the test has no tool {name}: give tools={{{name!r}: …}}", code="TOOL_NOT_FOUND"))
        try:
            made = await _given(self._tools[name], lambda tool: tool(**arguments))
        except ToolError as error:
            return tool_failure(error)
        return {"ok": True, "result": jsonable(made)}


class _Conversation:
    """A session with a given history, and other agents with given answers."""

    def __init__(self, agents: Mapping[str, Any], history: Sequence[Turn]) -> None:
        self._agents = agents
        self._history = history

    async def history(self, task: Any, limit: int) -> list[Turn]:
        return list(self._history[-limit:])

    async def state_of(self, message_id: str) -> str | None:
        return next((turn.state for turn in self._history if turn.message_id == message_id), None)

    def client(self, task: Any) -> TaskClient:
        return cast(TaskClient, _Client(self._agents))


class _Client:
    """Sends to agents of the test."""

    def __init__(self, agents: Mapping[str, Any]) -> None:
        self._agents = agents

    async def send(self, content: Any, *, blocking: bool | None = None, **options: Unpack[MessageOptions]) -> Task:
        type = options.get("agent_type")
        if type is None or type not in self._agents:
            raise LookupError(f"the test has no agent {type}: give agents={{{type!r}: …}}")
        parts = parts_of(await _given(self._agents[type], lambda answer: answer(content)))
        task = {"kind": "task", "id": f"msg_{type}", "contextId": "ses_test", "status": {"state": "completed"}}
        return cast(Task, {**task, "artifacts": [{"artifactId": "output", "parts": parts}]})

    async def stream(self, content: Any, **options: Unpack[MessageOptions]) -> AsyncGenerator[StreamEvent, None]:
        yield cast(StreamEvent, await self.send(content, **options))


async def _given(value: Any, call: Callable[[Any], Any]) -> Any:
    """A value of a test, or what its function returns."""
    made = call(value) if callable(value) else value
    return await made if inspect.isawaitable(made) else made


def _content(content: Any) -> list[Any]:
    parts = parts_of(content)
    if parts is None:
        raise TypeError(f"the content of a message is text, parts or data, not {content!r}")
    return [{**part, "data": jsonable(part["data"])} if part["kind"] == "data" else part for part in parts]


def _resolution(question: Question, answer: Answer, number: int) -> dict[str, Any]:
    kind = question["kind"]
    if isinstance(answer, bool):
        given: dict[str, Any] = {"resolution": (_YES if answer else _NO)[kind]}
    elif isinstance(answer, str):
        given = {"resolution": answer}
    elif is_record(answer):
        given = {"resolution": "submitted", "data": jsonable(answer)}
    else:
        raise TypeError(f"an answer is True or False, a resolution, or the values of a form, not {answer!r}")
    known = {"request_id": f"req_{number + 1}", "source": "agent", "kind": kind, "title": question["title"]}
    return {**known, **given}


def _tool_error(error: Mapping[str, Any]) -> ToolError:
    return ToolError(error["message"], code=error["code"], retryable=error["retryable"])


def _failed(dispatch: dict[str, Any], error: Mapping[str, Any]) -> Task:
    return cast(Task, {**task_in("failed", message_ids(dispatch), error["message"]), "metadata": {"error": dict(error)}})
