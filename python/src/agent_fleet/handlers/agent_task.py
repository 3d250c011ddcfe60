"""What the handler of a message gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeVar, cast, overload

from ..errors import ToolError
from ..parts import InputField, JsonObject, Part, Question, text_of_parts
from ..tools.tool_caller import CallContext, CallsTools, ToolCaller
from ..values.parameters import read_as
from .conversation import Conversation, TaskClient, Turn
from .output_source import Output, OutputSource
from .questions import Ask, Questions
from .results import TaskResolution
from .sync_task import SyncTask
from .task_deadline import TaskDeadline
from .task_files import TaskFile, files_of
from .task_output import TaskOutput

T = TypeVar("T")
_Kind = Literal["confirmation", "form", "approval"]


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
        conversation: Conversation,
    ) -> None:
        params, context = dispatch["params"], dispatch["session_context"]
        headers = context.get("propagation_headers") or {}
        self.parts: Sequence[Part] = params["message"]["parts"]
        self.text = text_of_parts(cast(Sequence[Mapping[str, Any]], self.parts))
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
        self.idempotency_key: str = dispatch.get("idempotency_key") or self.dispatch_id
        """The same in every attempt at this message since the last answer of a human: a key for what must not be done twice when a
        message to an idempotent skill is dispatched again."""
        self.traceparent: str = headers.get("traceparent") or ""
        """W3C trace context, to pass on in the task's own requests."""
        self.resolutions: Sequence[TaskResolution] = questions.resolutions
        """Everything that humans decided about this message, the oldest first."""
        self.resolution: TaskResolution | None = questions.latest
        """The answer to the question that this agent asked last about this message; None when it has asked none."""
        self.client: TaskClient = conversation.client(self)
        """Sends messages to other agents."""
        self._conversation = conversation
        self._deadline = deadline
        self._output = output
        self._questions = questions
        self._tools = tools
        self._context = CallContext(
            dispatch_id=self.dispatch_id,
            traceparent=self.traceparent,
            deadline=deadline,
            is_approved=any(each.source != "agent" and each.accepted for each in self.resolutions),
        )
        self.sync = SyncTask(self)
        """For handlers without `async`: `task.sync.stream("…")`, `task.sync.call_tool(…)`, `task.sync.ask(…)`."""

    @property
    def remaining_ms(self) -> float:
        """Milliseconds that are left for the answer now."""
        return self._deadline.left_ms

    @property
    def files(self) -> list[TaskFile]:
        """The files of the message."""
        return files_of(self.parts)

    @overload
    def data(self) -> dict[str, Any]: ...
    @overload
    def data(self, type: type[T]) -> T: ...
    def data(self, type: Any = dict) -> Any:
        """The input of the message, as pydantic reads it for a type: its `args`, or else its first data part, or else `{}`.

        Input that does not fit the type raises an error that fails the message with `INVALID_DISPATCH`.
        """
        return read_as(type, input_of(self))

    async def history(self, *, limit: int = 20) -> list[Turn]:
        """Earlier messages of the session that this agent may see, with their answers, the oldest first.

        `limit` counts messages, 1 to 99; the newest are kept. Read from the platform by each call.
        """
        return await self._conversation.history(self, limit)

    async def state_of(self, message_id: str) -> str | None:
        """The state of another message that this agent may see (`submitted` to `canceled`); None where there is none."""
        return await self._conversation.state_of(message_id)

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
        raise ToolError("knowledge_base.query gave an unexpected result", code="HANDLER_ERROR")

    @overload
    def ask(self, kind: Literal["form"], *, title: str, prompt: str, schema: type[T]) -> Ask[T | None]: ...
    @overload
    def ask(
        self,
        kind: _Kind,
        *,
        title: str,
        prompt: str,
        schema: JsonObject | None = None,
        fields: list[InputField] | None = None,
        tool: str | None = None,
        arguments: JsonObject | None = None,
    ) -> Ask: ...
    def ask(
        self,
        kind: _Kind,
        *,
        title: str,
        prompt: str,
        schema: Any = None,
        fields: list[InputField] | None = None,
        tool: str | None = None,
        arguments: JsonObject | None = None,
    ) -> Ask[Any]:
        """Asks a human. `await task.ask(…)` gives the answer.

        Until there is one, this run of the handler ends here (only `finally` and context managers run), and the handler runs
        again from its beginning, perhaps in another process, when a human has answered. Questions that were answered in
        earlier runs then get their answers at once, in the order in which they were asked, known by kind and title.

        `schema` is a JSON Schema, or a type with flat fields, such as a pydantic model or a dataclass: then `data` of the answer is
        one, and None where the human declined. Raises ValueError for a schema that is no form.

        `return task.ask(…)` asks without waiting: the handler runs again with `task.resolution`.

        A question that is neither awaited nor returned fails the task with HANDLER_ERROR, and nobody is asked. Used as a
        condition it raises TypeError.
        """
        form = schema if schema is not None and not isinstance(schema, dict) else None
        given = {"schema": None if form else schema, "fields": fields, "tool": tool, "arguments": arguments}
        question = {"kind": kind, "title": title, "prompt": prompt}
        optional = {name: value for name, value in given.items() if value is not None}
        return self._questions.ask(cast(Question, {**question, **optional}), form)


def input_of(task: AgentTask) -> object:
    """The caller's `args`, or else the message's first data part."""
    if task.args is not None:
        return task.args
    return next((part["data"] for part in task.parts if part["kind"] == "data"), {})
