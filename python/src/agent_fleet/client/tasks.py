"""A2A's methods for tasks that exist: `tasks/*` of `/send`."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, cast

from ..parts import JsonObject
from .messaging import Messaging
from .rpc import StreamEvent
from .sent_task import Task
from .streams.resumed_stream import StreamPosition


class Tasks:
    """Reads, cancels and follows tasks, and sets who is notified about them."""

    def __init__(self, messaging: Messaging) -> None:
        self._messaging = messaging

    async def get(self, task_id: str, *, history_length: int | None = None) -> Task:
        """A task in its present state, with at most `history_length` messages of its history."""
        more = {"historyLength": history_length} if history_length is not None else {}
        return await self._messaging.task("tasks/get", {"id": task_id, **more}, retry=True)

    async def cancel(self, task_id: str) -> Task:
        """Cancels a task. Raises ApiError when it has ended."""
        return await self._messaging.task("tasks/cancel", {"id": task_id})

    def resubscribe(self, task_id: str, *, last_event_id: str = "") -> AsyncGenerator[StreamEvent, None]:
        """The updates of a task; broken connections are reopened as for `stream`."""
        return self._messaging.follow(StreamPosition(task_id, last_event_id), {}, {})

    async def set_push_config(self, task_id: str, config: JsonObject) -> JsonObject:
        """Sets a URL that is notified about a task."""
        return cast(JsonObject, await self._push("set", {"taskId": task_id, "pushNotificationConfig": config}))

    async def get_push_config(self, task_id: str, *, config_id: str | None = None) -> JsonObject:
        """A configuration of push notifications; without an id, the one with the task's id or the oldest."""
        more = {"pushNotificationConfigId": config_id} if config_id is not None else {}
        return cast(JsonObject, await self._push("get", {"id": task_id, **more}, retry=True))

    async def list_push_configs(self, task_id: str) -> list[JsonObject]:
        return cast(list[JsonObject], await self._push("list", {"id": task_id}, retry=True))

    async def delete_push_config(self, task_id: str, config_id: str) -> None:
        await self._push("delete", {"id": task_id, "pushNotificationConfigId": config_id}, retry=True)

    async def _push(self, method: str, params: JsonObject, *, retry: bool = False) -> Any:
        return await self._messaging.call(f"tasks/pushNotificationConfig/{method}", params, retry=retry)
