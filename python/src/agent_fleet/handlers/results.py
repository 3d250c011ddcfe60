"""What handlers return, beside text and parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Generic

from typing_extensions import TypeVar

from ..parts import Artifact, NewArtifact, Part, Question, Usage
from ..values.json_values import Record

D = TypeVar("D", default=dict[str, Any])
"""What a form asks for: a dict of its values, or the type whose schema was asked."""


@dataclass(frozen=True, kw_only=True)
class Completed:
    """The whole answer. What was streamed counts where neither `text` nor `parts` nor `artifacts` are given."""

    text: str | None = None
    """The text of the answer; before `parts` where both are given."""
    parts: Sequence[str | Part | Record] | None = None
    """Text, parts, and data: dicts, pydantic models and dataclasses."""
    artifacts: Sequence[Artifact | NewArtifact] | None = None
    """Named outputs, instead of `text` and `parts`."""
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
class TaskResolution(Generic[D]):
    """What a human decided about a message: the answer to a question of this agent, or to what a policy, a guard or a plan asked."""

    request_id: str
    resolution: str
    """`approved`, `rejected`, `confirmed`, `submitted` or `declined`."""
    accepted: bool
    """Whether the human agreed, or filled in the form."""
    data: D = field(default_factory=dict)  # type: ignore[assignment]
    """The values of the form. With `schema=Model` a `Model`; None where the human declined."""
    comment: str | None = None
    arguments: dict[str, Any] | None = None
    """Of a tool call: the arguments as the human edited them."""
    source: str = "agent"
    """Who asked: `agent` for a question of `task.ask`, else `policy`, `guard` or `plan`."""
    kind: str | None = None
    title: str | None = None
