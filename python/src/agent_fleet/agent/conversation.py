"""What tasks ask the platform for."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, cast

from typing_extensions import Unpack

from ..client.messaging import Messaging
from ..client.platform_api import PlatformApi
from ..client.rpc import StreamEvent
from ..client.send_options import Content, MessageOptions, SendOptions
from ..client.sent_task import Task
from ..errors import ApiError
from ..handlers.agent_task import AgentTask
from ..handlers.conversation import TaskClient, Turn
from ..parts import Part
from ..tracing import current_traceparent

_PAGES_MAX = 20
"""Pages that `history` reads at most: further ones only where messages of the session came after this one, which are listed first."""
_PAGE_MIN, _PAGE_MAX = 25, 100


class PlatformConversation:
    """Reads the record with the token of the agent, and sends with it."""

    def __init__(self, api: PlatformApi) -> None:
        self._api = api
        self._messaging = Messaging(api)

    async def history(self, task: AgentTask, limit: int) -> list[Turn]:
        page_size = min(_PAGE_MAX, max(_PAGE_MIN, limit + 1))  # this message is among them
        earlier: dict[str, dict[str, Any]] = {}  # messages that come meanwhile move others to the next page
        for page in range(1, _PAGES_MAX + 1):
            body = {"session_id": task.session_id, "page": page, "page_size": page_size}
            messages = (await self._api.call("/messages/get", body, retry=True))["messages"]
            earlier |= {each["message_id"]: each for each in messages if each["message_id"] < task.message_id}
            if len(messages) < page_size or len(earlier) >= limit:
                break
        newest = list(earlier.values())[:limit]
        return [turn for message in reversed(newest) for turn in _turns_of(message)]

    async def state_of(self, message_id: str) -> str | None:
        try:
            answer = await self._api.call("/messages/get_by_id", {"message_id": message_id}, retry=True)
        except ApiError as error:
            if error.status == 404:
                return None
            raise
        return str(answer["message"]["state"])

    def client(self, task: AgentTask) -> TaskClient:
        return _TaskClient(self._messaging, task)


class _TaskClient:
    """Messages with the trace of a task, no more time than it has left, and one hop more than it came by."""

    def __init__(self, messaging: Messaging, task: AgentTask) -> None:
        self._messaging = messaging
        self._task = task

    async def send(
        self, content: Content, *, blocking: bool | None = None, **options: Unpack[MessageOptions]
    ) -> Task:
        return await self._messaging.send(content, blocking, **self._inherited(options))

    def stream(
        self, content: Content, **options: Unpack[MessageOptions]
    ) -> AsyncGenerator[StreamEvent, None]:
        return self._messaging.stream(content, **self._inherited(options))

    def _inherited(self, options: MessageOptions) -> SendOptions:
        hops = self._task.metadata.get("hops")
        left_ms = max(1, int(self._task.remaining_ms))
        inherited: SendOptions = {
            "traceparent": current_traceparent() or self._task.traceparent,
            "deadline_ms": min(options.get("deadline_ms") or left_ms, left_ms),
            "hops": (hops if isinstance(hops, int) else 0) + 1,
        }
        return cast(SendOptions, {**options, **inherited})


def _turns_of(message: dict[str, Any]) -> list[Turn]:
    """A message and its answer; one that has no output has no answer."""
    of = {"message_id": message["message_id"], "sent_at": message["created_at"], "state": message["state"]}
    turns = [Turn(role="user", text=message["user_input"], parts=message["parts"], **of)]
    text = message["assistant_output"]
    parts: list[Part] = [part for artifact in message["artifacts"] for part in artifact["parts"]]
    if text or parts:
        given = parts or [{"kind": "text", "text": text}]
        turns.append(Turn(role="agent", text=text, parts=given, agent_type=message.get("agent_type"), **of))
    return turns
