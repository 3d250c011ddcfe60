"""Questions to humans, by tasks in memory."""

import logging
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from agent_fleet import Agent, AgentTask, InputRequired, TaskNotEndedError
from agent_fleet.testing import run


class Size(Enum):
    SMALL = "s"
    LARGE = "l"


class Order(BaseModel):
    tea: Literal["green", "black"]
    size: Size = Size.SMALL
    cups: int = Field(ge=1, le=9)
    note: str | None = None


@dataclass
class Address:
    street: str


class Delivery(BaseModel):
    address: Address


def shop(schema: Any) -> Agent:
    agent = Agent("shop")

    @agent.on_message
    async def order(task: AgentTask) -> str:
        form = await task.ask("form", title="Order", prompt="Which tea?", schema=schema)
        if form.data is None:
            return "nothing"
        sure = await task.ask("confirmation", title="Sure?", prompt=f"{form.data!r}?")
        return f"{form.data!r}" if sure.accepted else "declined"

    return agent


def test_a_form_is_typed_back() -> None:
    given = {"tea": "green", "cups": 2}
    assert run(shop(Order), answers=[given, True]).text == repr(Order(tea="green", cups=2))
    assert run(shop(Order), answers=[Order(tea="green", cups=2), False]).text == "declined"
    assert run(shop(Order), answers=[False]).text == "nothing"
    assert run(shop(Address), answers=[{"street": "High St"}, "confirmed"]).text == repr(Address("High St"))


def test_a_run_without_an_answer_waits() -> None:
    waiting = run(shop(Order), answers=[{"tea": "green", "cups": 2}])
    assert (waiting.state, [question["title"] for question in waiting.questions]) == ("input-required", ["Order", "Sure?"])
    with pytest.raises(TaskNotEndedError, match="waits for a human"):
        _ = waiting.text


def test_the_schema_of_a_type_is_flat_and_in_order() -> None:
    [question] = run(shop(Order)).questions
    properties = question["schema"]["properties"]
    assert list(properties) == ["tea", "size", "cups", "note"]
    assert properties["tea"]["enum"] == ["green", "black"]
    assert properties["size"]["enum"] == ["s", "l"]
    assert "$defs" not in question["schema"]


def test_an_answer_that_does_not_fit_is_asked_again() -> None:
    found = run(shop(Order), answers=[{"tea": "red", "cups": 20}, {"tea": "green", "cups": 2}, True])
    assert found.text == repr(Order(tea="green", cups=2))
    assert found.questions[1]["prompt"].startswith("Which tea?\n\nThe values did not fit. tea: Input should be 'green' or 'black'")
    assert "cups: Input should be less than or equal to 9" in found.questions[1]["prompt"]


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        (Delivery, "properties.address: the form must be flat, without properties"),
        ({"type": "array"}, "type must be 'object', not 'array'"),
        ({"type": "object"}, "properties must be an object"),
        ({"properties": {"x": {"type": "text"}}}, "properties.x.type must not be 'text'"),
        ({"properties": {"x": {"type": "array", "items": {"type": "object"}}}}, "properties.x.items.type must not be 'object'"),
        ({"properties": {}, "required": "x"}, "required must be a list of names"),
    ],
)
def test_a_bad_schema_fails_with_its_reason(schema: Any, problem: str, caplog: pytest.LogCaptureFixture) -> None:
    found = run(shop(schema), log=logging.getLogger("agent_fleet"))
    assert found.error is not None
    assert (found.error.code, found.questions) == ("HANDLER_ERROR", [])
    assert f"the schema of the form “Order” is not valid: {problem}" in found.error.message
    assert problem in caplog.text


def test_a_bad_schema_of_a_returned_question_fails_too() -> None:
    agent = Agent("shop")

    @agent.on_message
    async def order(task: AgentTask) -> InputRequired:
        return InputRequired(question={"kind": "form", "title": "Order", "prompt": "Which?", "schema": {"type": "array"}})

    assert "the schema of the form “Order” is not valid: type must be 'object'" in str(run(agent).error)


def test_a_schema_may_be_a_list_of_alternatives() -> None:
    schema = {"properties": {"x": {"oneOf": [{"const": 1, "title": "One"}, {"const": 2}]}, "y": {"type": ["string", "null"]}}}
    assert run(shop(schema)).state == "input-required"


def form_of(*fields: Any) -> Agent:
    agent = Agent("shop")

    @agent.on_message
    async def order(task: AgentTask) -> dict[str, Any]:
        return (await task.ask("form", title="Order", prompt="Which tea?", fields=list(fields))).data

    return agent


def test_the_values_of_fields_are_checked_too() -> None:
    size = {"id": "size", "type": "choice", "label": "Size", "options": ["s", "l"]}
    asked = run(form_of(size, {"id": "note", "type": "text"}, {"id": "when", "type": "moon"}), answers=[])
    [question] = asked.questions
    assert list(question["schema"]["properties"].items()) == [
        ("size", {"title": "Size", "enum": ["s", "l"]}),
        ("note", {"type": "string"}),
        ("when", {}),
    ]
    assert [field["id"] for field in question["fields"]] == ["size", "note", "when"]
    assert "the field size is a choice without options" in str(run(form_of({"id": "size", "type": "choice"})).error)
    assert "fields.0.type: Field required; a field is {'id'" in str(run(form_of({"id": "size"})).error)
