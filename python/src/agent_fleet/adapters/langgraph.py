"""Agents on LangGraph: a session is a thread, an interrupt is a question to a human."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

from langchain_core.messages import AIMessage
from langgraph.types import Command, Interrupt

from ..handlers.agent_task import AgentTask
from ..handlers.questions import Ask
from ..handlers.results import Completed, TaskResolution
from ..parts import Usage


def message_input(task: AgentTask) -> dict[str, Any]:
    """The input of a graph of messages."""
    return {"messages": [{"role": "user", "content": task.text}]}


def resume_value(resolution: TaskResolution) -> Any:
    """What `interrupt(…)` returns: the values of a form, or whether the human agreed. None for a form that was declined."""
    if resolution.kind == "form":
        return resolution.data if resolution.accepted else None
    return resolution.accepted


def langgraph_handler(
    graph: Any,
    *,
    make_input: Callable[[AgentTask], Any] = message_input,
    make_resume: Callable[[TaskResolution], Any] = resume_value,
    config: Mapping[str, Any] | None = None,
) -> Callable[[AgentTask], Awaitable[object]]:
    """The handler for a compiled graph. It streams the text of the model, and reports its usage.

    The graph needs a checkpointer. With one that survives the process, an interrupted graph goes on after a restart; otherwise it
    begins anew, and asks again. `interrupt("Refund?")` asks for a confirmation; `interrupt({"kind": "form", "title": …, "prompt":
    …, "schema": …})` asks any question of `task.ask`.
    """

    async def handle(task: AgentTask) -> object:
        given = dict(config or {})
        run_config = {
            **given,
            "configurable": {**given.get("configurable", {}), "thread_id": task.session_id},
            "metadata": {**given.get("metadata", {}), "fleet_message_id": task.message_id},
        }
        resumed = await _resume_of(graph, run_config, task, make_resume)
        interrupts: tuple[Interrupt, ...] = ()
        usage: Usage = {"input_tokens": 0, "output_tokens": 0}
        steps = graph.astream(resumed or make_input(task), run_config, stream_mode=["messages", "updates"])
        async for mode, data in steps:
            if mode == "messages" and isinstance(data[0], AIMessage):
                await task.stream(str(data[0].text))
                _count(usage, data[0])
            elif mode == "updates" and "__interrupt__" in data:
                interrupts = data["__interrupt__"]
        if interrupts:
            return _question_of(task, interrupts[0].value)
        return Completed(usage=usage if usage["input_tokens"] or usage["output_tokens"] else None)

    return handle


async def _resume_of(
    graph: Any, config: dict[str, Any], task: AgentTask, make_resume: Callable[[TaskResolution], Any]
) -> Command[Any] | None:
    """The answer to the interrupt at which this very message left the thread; None where it begins (anew)."""
    if not task.resolution:
        return None
    state = await graph.aget_state(config)
    is_same = (state.metadata or {}).get("fleet_message_id") == task.message_id
    if not is_same or not state.interrupts:
        return None
    return Command(resume={state.interrupts[0].id: make_resume(task.resolution)})


def _question_of(task: AgentTask, value: object) -> Ask:
    """A returned question: its answer is for this interrupt, whatever was answered before."""
    if isinstance(value, dict) and "prompt" in value:
        question = cast(dict[str, Any], {"kind": "confirmation", "title": "Question", **value})
        return task.ask(question.pop("kind"), **question)
    return task.ask("confirmation", title="Question", prompt=str(value))


def _count(usage: Usage, message: AIMessage) -> None:
    counted = message.usage_metadata
    if counted:
        usage["input_tokens"] += counted["input_tokens"]
        usage["output_tokens"] += counted["output_tokens"]
    model = message.response_metadata.get("model_name")
    if isinstance(model, str):
        usage["model"] = model
