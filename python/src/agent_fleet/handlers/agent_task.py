"""What the handler of a message gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

from ..errors import ToolError
from ..parts import InputField, JsonObject, Part, Question, text_of
from .output_source import Output, OutputSource
from .questions import Ask, Questions
from .results import TaskResolution
from .task_deadline import TaskDeadline
from .task_output import TaskOutput
from .tool_caller import CallContext, CallsTools, ToolCaller


class AgentTask(CallsTools):
    """One message for this agent to answer.

    Its handler is canceled (`asyncio.CancelledError`) when the message is canceled, exceeds its deadline or is lost with the
    connection; an answer is then ignored.
    """

    def __init__(
        self,
        dispatch: dict[str, Any],
        *,
        output: TaskOutput,
        questions: Questions,
        tools: ToolCaller,
        deadline: TaskDeadline,
    ) -> None:
        params, context = dispatch["params"], dispatch["session_context"]
        headers = context.get("propagation_headers") or {}
        self.parts: Sequence[Part] = params["message"]["parts"]
        self.text = text_of(cast(Sequence[Mapping[str, Any]], self.parts))
        """The text parts of the message, joined by line feeds."""
        self.metadata: Mapping[str, Any] = params.get("metadata") or {}
        """Metadata that the caller sent with the message, including members that the platform does not define."""
        self.session_id: str = context["session_id"]
        self.message_id: str = context["message_id"]
        self.user_id: str | None = context.get("user_id")
        self.dispatch_id: str = dispatch["dispatch_id"]
        self.skill_id: str | None = dispatch.get("skill_id")
        self.args: Mapping[str, Any] | None = dispatch.get("args")
        """Arguments of the skill, from the caller's `metadata.args`."""
        self.attempt: int = dispatch.get("attempt", 1)
        """The number of this attempt at the message, from 1."""
        self.deadline_ms: int = dispatch["deadline_ms"]
        """Milliseconds that were left for the answer when the task arrived."""
        self.traceparent: str = headers.get("traceparent") or ""
        """W3C trace context, to pass on in the task's own requests."""
        self.resolutions: Sequence[TaskResolution] = questions.resolutions
        """Everything that humans decided about this message, the oldest first."""
        self.resolution: TaskResolution | None = questions.latest
        """The answer to the question that this agent asked last about this message; None when it has asked none."""
        self._output = output
        self._questions = questions
        self._tools = tools
        self._context = CallContext(dispatch_id=self.dispatch_id, traceparent=self.traceparent, deadline=deadline)

    async def stream(self, output: Output | OutputSource) -> None:
        """Sends a chunk of the answer, or each chunk of a source as it arrives. Returns when the connection accepts more.

        A chunk that cannot be sent fails the task. Raises ValueError for such a chunk, and when the answer exceeds the size
        of a frame (1 MiB).
        """
        await self._output.stream(output)

    async def status(self, text: str) -> None:
        """Reports progress, up to 4,096 characters. The text is not part of the answer."""
        await self._output.status(text)

    def _tool_caller(self) -> tuple[ToolCaller, CallContext]:
        return self._tools, self._context

    async def search(
        self, namespaces: str | Sequence[str], query: str, *, deadline_ms: int | None = None, **limits: Any
    ) -> JsonObject:
        """Searches knowledge bases of the tenant, except private ones. `results` carry citations.

        `limits` are those of `/knowledge_base/query`, for example `top_k=3`. Raises ToolError as `call_tool` does.
        """
        where = {"namespace": namespaces} if isinstance(namespaces, str) else {"namespaces": list(namespaces)}
        found = await self.call_tool("knowledge_base.query", {**where, "query": query, **limits}, deadline_ms=deadline_ms)
        if isinstance(found, dict) and isinstance(found.get("results"), list):
            return found
        raise ToolError("HANDLER_ERROR", "knowledge_base.query gave an unexpected result")

    def ask(
        self,
        kind: Literal["confirmation", "form", "approval"],
        *,
        title: str,
        prompt: str,
        schema: JsonObject | None = None,
        fields: list[InputField] | None = None,
        tool: str | None = None,
        arguments: JsonObject | None = None,
    ) -> Ask:
        """Asks a human. `await task.ask(…)` gives the answer.

        Until there is one, this run of the handler ends here (only `finally` and context managers run), and the handler runs
        again from its beginning, perhaps in another process, when a human has answered. Questions that were answered in
        earlier runs then get their answers at once, in the order in which they were asked, known by kind and title.

        `return task.ask(…)` asks without waiting: the handler runs again with `task.resolution`.
        """
        given = {"schema": schema, "fields": fields, "tool": tool, "arguments": arguments}
        question = {"kind": kind, "title": title, "prompt": prompt}
        optional = {name: value for name, value in given.items() if value is not None}
        return self._questions.ask(cast(Question, {**question, **optional}))
