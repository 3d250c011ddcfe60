"""The message and skill handlers of an agent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from ..interactive import is_interactive
from ..values.parameters import Parameters, call, parameter_names
from .agent_task import AgentTask, input_of
from .output_source import is_source
from .results import Failed

Handler = Callable[..., Any]
"""Takes the task, and the input of a skill by name; gives text, parts, a result, nothing, or an iterator of chunks."""


class Handlers:
    """One handler for messages, and one for each skill."""

    def __init__(self) -> None:
        self.skills: list[dict[str, Any]] = []
        """As the agent card lists them."""
        self.idempotent_skills: list[str] = []
        """Ids of the skills whose messages may be dispatched again."""
        self._by_skill: dict[str, tuple[Handler, Parameters]] = {}
        self._on_message: Handler | None = None

    def on_message(self, handler: Handler) -> None:
        if self._on_message and not is_interactive():
            raise ValueError("on_message is already set")
        self._on_message = handler

    def add_skill(self, handler: Handler, skill_id: str, *, idempotent: bool = False, **card: Any) -> None:
        """`card` has the other members of the skill, as the agent card lists it; None leaves one out. Messages to a skill that is
        `idempotent` may be dispatched again after the loss of their agent."""
        if skill_id in self._by_skill:
            if not is_interactive():
                raise ValueError(f"the skill {skill_id} is already defined")
            self._remove(skill_id)
        names = parameter_names(handler)
        if not names:
            raise TypeError(f"skill {skill_id}: the first parameter of a handler is the task")
        self._by_skill[skill_id] = (handler, Parameters(handler, f"skill {skill_id}", {names[0]}))
        if idempotent:
            self.idempotent_skills.append(skill_id)
        described = {name: value for name, value in card.items() if value is not None}
        self.skills.append({"id": skill_id, "name": skill_id, "description": "", "tags": [], **described})

    def _remove(self, skill_id: str) -> None:
        del self._by_skill[skill_id]
        self.skills[:] = [skill for skill in self.skills if skill["id"] != skill_id]
        self.idempotent_skills[:] = [each for each in self.idempotent_skills if each != skill_id]

    def name_of(self, task: AgentTask) -> str:
        """The handler's name in logs and errors."""
        return f"skill {task.skill_id}" if task.skill_id in self._by_skill else "on_message"

    async def run(self, task: AgentTask) -> object:
        """Runs the handler of a task; the chunks of a source are streamed."""
        try:
            answer = await self._answer(task)
            if not is_source(answer):
                return answer
            await task.stream(answer)
            return None
        except asyncio.CancelledError:
            task.sync.cancel()  # a thread is not interrupted
            raise

    async def _answer(self, task: AgentTask) -> object:
        found = self._by_skill.get(task.skill_id) if task.skill_id is not None else None
        if found:
            handler, parameters = found
            return await call(handler, task, **parameters.read(input_of(task)))
        if self._on_message:
            return await call(self._on_message, task)
        none = "accepts no messages without a skill" if task.skill_id is None else f"has no skill {task.skill_id}"
        return Failed(code="INVALID_DISPATCH", message=f"this agent {none}")
