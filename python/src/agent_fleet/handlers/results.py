"""What handlers return, beside text and parts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..parts import Artifact, Part, Question, Usage


@dataclass(frozen=True, kw_only=True)
class Completed:
    """The whole answer. What was streamed counts where neither `parts` nor `artifacts` are given."""

    parts: list[Part] | None = None
    artifacts: list[Artifact] | None = None
    """Named outputs, instead of `parts`."""
    usage: Usage | None = None


@dataclass(frozen=True, kw_only=True)
class Failed:
    """The message fails with this error."""

    message: str
    code: str = "HANDLER_ERROR"
    retryable: bool = False


@dataclass(frozen=True, kw_only=True)
class InputRequired:
    """The message waits for the answer of a human."""

    question: Question
    usage: Usage | None = None


@dataclass(frozen=True, kw_only=True)
class TaskResolution:
    """What a human decided about a message: the answer to a question of this agent, or to what a policy, a guard or a plan asked."""

    request_id: str
    resolution: str
    """`approved`, `rejected`, `confirmed`, `submitted` or `declined`."""
    accepted: bool
    """Whether the human agreed, or filled in the form."""
    data: dict[str, Any] = field(default_factory=dict)
    """The values of the form."""
    comment: str | None = None
    arguments: dict[str, Any] | None = None
    """Of a tool call: the arguments as the human edited them."""
    source: str = "agent"
    """Who asked: `agent` for a question of `task.ask`, else `policy`, `guard` or `plan`."""
    kind: str | None = None
    title: str | None = None
