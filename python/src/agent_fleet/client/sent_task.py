"""Tasks by where they stand."""

from __future__ import annotations

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict, TypeIs

from ..parts import Artifact
from .generated.models import TaskHistoryItem, TaskStatusMessage


class EndedStatus(TypedDict):
    state: Literal["completed", "failed", "canceled", "rejected"]
    message: NotRequired[TaskStatusMessage]
    timestamp: NotRequired[str]


class WaitingStatus(TypedDict):
    state: Literal["input-required", "auth-required"]
    message: NotRequired[TaskStatusMessage]
    timestamp: NotRequired[str]


class WorkingStatus(TypedDict):
    state: Literal["submitted", "working", "unknown"]
    message: NotRequired[TaskStatusMessage]
    timestamp: NotRequired[str]


class _Task(TypedDict):
    kind: Literal["task"]
    id: str
    """The id of its message, with which everything about it goes on."""
    contextId: str
    artifacts: NotRequired[list[Artifact]]
    history: NotRequired[list[TaskHistoryItem]]
    metadata: NotRequired[dict[str, Any]]


class EndedTask(_Task):
    """A task that has ended: with an answer, or without one."""

    status: EndedStatus


class WaitingTask(_Task):
    """A task that waits for a human."""

    status: WaitingStatus


class WorkingTask(_Task):
    """A task that goes on: `send` gives it where the answer takes longer than the platform's `SEND_WAIT_MS`."""

    status: WorkingStatus


Task = EndedTask | WaitingTask | WorkingTask
"""A task. `has_ended` and `is_waiting` tell them apart, also for type checkers."""


def has_ended(task: Task) -> TypeIs[EndedTask]:
    """Whether the task has ended."""
    return task["status"]["state"] in ("completed", "failed", "canceled", "rejected")


def is_waiting(task: Task) -> TypeIs[WaitingTask]:
    """Whether the task waits for a human."""
    return task["status"]["state"] in ("input-required", "auth-required")
