"""The stream of a task, over as many connections as necessary."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, cast

from ...errors import ApiError, UnreachableError, is_transient
from ..rpc import StreamEvent
from .reconnection import Reconnection

_RPC_INTERNAL = -32603
_WORKING = ("submitted", "working", "unknown")


@dataclass
class StreamPosition:
    """The position of a stream, after which a new connection continues."""

    task_id: str = ""
    """Empty before the first event."""
    last_event_id: str = ""
    """Empty when the stream has no event ids."""


OpenStream = Callable[[StreamPosition], AbstractAsyncContextManager[AsyncIterator[tuple[str, StreamEvent]]]]
"""Opens a stream that continues after the position."""


async def resumed_stream(open_stream: OpenStream, position: StreamPosition) -> AsyncGenerator[StreamEvent, None]:
    """Streams a task to its final event.

    `position` is the start of the stream: empty, or the end of an earlier one. Raises ApiError for a permanent failure,
    UnreachableError after two minutes without the platform.
    """
    reconnection = Reconnection()
    while True:
        settled = False
        failure: Exception = UnreachableError("/send", "the stream ended before its task")
        try:
            async with open_stream(position) as events:
                reconnection.opened()
                async for id, event in events:
                    reconnection.seen()
                    position.last_event_id = id or position.last_event_id
                    position.task_id = _task_id_of(event) or position.task_id
                    settled = _is_settled(event)
                    yield event
                    if event["kind"] == "status-update" and event["final"]:
                        return
            if settled:
                return
        except (ApiError, UnreachableError) as error:
            if not _is_retryable(error):
                raise
            failure = error
        await reconnection.wait(failure)


def _task_id_of(event: StreamEvent) -> str:
    members = cast(dict[str, Any], event)
    return str(members.get("id" if event["kind"] == "task" else "taskId") or "")


def _is_settled(event: StreamEvent) -> bool:
    """Whether a stream may end after this event: the task has ended, or waits for a human."""
    if event["kind"] == "task":
        return event["status"]["state"] not in _WORKING
    return event["kind"] == "status-update" and event["final"]


def _is_retryable(error: Exception) -> bool:
    """Whether the task continues although the stream broke; in the middle of a stream, -32603 means so too."""
    return is_transient(error) or (isinstance(error, ApiError) and error.rpc_code == _RPC_INTERNAL)
