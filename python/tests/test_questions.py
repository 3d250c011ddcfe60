"""A question that is neither awaited nor returned approves nothing."""

import asyncio
from typing import Any

import pytest

from agent_fleet.handlers.questions import Questions


def ask(questions: Questions) -> Any:
    return questions.ask({"kind": "confirmation", "title": "Delete?", "prompt": "Delete it?"})


def test_a_question_is_no_answer_yet() -> None:
    with pytest.raises(TypeError, match=r"await task\.ask"):
        bool(ask(Questions({})))


def test_a_finished_run_that_ignored_a_question_fails_and_says_what_to_write() -> None:
    questions = Questions({})
    ask(questions)
    with pytest.raises(RuntimeError, match=r"“Delete\?”.*await task\.ask"):
        questions.check_heeded()


def test_a_question_that_is_returned_or_awaited_was_heeded() -> None:
    answer = {"request_id": "req_1", "resolution": "confirmed", "source": "agent"}
    questions = Questions({"resolutions": [answer]})

    async def await_it() -> None:
        await ask(questions)

    asyncio.run(await_it())
    questions.result_of(ask(questions))
    questions.check_heeded()
