"""What handlers without `async` use of a task."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from ..parts import InputField, JsonObject
from ..values.json_values import Record
from .output_source import Output, OutputSource
from .results import TaskResolution

if TYPE_CHECKING:
    from ..client.sent_task import Task
    from ..tools.tool_caller import CallsTools, Target
    from .agent_task import AgentTask
    from .conversation import Turn

T = TypeVar("T")


class LoopCalls:
    """Calls coroutines from threads, and ends these calls when the handler is canceled."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._running: set[concurrent.futures.Future[Any]] = set()
        self._is_canceled = False

    def wait(self, made: Coroutine[Any, Any, T]) -> T:
        """The result of a coroutine, which runs in the event loop. Raises CancelledError where the handler was canceled."""
        if threading.get_ident() == self._loop_thread:
            made.close()
            raise RuntimeError("`sync` is for handlers without `async`, which run in a thread: await the method of the task itself")
        if self._is_canceled:
            made.close()
            raise concurrent.futures.CancelledError
        call = asyncio.run_coroutine_threadsafe(made, self._loop)
        self._running.add(call)
        if self._is_canceled:  # meanwhile
            call.cancel()
        try:
            return call.result()
        finally:
            self._running.discard(call)

    def cancel(self) -> None:
        self._is_canceled = True
        for call in list(self._running):
            call.cancel()


class SyncToolCalls:
    """`call_tool` for functions without `async`."""

    def __init__(self, caller: CallsTools) -> None:
        self._caller = caller
        self._calls = LoopCalls()

    @overload
    def call_tool(
        self, tool: str, args: Record | None = None, *, target: Target | None = None, deadline_ms: int | None = None,
        idempotency_key: str | None = None,
    ) -> Any: ...
    @overload
    def call_tool(
        self, tool: str, args: Record | None = None, *, returns: type[T], target: Target | None = None, deadline_ms: int | None = None,
        idempotency_key: str | None = None,
    ) -> T: ...
    def call_tool(self, tool: str, args: Record | None = None, **options: Any) -> Any:
        """As `call_tool` of the task, without `await`."""
        return self._calls.wait(self._caller.call_tool(tool, args, **options))

    def cancel(self) -> None:
        """The handler was canceled: what waits raises CancelledError, and so does every later call."""
        self._calls.cancel()


class SyncTask(SyncToolCalls):
    """The methods of a task for handlers without `async`: `task.sync.stream("…")`. They block the handler's thread.

    When the task is canceled, a call that waits raises `concurrent.futures.CancelledError`, and so does every later one.
    """

    def __init__(self, task: AgentTask) -> None:
        super().__init__(task)
        self._task = task

    def stream(self, output: Output | OutputSource) -> None:
        """As `task.stream`."""
        self._calls.wait(self._task.stream(output))

    def status(self, text: str) -> None:
        """As `task.status`."""
        self._calls.wait(self._task.status(text))

    def history(self, *, limit: int = 20) -> list[Turn]:
        """As `task.history`."""
        return self._calls.wait(self._task.history(limit=limit))

    def search(self, namespaces: str | Sequence[str], query: str, **limits: Any) -> JsonObject:
        """As `task.search`."""
        return self._calls.wait(self._task.search(namespaces, query, **limits))

    def send(self, content: Any, **options: Any) -> Task:
        """As `task.client.send`."""
        return self._calls.wait(self._task.client.send(content, **options))

    @overload
    def ask(self, kind: Literal["form"], *, title: str, prompt: str, schema: type[T]) -> TaskResolution[T | None]: ...
    @overload
    def ask(
        self, kind: Literal["confirmation", "form", "approval"], *, title: str, prompt: str, schema: JsonObject | None = None,
        fields: list[InputField] | None = None, tool: str | None = None, arguments: JsonObject | None = None,
    ) -> TaskResolution: ...
    def ask(self, kind: Any, **question: Any) -> TaskResolution[Any]:
        """As `await task.ask(…)`: while nobody has answered, this run of the handler ends here."""

        async def asked() -> TaskResolution[Any]:
            return await self._task.ask(kind, **question)

        return self._calls.wait(asked())
