"""Calls of tools."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NotRequired, Protocol, TypeVar, cast, overload

from typing_extensions import TypedDict

from ..errors import ToolError, UnsendableError
from ..handlers.answer_fields import ARGUMENTS
from ..handlers.task_deadline import TaskDeadline
from ..limits import DEADLINE_MS_MAX
from ..tracing import current_traceparent
from ..values.json_values import Record
from ..values.parameters import InvalidInput, read_as
from ..values.sendable import sendable, shown

T = TypeVar("T")

_AVAILABLE_WITHIN_SECONDS = 30.0
"""An approved call waits this long for an agent that offers the tool, as messages do."""
_PAUSE_SECONDS = 1.0
"""Between two attempts of such a call."""


class Target(TypedDict):
    """The agent to call; it must match every given member."""

    instance_id: NotRequired[str]
    agent_type: NotRequired[str]
    skill_id: NotRequired[str]


class ToolCaller(Protocol):
    """Sends tool calls."""

    async def call(
        self, payload: dict[str, Any], traceparent: str, deadline: TaskDeadline | None = None
    ) -> dict[str, Any]:
        """Waits for the result, also through the approval of a human: `deadline` stands still meanwhile."""


@dataclass(frozen=True, kw_only=True)
class CallContext:
    """The dispatch or tool call that calls are part of."""

    dispatch_id: str
    traceparent: str
    deadline: TaskDeadline | None = None
    is_approved: bool = False
    """Whether a human has approved a call of the task in an earlier run."""


class CallsTools(ABC):
    """Has `call_tool`."""

    @abstractmethod
    def _tool_caller(self) -> tuple[ToolCaller, CallContext | None]:
        """What sends the calls, and the dispatch or tool call that they are part of."""

    @overload
    async def call_tool(
        self,
        tool: str,
        args: Record | None = None,
        *,
        target: Target | None = None,
        deadline_ms: int | None = None,
        idempotency_key: str | None = None,
    ) -> Any: ...
    @overload
    async def call_tool(
        self,
        tool: str,
        args: Record | None = None,
        *,
        returns: type[T],
        target: Target | None = None,
        deadline_ms: int | None = None,
        idempotency_key: str | None = None,
    ) -> T: ...
    async def call_tool(
        self,
        tool: str,
        args: Record | None = None,
        *,
        returns: Any = None,
        target: Target | None = None,
        deadline_ms: int | None = None,
        idempotency_key: str | None = None,
    ) -> Any:
        """Calls a tool of another agent, or of the platform. A call of a task or tool call is part of it, and ends with it.

        A call that needs the approval of a human waits for it, for days if need be: the deadline of the task stands still
        meanwhile. If the agent or the platform is lost in between, the task begins anew with the decision in `resolutions`,
        and the same call passes without a further question. Once it is approved, the call waits up to 30 s for an agent that
        offers the tool. `target` names the agent to call; by default it is the only available one that lists the tool, or the
        platform. `deadline_ms` is the time that the task has left by default. A repeat with the same `idempotency_key` gets the
        same result. `args` may be a pydantic model or a dataclass; `returns` is a type as which the result is read.

        Raises ToolError when the call fails or is denied, when no agent offers the tool, and when the arguments cannot be
        sent (`BAD_REQUEST`, `PAYLOAD_TOO_LARGE`); with `BAD_RESULT` when the result does not fit `returns`.
        """
        caller, context = self._tool_caller()
        payload = _payload_of(tool, args, target, deadline_ms, idempotency_key)
        if context:
            payload["dispatch_id"] = context.dispatch_id
        result = _unwrapped(await _answer_of(caller, payload, context))
        return result if returns is None else _read_result(tool, result, returns)


async def _answer_of(caller: ToolCaller, payload: dict[str, Any], context: CallContext | None) -> dict[str, Any]:
    """Makes a call. One that is approved is made again while no agent that offers the tool is available."""
    traceparent = current_traceparent() or (context.traceparent if context else "")
    deadline = context.deadline if context else None
    answer = await caller.call(payload, traceparent, deadline)
    is_approved = (context is not None and context.is_approved) or (answer.get("error") or {}).get("approved") is True
    loop = asyncio.get_running_loop()
    until = loop.time() + _AVAILABLE_WITHIN_SECONDS
    while is_approved and _is_unavailable(answer) and loop.time() < until:
        await asyncio.sleep(_PAUSE_SECONDS)
        answer = await caller.call(payload, traceparent, deadline)
    return answer


def _is_unavailable(answer: dict[str, Any]) -> bool:
    error = answer.get("error") or {}
    return answer.get("ok") is False and error.get("code") == "TARGET_UNAVAILABLE" and error.get("retryable") is True


def tool_failure(error: object) -> dict[str, Any]:
    """The failed result of a tool call."""
    code, retryable = (error.code, error.retryable) if isinstance(error, ToolError) else ("HANDLER_ERROR", False)
    message = error.message if isinstance(error, ToolError) else str(error) or type(error).__name__
    text = message.replace("\0", "\ufffd")[:4_096]
    return {"ok": False, "error": {"code": code, "message": text, "retryable": retryable is True}}


def _payload_of(
    tool: str,
    args: Record | None,
    target: Target | None,
    deadline_ms: int | None,
    idempotency_key: str | None,
) -> dict[str, Any]:
    """Raises ToolError when the mesh would refuse the call."""
    try:
        problem = _problem(tool, target, deadline_ms, idempotency_key)
        if problem:
            raise UnsendableError(f"{problem}; see the parameters of call_tool")
        payload: dict[str, Any] = {"tool": tool, "arguments": sendable({} if args is None else args, ARGUMENTS)}
    except UnsendableError as error:
        raise ToolError(f"call_tool({shown(tool)}): {error}", code=error.code) from None
    if target:
        payload["target"] = dict(target)
    if deadline_ms is not None:
        payload["deadline_ms"] = deadline_ms
    if idempotency_key is not None:
        payload["idempotency_key"] = idempotency_key
    return payload


def _problem(tool: object, target: object, deadline_ms: object, idempotency_key: object) -> str | None:
    def is_text(value: object, chars_max: int) -> bool:
        return isinstance(value, str) and 1 <= len(value) <= chars_max and "\0" not in value

    if not is_text(tool, 256):
        return f"the name of a tool has 1 to 256 characters, not {shown(tool)}"
    members = target if isinstance(target, dict) else {}
    if target is not None and (
        not isinstance(target, dict)
        or not set(members) <= {"instance_id", "agent_type", "skill_id"}
        or not all(is_text(value, 256) for value in members.values())
    ):
        return f"a target has instance_id, agent_type or skill_id, not {shown(target)}"
    is_whole = isinstance(deadline_ms, int) and not isinstance(deadline_ms, bool)
    if deadline_ms is not None and not (is_whole and 1 <= cast(int, deadline_ms) <= DEADLINE_MS_MAX):
        return f"deadline_ms is a whole number from 1 to {DEADLINE_MS_MAX}, not {shown(deadline_ms)}"
    if idempotency_key is not None and not is_text(idempotency_key, 200):
        return f"an idempotency_key has 1 to 200 characters, not {shown(idempotency_key)}"
    return None


def _read_result(tool: str, result: object, returns: Any) -> Any:
    try:
        return read_as(returns, result)
    except InvalidInput as error:
        raise ToolError(f"the result of {tool} is not what was expected: {error}", code="BAD_RESULT") from None


def _unwrapped(answer: dict[str, Any]) -> Any:
    if answer.get("ok") is True:
        return answer.get("result")
    error = cast(dict[str, Any], answer["error"])
    code, message = str(error.get("code", "")), str(error.get("message") or error.get("code", ""))
    raise ToolError(message, code=code, retryable=error.get("retryable") is True, policy_id=error.get("policy_id"))
