"""Agents on the OpenAI Agents SDK: a session is a conversation, a tool that needs an approval is a question to a human."""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

import agents
from agents.items import ToolApprovalItem
from agents.memory import Session

from ..handlers.agent_task import AgentTask
from ..handlers.results import Completed, InputRequired, TaskResolution
from ..parts import Part, Question, Usage
from .sqlite_runs import SQLiteRuns

__all__ = ["RunStore", "SQLiteRuns", "openai_agents_handler"]

_KEPT = timedelta(hours=48)
"""A question waits for a day, and its answer as long for room on the agent."""

RunInput = str | list[Any]
"""A text, or input items of the Agents SDK."""


class RunStore(Protocol):
    """Keeps runs that wait for an approval, by message: in a database where the agent must survive a restart."""

    async def load(self, message_id: str) -> str | None:
        """What was saved last; None for nothing."""

    async def save(self, message_id: str, run: str, keep_until: datetime) -> None:
        """`keep_until`: nobody can answer afterwards. Delete what is older: nobody tells the agent of a message that was canceled."""

    async def delete(self, message_id: str) -> None:
        """The message needs its run no more."""


@dataclass(frozen=True)
class _SavedRun:
    """What is kept between a question and its answer."""

    state: str
    answers: int
    """How many answers the message had when the run stopped."""


def openai_agents_handler(
    agent: agents.Agent[Any],
    *,
    session: Callable[[str], Session] | None = None,
    store: RunStore | None = None,
    make_input: Callable[[AgentTask], RunInput | Awaitable[RunInput]] = lambda task: task.text,
    run_config: agents.RunConfig | None = None,
    max_turns: int = 10,
) -> Callable[[AgentTask], Awaitable[object]]:
    """The handler for an agent. It streams the text of the model, and reports its usage.

    A tool with `needs_approval` asks a human: the answer approves or rejects the call, and the run goes on, in whichever process has
    the store.

    - `session` makes the conversation of a session id, for example `lambda id: SQLiteSession(id, "conversations.db")`; without it each
      message stands alone.
    - `store` keeps the runs that wait for an approval, for example `SQLiteRuns("runs.db")`; without one a call that needs it fails the
      message.
    - `make_input`: the run's input; the text of the message by default.
    """

    async def handle(task: AgentTask) -> object:
        answers = [each for each in task.resolutions if each.source == "agent"]
        saved = await _load(store, task.message_id)
        state = await agents.RunState.from_string(agent, saved.state) if saved else None
        asked = state.get_interruptions() if state else []
        given = answers[saved.answers :] if saved else []
        if len(given) < len(asked):
            return InputRequired(question=_question_about(asked[len(given)]))
        if state:
            _decide(state, asked, given)

        run = agents.Runner.run_streamed(
            agent,
            state or await _input_of(make_input, task),
            session=session(task.session_id) if session else None,
            run_config=run_config,
            max_turns=max_turns,
        )
        counted = run.context_wrapper.usage
        spent = (counted.input_tokens, counted.output_tokens)  # by the run before the question, and reported with it
        has_text = await _stream(run, task)
        counted = run.context_wrapper.usage
        usage: Usage = {"input_tokens": counted.input_tokens - spent[0], "output_tokens": counted.output_tokens - spent[1]}
        model = _model_name(run_config, run.current_agent)
        if model is not None:
            usage["model"] = model
        if run.interruptions:
            await _save(store, task.message_id, _SavedRun(run.to_state().to_string(), len(answers)))
            return InputRequired(question=_question_about(run.interruptions[0]), usage=usage)
        if saved and store:
            await store.delete(task.message_id)
        return Completed(parts=_parts_of(run.final_output, has_text), usage=usage)

    return handle


def _model_name(config: agents.RunConfig | None, agent: agents.Agent[Any]) -> str | None:
    """The name of the model that answered; None where a model of the program's own does not tell."""
    model = (config.model if config else None) or agent.model
    name = agents.models.get_default_model() if model is None else model if isinstance(model, str) else getattr(model, "model", None)
    return str(name) if isinstance(name, str) else None


async def _stream(run: agents.RunResultStreaming, task: AgentTask) -> bool:
    """Streams the text of a run to its end. Gives whether there was any."""
    has_text = False
    speaker = run.current_agent
    try:
        async for event in run.stream_events():
            if event.type == "agent_updated_stream_event":
                speaker = event.new_agent
            elif event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
                # Text of an agent with an output type is JSON, which the answer has as data.
                if speaker.output_type in (None, str):
                    has_text = True
                    await task.stream(event.data.delta)
    finally:
        run.cancel()
    return has_text


async def _input_of(make_input: Callable[[AgentTask], RunInput | Awaitable[RunInput]], task: AgentTask) -> RunInput:
    made = make_input(task)
    return await made if inspect.isawaitable(made) else made


def _parts_of(output: Any, has_text: bool) -> list[Part] | None:
    """The answer; None where it was streamed. An output with a type of its own is a data part."""
    if isinstance(output, str):
        return None if has_text else [{"kind": "text", "text": output}]
    data = output.model_dump(mode="json") if hasattr(output, "model_dump") else output
    return [{"kind": "data", "data": data if isinstance(data, dict) else {"output": data}}]


async def _load(store: RunStore | None, message_id: str) -> _SavedRun | None:
    saved = await store.load(message_id) if store else None
    return _SavedRun(**json.loads(saved)) if saved else None


async def _save(store: RunStore | None, message_id: str, run: _SavedRun) -> None:
    if not store:
        raise RuntimeError("a tool needs approval, and openai_agents_handler has no store to keep the run in")
    await store.save(message_id, json.dumps(asdict(run)), datetime.now(UTC) + _KEPT)


def _decide(
    state: agents.RunState[Any, Any], asked: Sequence[ToolApprovalItem], given: Sequence[TaskResolution]
) -> None:
    for item, resolution in zip(asked, given, strict=False):
        if resolution.accepted:
            state.approve(item)
        else:
            state.reject(item, rejection_message=resolution.comment)


def _question_about(item: ToolApprovalItem) -> Question:
    name = item.name or "a tool"
    question: Question = {
        "kind": "approval",
        "title": f"Call {name}?",
        "prompt": f"{item.agent.name} wants to call {name}.",
        "tool": name,
    }
    if item.arguments:
        question["arguments"] = _object_of(item.arguments)
    return question


def _object_of(arguments: str) -> dict[str, Any]:
    """Arguments as an object; others, which tools without a schema have, as its only member."""
    try:
        read = json.loads(arguments)
    except ValueError:
        read = arguments
    return read if isinstance(read, dict) else {"arguments": read}
