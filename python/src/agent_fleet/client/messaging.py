"""Messages to agents: A2A 0.3 over `/send`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

from typing_extensions import Unpack

from ..errors import UnreachableError
from ..parts import JsonObject
from ..tracing import current_traceparent
from .platform_api import STREAM_SILENCE_MS, PlatformApi, with_retries
from .rpc import StreamEvent, rpc_request, rpc_result, stream_events
from .send_options import Content, SendOptions, message_params
from .sent_task import Task
from .streams.resumed_stream import StreamPosition, resumed_stream


class Messaging:
    """Sends messages and follows tasks with one credential."""

    def __init__(self, api: PlatformApi) -> None:
        self._api = api

    async def send(
        self, content: Content, blocking: bool | None = None, **options: Unpack[SendOptions]
    ) -> Task:
        """As `FleetClient.send`."""
        params = message_params(content, options, blocking)
        return await self.task("message/send", params, headers=_headers_of(options), retry=True)

    def stream(
        self, content: Content, position: StreamPosition | None = None, **options: Unpack[SendOptions]
    ) -> AsyncGenerator[StreamEvent, None]:
        """As `FleetClient.stream`. `position` says where the stream stands."""
        return self.follow(position or StreamPosition(), message_params(content, options, None), _headers_of(options))

    async def call(
        self, method: str, params: JsonObject, *, headers: dict[str, str] | None = None, retry: bool = False
    ) -> Any:
        """The result of a JSON-RPC call."""

        async def once() -> Any:
            async with self._api.open("/send", rpc_request(method, params), headers=headers or {}) as answer:
                return rpc_result(await answer.json(), answer.request_id)

        return await with_retries(once) if retry else await once()

    async def task(
        self, method: str, params: JsonObject, *, headers: dict[str, str] | None = None, retry: bool = False
    ) -> Task:
        """The task that a call gives."""
        task = await self.call(method, params, headers=headers, retry=retry)
        if isinstance(task, dict) and isinstance(task.get("status"), dict):
            return cast(Task, task)
        cause = ValueError("the answer is no task")
        raise UnreachableError(f"{self._api.base_url}/send", cause) from cause

    def follow(
        self, position: StreamPosition, message: JsonObject, headers: dict[str, str]
    ) -> AsyncGenerator[StreamEvent, None]:
        """The events of a task from a position on. A message is repeated until its task id is known: the same message gives the
        same task, from its first event."""

        @asynccontextmanager
        async def open_stream(position: StreamPosition) -> AsyncIterator[AsyncIterator[tuple[str, StreamEvent]]]:
            known = position.task_id
            body = rpc_request("tasks/resubscribe", {"id": known}) if known else rpc_request("message/stream", message)
            last = {"last-event-id": position.last_event_id} if position.last_event_id else {}
            async with self._api.open("/send", body, headers={**headers, **last}, silence_ms=STREAM_SILENCE_MS) as answer:
                yield stream_events(answer)

        return resumed_stream(open_stream, position)


def _headers_of(options: SendOptions) -> dict[str, str]:
    traceparent = options.get("traceparent") or current_traceparent()
    return {"traceparent": traceparent} if traceparent else {}
