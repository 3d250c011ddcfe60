"""What LangChain's `HumanInTheLoopMiddleware` asks: an interrupt about one call of a tool, or about several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..handlers.results import TaskResolution
from ..parts import Question


@dataclass(frozen=True)
class Review:
    """A call of a tool that a human decides on."""

    name: str
    args: Mapping[str, Any]
    description: str
    is_answer: bool = False
    """The human gives the result of the tool, and does not decide on the call."""

    def question(self) -> Question:
        title = f"Answer {self.name}" if self.is_answer else f"Call {self.name}?"
        question: Question = {"kind": "approval", "title": title, "prompt": self.description or title}
        if self.is_answer:
            properties = {"message": {"type": "string", "title": "Answer"}}
            return {**question, "kind": "form", "schema": {"type": "object", "properties": properties, "required": ["message"]}}
        return {**question, "tool": self.name, "arguments": dict(self.args)}

    def decision(self, answer: TaskResolution) -> dict[str, Any]:
        """The decision as the middleware reads it. Arguments that the human has edited replace those of the call."""
        if not answer.accepted:
            return {"type": "reject", **({"message": answer.comment} if answer.comment else {})}
        if self.is_answer:
            return {"type": "respond", "message": str(answer.data.get("message", ""))}
        if answer.arguments is not None and answer.arguments != self.args:
            return {"type": "edit", "edited_action": {"name": self.name, "args": answer.arguments}}
        return {"type": "approve"}


def reviews_in(value: object) -> list[Review]:
    """The calls that an interrupt of the middleware asks about; empty for any other interrupt."""
    if not isinstance(value, Mapping):
        return []
    if value.get("type") == "tool_approval":  # its mode `per_call`
        return [_review(value, {})]
    calls, rules = value.get("action_requests"), value.get("review_configs")
    if not isinstance(calls, list) or not isinstance(rules, list) or len(calls) != len(rules):
        return []
    return [_review(call, rule) for call, rule in zip(calls, rules, strict=True)]


def resumed_with(value: Mapping[str, Any], reviews: Sequence[Review], answers: Sequence[TaskResolution]) -> dict[str, Any]:
    """What the interrupt returns."""
    decisions = [review.decision(answer) for review, answer in zip(reviews, answers, strict=True)]
    return decisions[0] if value.get("type") == "tool_approval" else {"decisions": decisions}


def _review(call: Mapping[str, Any], rule: Mapping[str, Any]) -> Review:
    allowed = rule.get("allowed_decisions", ("approve",))
    is_answer = "respond" in allowed and "approve" not in allowed
    return Review(str(call["name"]), call.get("args") or {}, str(call.get("description") or ""), is_answer)
