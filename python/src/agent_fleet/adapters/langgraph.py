"""Agents on LangGraph: a session is a thread, an interrupt is a question to a human."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, cast

from langchain_core.messages import AIMessage
from langgraph.types import Command, Interrupt

from ..handlers.agent_task import AgentTask
from ..handlers.results import Completed, Failed, InputRequired, TaskResolution
from ..parts import Question, Usage
from .langgraph_review import Review, resumed_with, reviews_in
from .langgraph_thread import GraphThread

_QUESTION_MEMBERS = ("kind", "title", "prompt", "schema", "fields", "tool", "arguments")
_TERMINAL_STATES = ("completed", "failed", "canceled")


def _input_of(task: AgentTask) -> Any:
    return {"messages": [{"role": "user", "content": task.text}]}


def _question_of(value: object) -> Question:
    given = {name: value[name] for name in _QUESTION_MEMBERS if name in value} if isinstance(value, Mapping) else {}
    prompt = given.get("prompt") or (value if isinstance(value, str) else repr(value))
    return cast(Question, {"kind": "confirmation", "title": "Shall I go on?", **given, "prompt": prompt})


def _answer_of(values: Any) -> Completed:
    """The text of the last message; of a graph without messages all its values."""
    messages = values.get("messages") if isinstance(values, Mapping) else None
    if messages:
        return Completed(text=str(messages[-1].text))
    return Completed(parts=[values])


def langgraph_handler(
    graph: Any,
    *,
    make_input: Callable[[AgentTask], Any] = _input_of,
    thread_id: Callable[[AgentTask], str] = lambda task: task.session_id,
    nodes: Collection[str] | None = None,
    question: Callable[[object], Question] | None = None,
    resume: Callable[[TaskResolution], Any] | None = None,
    answer: Callable[[Any], Completed] = _answer_of,
    config: Mapping[str, Any] | None = None,
) -> Callable[[AgentTask], Awaitable[object]]:
    """The handler for a compiled graph, which needs a checkpointer. It streams the text of the models, and reports their usage.

    The session is the thread, an `interrupt(…)` is a question to a human, and the answer resumes the graph where it stood, in
    whichever process has the checkpoints. A message that comes again after its agent was lost goes on from its last checkpoint.

    - `make_input`: the graph's input; the text as the message of a user by default. `thread_id`: the session by default.
    - `nodes`: those whose text is the answer; all by default.
    - `question`: what an `interrupt(value)` asks; by default a mapping's members of a question, else a confirmation with the value
      as its prompt. `resume`: what `interrupt` returns; the `TaskResolution` by default. Without both, LangChain's
      `HumanInTheLoopMiddleware` asks for an approval of each call of a tool, one after the other, and gets the decisions.
    - `answer`: that of a graph whose models stream no text; by default the text of the last message, or the values as data.
    - `config` is passed to the graph.
    """

    async def handle(task: AgentTask) -> object:
        answers = [each for each in task.resolutions if each.source == "agent"]
        thread = GraphThread(graph, thread_id(task), config or {})

        def reviews_of(interrupt: Interrupt) -> list[Review]:
            return reviews_in(interrupt.value) if question is None and resume is None else []

        async def ask(interrupt: Interrupt, usage: Usage | None = None) -> InputRequired:
            await thread.note_asked(interrupt, len(answers))
            reviews = reviews_of(interrupt)
            asked = reviews[0].question() if reviews else (question or _question_of)(interrupt.value)
            return InputRequired(question=asked, usage=usage)

        before = await thread.state()
        resumed: Any
        is_own = before.message_id == task.message_id
        given: Any = None  # goes on from the last checkpoint
        if not is_own:
            # A message that was canceled, or that nobody answered in time, leaves its thread interrupted.
            if before.waiting and await _is_open(task, before.message_id):
                return _other_waits(thread_id(task), before.message_id)
            given = make_input(task)
        elif before.waiting:
            answered = next((each for each in before.waiting if _is_answered(each.answers_before, len(answers))), None)
            if answered is None or answered.answers_before is None:
                return await ask(before.waiting[0].interrupt)
            interrupt, decided = answered.interrupt, answers[answered.answers_before :]
            reviews = reviews_of(interrupt)
            if len(decided) < len(reviews):
                return InputRequired(question=reviews[len(decided)].question())
            if reviews:
                resumed = resumed_with(interrupt.value, reviews, decided[: len(reviews)])
            else:
                resumed = resume(decided[0]) if resume else decided[0]
            given = Command(resume={interrupt.id: resumed})

        usage: Usage = {"input_tokens": 0, "output_tokens": 0}
        has_text = False
        if not (is_own and before.is_over):
            async for chunk, metadata in thread.run(given, task.message_id):
                if not isinstance(chunk, AIMessage):
                    continue
                _count(usage, chunk)
                if nodes is None or metadata.get("langgraph_node") in nodes:
                    has_text = has_text or bool(chunk.text)
                    await task.stream(str(chunk.text))
        after = await thread.state()
        counted = usage if usage["input_tokens"] or usage["output_tokens"] else None
        if after.waiting:
            return await ask(after.waiting[0].interrupt, counted)
        if has_text:
            return Completed(usage=counted)
        made = answer(after.values)
        return replace(made, usage=made.usage or counted)

    return handle


def _is_answered(answers_before: int | None, answers: int) -> bool:
    return answers_before is not None and answers_before < answers


async def _is_open(task: AgentTask, message_id: str | None) -> bool:
    """Whether the message that a thread belongs to may still go on."""
    state = await task.state_of(message_id) if message_id else None
    return state is not None and state not in _TERMINAL_STATES


def _other_waits(thread_id: str, message_id: str | None) -> Failed:
    text = f"The thread {thread_id} waits for an answer to the message {message_id}: answer or cancel that one first."
    return Failed(code="AGENT_BUSY", message=text, retryable=True)


def _count(usage: Usage, message: AIMessage) -> None:
    counted = message.usage_metadata
    if counted:
        usage["input_tokens"] += counted["input_tokens"]
        usage["output_tokens"] += counted["output_tokens"]
    model = message.response_metadata.get("model_name")
    if isinstance(model, str):
        usage["model"] = model
