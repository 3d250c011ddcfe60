"""What a task reads of its conversation, and how it sends to other agents."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from typing_extensions import Unpack

from ..client.rpc import StreamEvent
from ..client.send_options import Content, MessageOptions
from ..client.sent_task import Task
from ..parts import Part


@dataclass(frozen=True, kw_only=True)
class Turn:
    """A message of the session, or its answer."""

    role: Literal["user", "agent"]
    text: str
    parts: list[Part]
    message_id: str
    """Of both a message and its answer."""
    state: str
    """Of the message: `completed`, or another; that of an answer that is only begun may still change."""
    sent_at: str
    """When the message was sent, ISO 8601."""
    agent_type: str | None = None
    """Of an answer: the type of the agent that gave it."""


class TaskClient(Protocol):
    """Sends messages to other agents as part of a task.

    They carry its trace, have no more time than it has left, and end with it. Each counts one hop more than the message of the
    task; beyond 16 the platform refuses them, so that agents which send to each other in a loop come to an end.
    """

    async def send(
        self, content: Content, *, blocking: bool | None = None, **options: Unpack[MessageOptions]
    ) -> Task:
        """Waits for the answer, as `FleetClient.send`. Raises ApiError (`INVALID_PARAMS` with `metadata.hops` beyond the bound)."""

    def stream(
        self, content: Content, **options: Unpack[MessageOptions]
    ) -> AsyncGenerator[StreamEvent, None]:
        """As `FleetClient.stream`."""


class Conversation(Protocol):
    """Asks the platform about a task, by the agent's own right."""

    async def history(self, task: Any, limit: int) -> list[Turn]:
        """The earlier messages of the task's session, with their answers, the oldest first."""

    async def state_of(self, message_id: str) -> str | None:
        """The state of a message; None for one that is not there, or that this agent may not see."""

    def client(self, task: Any) -> TaskClient:
        """Sends messages as part of the task."""
