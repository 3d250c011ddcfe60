"""A client of the platform's API."""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, cast

from ..access import Access, TokenProvider
from ..errors import UnreachableError
from ..parts import JsonObject, Part
from .generated.models import Task
from .generated.operations import Operations
from .platform_api import STREAM_SILENCE_MS, PlatformApi, with_retries
from .resumed_stream import StreamPosition, resumed_stream
from .rpc import SendOptions, StreamEvent, rpc_request, rpc_result, stream_events
from .waiting import Messages, Plans


class FleetClient(Operations):
    """A client of the platform's API: `async with FleetClient() as client`.

    Every operation is a method by the name of its path: `POST /sessions/get_by_id` is `client.sessions.get_by_id(session_id)`.
    Answers are plain dicts, typed for checkers; members and values that a newer platform adds are there too. Tokens are cached and
    renewed before they expire, and once after a 401. What only reads is repeated up to three times when the platform is
    unavailable. Every method raises ApiError or UnreachableError.
    """

    messages: Messages
    plans: Plans

    def __init__(
        self,
        *,
        url: str | None = None,
        client_id: str | None = None,
        client_secret: str | None = None,
        token: str | TokenProvider | None = None,
        ca: str | None = None,
        agent_type: str | None = None,
    ) -> None:
        """Missing options come from the environment, as for `Agent`. `agent_type` is the claim of the token; none by default.

        Raises ValueError when an address or a credential is missing.
        """
        options = Access(url=url, client_id=client_id, client_secret=client_secret, token=token, ca=ca)
        self._api = PlatformApi(options, agent_type)
        super().__init__(self._api)
        self.messages = Messages(self._api)
        self.plans = Plans(self._api)

    async def __aenter__(self) -> FleetClient:
        return self

    async def __aexit__(
        self, type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the connections; in-flight calls fail with `UnreachableError`."""
        await self._api.close()

    async def token(self) -> str:
        """A valid access token."""
        return await self._api.tokens.get()

    async def post(self, path: str, body: Mapping[str, Any] | None = None, *, retry: bool = False) -> JsonObject:
        """Calls any operation, also one that this version of the package does not know. Repeated only with `retry`."""
        return await self._api.call(path, dict(body or {}), retry=retry)

    async def send(
        self,
        content: str | Sequence[Part],
        *,
        context_id: str | None = None,
        task_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        message_id: str | None = None,
        blocking: bool | None = None,
        traceparent: str | None = None,
    ) -> Task:
        """A2A `message/send`: gives the task when it ends, when it waits for a human, or after the platform's `SEND_WAIT_MS`.

        - `context_id`: the session; a new one is opened by default. `task_id`: the `input-required` task that this answers.
        - `metadata`: routing and deadline (`instance_id`, `agent_type`, `skill_id` with its `args`, `deadline_ms`).
        - `message_id`: the same one gives the same task; a random one by default. A retry repeats it, so the message exists once.
        - `blocking=False` gives the task at once, in its current state. `traceparent`: W3C trace context of the caller.
        """
        options = _options(context_id, task_id, metadata, message_id, blocking, traceparent)
        params = options.params(content)

        async def once() -> Task:
            async with self._api.open("/send", rpc_request("message/send", params), headers=options.headers()) as answer:
                task = rpc_result(await answer.json())
            if not isinstance(task, dict) or not isinstance(task.get("status"), dict):
                cause = ValueError("the answer is no task")
                raise UnreachableError(answer.url, cause) from cause
            return cast(Task, task)

        return await with_retries(once)

    def stream(
        self,
        content: str | Sequence[Part],
        *,
        context_id: str | None = None,
        task_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        message_id: str | None = None,
        traceparent: str | None = None,
    ) -> AsyncGenerator[StreamEvent, None]:
        """A2A `message/stream`: the task, then its updates, to a final state or until the task waits for a human.

        A broken connection is reopened after the last event, without a gap or a repeat. When the platform no longer retains that
        event, the stream continues with the whole task. The parameters are those of `send`.
        """
        options = _options(context_id, task_id, metadata, message_id, None, traceparent)
        return self._follow(StreamPosition(), options.params(content), options.headers())

    def resubscribe(self, task_id: str, *, last_event_id: str = "") -> AsyncGenerator[StreamEvent, None]:
        """A2A `tasks/resubscribe`: the updates of an existing task; broken connections are reopened as for `stream`."""
        return self._follow(StreamPosition(task_id, last_event_id), {}, {})

    def _follow(
        self, position: StreamPosition, message: JsonObject, headers: dict[str, str]
    ) -> AsyncGenerator[StreamEvent, None]:
        @asynccontextmanager
        async def open_stream(position: StreamPosition) -> AsyncIterator[AsyncIterator[tuple[str, StreamEvent]]]:
            # The message is repeated until its task id is known: the same message gives the same task, from its first event.
            known = position.task_id
            body = rpc_request("tasks/resubscribe", {"id": known}) if known else rpc_request("message/stream", message)
            last = {"last-event-id": position.last_event_id} if position.last_event_id else {}
            async with self._api.open("/send", body, headers={**headers, **last}, silence_ms=STREAM_SILENCE_MS) as answer:
                yield stream_events(answer)

        return resumed_stream(open_stream, position)


def _options(
    context_id: str | None,
    task_id: str | None,
    metadata: Mapping[str, Any] | None,
    message_id: str | None,
    blocking: bool | None,
    traceparent: str | None,
) -> SendOptions:
    return SendOptions(
        context_id=context_id,
        task_id=task_id,
        metadata=metadata,
        message_id=message_id or str(uuid.uuid4()),
        blocking=blocking,
        traceparent=traceparent,
    )
