"""One run of a handler."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Any

from ..cancelation import is_canceled
from ..errors import ToolError, UnsendableError
from ..tools.tool_caller import ToolCaller
from ..tracing import handler_span
from ..values.parameters import InvalidInput
from .agent_task import AgentTask
from .conversation import Conversation
from .handlers import Handlers
from .questions import Questions
from .result_frame import ResultFrame, error_frame_of, result_frame_of
from .task_deadline import TaskDeadline
from .task_output import TaskOutput

_NORMAL_ENDS = ("APPROVAL_REJECTED", "APPROVAL_EXPIRED", "CANCELED")


@dataclass(frozen=True)
class RunDeps:
    """What a run of a handler needs."""

    handlers: Handlers
    tools: ToolCaller
    """Makes the tool calls of the handlers."""
    conversation: Conversation
    """Reads what tasks ask of the record, and sends their messages."""
    log: logging.Logger


async def run_dispatch(
    dispatch: dict[str, Any], output: TaskOutput, deadline: TaskDeadline, deps: RunDeps
) -> ResultFrame:
    """Runs the handler of a dispatch. Raises nothing but CancelledError, where the run is canceled.

    An error that the handler raises, a CancelledError of its own making too, and an answer that cannot be sent, fail this dispatch only.
    """
    name = ""

    def where() -> str:
        return f"handler={name}, message_id={dispatch['session_context']['message_id']}, dispatch_id={dispatch['dispatch_id']}"

    def warn_usage(problem: str) -> None:
        deps.log.warning("invalid usage is left out (%s): %s", where(), problem)

    try:
        questions = Questions(dispatch["params"].get("metadata") or {})
        task = AgentTask(
            dispatch,
            output=output,
            questions=questions,
            tools=deps.tools,
            deadline=deadline,
            conversation=deps.conversation,
        )
        name = deps.handlers.name_of(task)
        with handler_span(name, task.traceparent, _attributes_of(task)):
            answer = await _answer_of(deps, task, questions)
            if output.failure is not None:
                raise output.failure
        return result_frame_of(answer, output.artifact, dispatch, warn_usage)
    except (Exception, asyncio.CancelledError) as error:
        if isinstance(error, asyncio.CancelledError):
            if is_canceled():
                raise
            error = RuntimeError("the handler awaited something that was canceled (CancelledError)")
        if not _is_normal_end(error):
            deps.log.error("handler failed (%s)", where(), exc_info=True)
        return error_frame_of(f"{name}: {error}" if isinstance(error, UnsendableError) else error)


def _is_normal_end(error: BaseException) -> bool:
    """The input does not fit, a human has said no, or the message was canceled while a call waited: no fault of the handler."""
    return isinstance(error, InvalidInput) or (isinstance(error, ToolError) and error.code in _NORMAL_ENDS)


def _attributes_of(task: AgentTask) -> dict[str, str | int | None]:
    """Named as those of the platform's spans."""
    ids = {"fleet.message.id": task.message_id, "gen_ai.conversation.id": task.session_id, "fleet.dispatch.id": task.dispatch_id}
    return {**ids, "fleet.skill.id": task.skill_id, "fleet.dispatch.attempt": task.attempt}


async def _answer_of(deps: RunDeps, task: AgentTask, questions: Questions) -> object:
    """What the handler returned, or the question that ended its run, whatever its clean-up made of that."""
    answer: object = None
    try:
        answer = questions.result_of(await deps.handlers.run(task))
    except (asyncio.CancelledError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # QuestionAsked, alone or in the group of a task group; or what a clean-up raised
        if questions.asked is None:
            raise
        if isinstance(error, Exception):
            text = "handler failed while it waits for an answer (dispatch_id=%s)"
            deps.log.warning(text, task.dispatch_id, exc_info=True)
    if questions.asked is None:
        questions.check_heeded()
    return questions.asked or answer
