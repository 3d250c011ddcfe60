"""The text of answers: the table of `test/sdk/text.test.ts`."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest

from agent_fleet import TaskFailedError, TaskNotEndedError, data_of, text_of, text_stream

DATA = {"kind": "data", "data": {"a": 1}}


def text(value: str) -> dict[str, Any]:
    return {"kind": "text", "text": value}


def artifact(id: str, *parts: dict[str, Any], append: bool = False) -> dict[str, Any]:
    update = {"kind": "artifact-update", "taskId": "msg_1", "contextId": "ses_1", "append": append}
    return {**update, "artifact": {"artifactId": id, "parts": list(parts)}}


def status(state: str, said: str | None = None) -> dict[str, Any]:
    message = {"kind": "message", "messageId": "m", "role": "agent", "parts": [text(said)]} if said else None
    return {"state": state, **({"message": message} if message else {})}


def task(state: str, *artifacts: dict[str, Any], said: str | None = None) -> dict[str, Any]:
    return {"kind": "task", "id": "msg_1", "contextId": "ses_1", "status": status(state, said), "artifacts": list(artifacts)}


def ended(state: str, said: str | None = None, **metadata: Any) -> dict[str, Any]:
    update = {"kind": "status-update", "taskId": "msg_1", "contextId": "ses_1", "final": True, "metadata": metadata}
    return {**update, "status": status(state, said)}


async def _from(events: list[Any]) -> AsyncIterator[Any]:
    for event in events:
        yield event


def pieces_of(*events: Any) -> list[str]:
    async def read() -> list[str]:
        return [piece async for piece in text_stream(_from(list(events)))]

    return asyncio.run(read())


RESTARTED = {**ended("working", restarted=True), "final": False}
_GAP = task("working", {"artifactId": "a", "parts": [text("one two")]})
_TABLE: dict[str, tuple[list[Any], list[str]]] = {
    "pieces that are appended": ([artifact("a", text("one ")), artifact("a", text("two"), append=True)], ["one ", "two"]),
    "the whole artifact again at the end": (
        [artifact("a", text("one ")), artifact("a", text("two"), append=True), artifact("a", text("one two"))],
        ["one ", "two"],
    ),
    "the whole artifact with more at the end": ([artifact("a", text("one")), artifact("a", text("one two"))], ["one", " two"]),
    "a replacement that is shorter": ([artifact("a", text("one two")), artifact("a", text("one"))], ["one two"]),
    "a replacement that says something else": ([artifact("a", text("draft")), artifact("a", text("end"))], ["draft", "\nend"]),
    "another artifact": ([artifact("a", text("one")), artifact("b", text("two"))], ["one", "\ntwo"]),
    "text after data": (
        [artifact("a", text("one")), artifact("a", DATA, append=True), artifact("a", text("two"), append=True)],
        ["one", "\ntwo"],
    ),
    "the task after a gap": ([artifact("a", text("one")), _GAP], ["one", " two"]),
    "an answer after a question": (
        [artifact("a", text("one")), ended("input-required", "Sure?"), artifact("b", text("two")), ended("completed")],
        ["one", "\ntwo"],
    ),
    "the answer of a status": ([task("working"), ended("completed", "done")], ["done"]),
    "a run that starts anew and says the same": (
        [artifact("a", text("one ")), RESTARTED, artifact("b", text("one ")), artifact("b", text("two"), append=True)],
        ["one ", "two"],
    ),
    "a run that starts anew in other pieces": ([artifact("a", text("one ")), RESTARTED, artifact("b", text("one two"))], ["one ", "two"]),
    "a run that starts anew and says something else": (
        [artifact("a", text("one ")), RESTARTED, artifact("b", text("on ")), artifact("b", text("top"), append=True)],
        ["one ", "\non ", "top"],
    ),
    "an event that a newer platform sends": ([{"kind": "weather"}, artifact("a", text("one"))], ["one"]),
}


@pytest.mark.parametrize(("events", "pieces"), _TABLE.values(), ids=_TABLE.keys())
def test_text_stream(events: list[Any], pieces: list[str]) -> None:
    assert pieces_of(*events) == pieces


def test_text_stream_raises_when_the_task_fails() -> None:
    with pytest.raises(TaskFailedError, match="no luck") as failed:
        pieces_of(artifact("a", text("one")), ended("failed", "no luck", error={"code": "HANDLER_ERROR"}))
    assert (failed.value.code, failed.value.task_id, failed.value.state) == ("HANDLER_ERROR", "msg_1", "failed")
    with pytest.raises(TaskFailedError) as canceled:
        pieces_of(ended("canceled"))
    assert canceled.value.code == "canceled"


def test_text_of_reads_tasks_artifacts_messages_and_parts() -> None:
    artifacts = [
        {"artifactId": "a", "parts": [text("one"), DATA, text("two")]},
        {"artifactId": "b", "parts": [DATA]},
        {"artifactId": "c", "parts": [text("three")]},
    ]
    assert text_of(task("completed", *artifacts)) == "one\ntwo\nthree"
    assert text_of(artifacts[0]) == "one\ntwo"
    assert text_of([text("one"), text("two")]) == "one\ntwo"
    assert text_of(task("completed")) == ""


def test_a_question_is_never_the_answer() -> None:
    for wait in (lambda: text_of(task("input-required", {"artifactId": "a", "parts": [text("one")]}, said="Sure?")),
                 lambda: pieces_of(task("working"), ended("input-required", "Sure?"))):
        with pytest.raises(TaskNotEndedError, match=r"waits for a human: Sure\?") as waiting:
            wait()
        assert (waiting.value.state, waiting.value.text, waiting.value.task_id) == ("input-required", "Sure?", "msg_1")
    with pytest.raises(TaskNotEndedError, match="is working"):
        text_of(task("working"))


def test_an_error_is_never_the_answer() -> None:
    failed = {**task("failed", said="no luck"), "metadata": {"error": {"code": "AGENT_BUSY"}}}
    with pytest.raises(TaskFailedError, match="no luck") as error:
        text_of(failed)
    assert error.value.code == "AGENT_BUSY"
    record = {"message_id": "msg_1", "parts": [text("the question")], "assistant_output": ""}
    with pytest.raises(TaskFailedError, match="no luck"):
        text_of({**record, "state": "failed", "error": {"code": "AGENT_BUSY", "message": "no luck"}})
    with pytest.raises(TaskNotEndedError, match="Sure"):
        text_of({**record, "state": "input-required", "input_request": {"prompt": "Sure?"}})
    assert text_of({**record, "state": "completed", "assistant_output": "tea"}) == "tea"


def test_data_of_is_typed() -> None:
    @dataclass
    class Price:
        cents: int

    answer = task("completed", {"artifactId": "a", "parts": [text("one"), {"kind": "data", "data": {"cents": 5}}]})
    assert data_of(answer) == {"cents": 5}
    assert data_of(answer, Price) == Price(5)
    with pytest.raises(ValueError, match="no data part"):
        data_of(task("completed"))


def test_a_page_is_cleared_when_the_answer_starts_anew() -> None:
    shown: list[str] = []

    async def read() -> None:
        events = [artifact("a", text("one ")), RESTARTED, artifact("b", text("one ")), artifact("b", text("two"), append=True)]
        async for piece in text_stream(_from(events), on_restart=shown.clear):
            shown.append(piece)

    asyncio.run(read())
    assert shown == ["one ", "two"]


def test_a_stream_is_closed_when_its_task_fails() -> None:
    closed = []

    async def connection() -> AsyncIterator[Any]:
        try:
            yield ended("failed", "no agent")
        finally:
            closed.append(True)

    async def read() -> None:
        with pytest.raises(TaskFailedError):
            async for _ in text_stream(connection()):
                pass
        assert closed == [True]

    asyncio.run(read())
