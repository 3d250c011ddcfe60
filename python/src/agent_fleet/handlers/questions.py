"""The questions of one run of a handler."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import replace
from typing import Any, Generic, cast

from ..parts import Question
from ..values.parameters import InvalidInput, read_as
from ..values.sendable import sendable
from .answer_fields import FIELDS
from .form_schema import require_form, schema_of, schema_of_fields
from .results import D, InputRequired, TaskResolution

_ACCEPTED = ("approved", "confirmed", "submitted")
"""The resolutions that count as agreement, of the five that the platform sends."""


_FORGOTTEN = "Write `await task.ask(…)` or `return task.ask(…)`."


class QuestionAsked(BaseException):
    """Ends a run of a handler at `await task.ask(…)` while nobody has answered.

    It is no `Exception`, so that `except Exception` in a handler does not hold it up.
    """


class Ask(Generic[D]):
    """What `task.ask` gives: await it for the answer, or return it from the handler to ask without waiting."""

    def __init__(self, questions: Questions, question: Question, form: Any = None) -> None:
        """`form` is the type as which the answer is read; None for a dict of its values."""
        self._questions = questions
        self._form = form
        self.required = InputRequired(question=question)

    def __bool__(self) -> bool:
        raise TypeError(f"{_FORGOTTEN} It is no answer yet.")

    def __await__(self) -> Generator[Any, None, TaskResolution[D]]:
        self._questions.heed(self)
        return self._questions.answer_to(self.required, self._form).__await__()


class Questions:
    """A question that was answered in an earlier run gets its answer.

    The first other one ends the run, and the handler runs again when a human has answered it.
    """

    def __init__(self, metadata: Mapping[str, Any]) -> None:
        self.resolutions = _resolutions_in(metadata)
        """Every answer that the dispatch carries, the oldest first."""
        self.asked: InputRequired | None = None
        """The question that ends this run."""
        self._ignored: list[Ask[Any]] = []
        self._unused = [each for each in self.resolutions if each.source == "agent"]
        self._replayed: list[tuple[TaskResolution[Any], InputRequired]] = []

    @property
    def latest(self) -> TaskResolution | None:
        """The answer to the question that this agent asked last."""
        answers = [each for each in self.resolutions if each.source == "agent"]
        return answers[-1] if answers else None

    def ask(self, question: Question, form: Any = None) -> Ask[Any]:
        """`form` is a type whose schema is that of the form. Raises UnsendableError for a schema that is no form."""
        if form is not None:
            question = {**question, "schema": schema_of(form)}
        elif question["kind"] == "form" and "schema" not in question and "fields" in question:
            fields = sendable(question["fields"], FIELDS)
            question = {**question, "schema": schema_of_fields(fields)}
        require_form(question)
        asked = Ask[Any](self, question, form)
        self._ignored.append(asked)
        return asked

    def heed(self, asked: Ask[Any]) -> None:
        """Notes that a question was awaited or returned."""
        self._ignored = [each for each in self._ignored if each is not asked]

    def check_heeded(self) -> None:
        """Raises RuntimeError for a question of a finished run that was neither awaited nor returned.

        The handler went on as if somebody had agreed.
        """
        if self._ignored:
            title = self._ignored[0].required.question.get("title")
            raise RuntimeError(f"Nobody was asked “{title}”, because the question was neither awaited nor returned. {_FORGOTTEN}")

    def result_of(self, returned: object) -> object:
        """What a handler returned. A returned answer means its question: it is asked again."""
        if isinstance(returned, Ask):
            self.heed(returned)
            return returned.required
        return next((asked for answer, asked in self._replayed if answer is returned), returned)

    async def answer_to(self, asked: InputRequired, form: Any = None) -> TaskResolution[Any]:
        """The next answer to this question. Raises QuestionAsked where there is none.

        A form that was filled in with values which do not fit its type is asked again, with what is wrong.
        """
        repeated = asked
        for resolution in [each for each in self._unused if _is_answer_to(each, asked.question)]:
            self._unused.remove(resolution)
            try:
                answer: TaskResolution[Any] = resolution if form is None else _read(resolution, form)
            except InvalidInput as error:
                prompt = f"{asked.question['prompt']}\n\nThe values did not fit. {error}"
                repeated = replace(asked, question={**asked.question, "prompt": prompt})
                continue
            self._replayed.append((answer, asked))
            return answer
        self.asked = self.asked or repeated
        raise QuestionAsked


def _read(resolution: TaskResolution, form: Any) -> TaskResolution[Any]:
    """The answer with its values as the type of the form; None for a form that was declined. Raises InvalidInput."""
    data = read_as(form, resolution.data) if resolution.accepted else None
    return replace(cast(TaskResolution[Any], resolution), data=data)


def _is_answer_to(resolution: TaskResolution, question: Question) -> bool:
    """Questions are known by kind and title; a platform that does not name them sent one answer alone."""
    kind, title = question.get("kind"), question.get("title")
    return (resolution.kind or kind) == kind and (resolution.title or title) == title


def _resolutions_in(metadata: Mapping[str, Any]) -> list[TaskResolution]:
    """Platforms of before there were several answers send one, `resolution`."""
    listed = metadata.get("resolutions")
    every = listed if isinstance(listed, list) else [metadata.get("resolution")]
    return [found for found in map(_resolution_of, every) if found]


def _resolution_of(value: object) -> TaskResolution | None:
    if not isinstance(value, dict):
        return None
    request_id, resolution = value.get("request_id"), value.get("resolution")
    if not isinstance(request_id, str) or not isinstance(resolution, str):
        return None
    text = {name: given for name in ("comment", "kind", "title") if isinstance(given := value.get(name), str)}
    data, arguments = value.get("data"), value.get("arguments")
    return TaskResolution(
        request_id=request_id,
        resolution=resolution,
        accepted=resolution in _ACCEPTED,
        data=cast(dict[str, Any], data) if isinstance(data, dict) else {},
        arguments=arguments if isinstance(arguments, dict) else None,
        source=value["source"] if isinstance(value.get("source"), str) else "agent",
        comment=text.get("comment"),
        kind=text.get("kind"),
        title=text.get("title"),
    )
