"""The adapter for the OpenAI Agents SDK, with a model that is made of its own types."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import agents
from agents.items import TResponseStreamEvent
from agents.memory import SQLiteSession
from fake_task import run_task
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseTextDeltaEvent,
    ResponseUsage,
)
from openai.types.responses.response_usage import InputTokensDetails, OutputTokensDetails
from pydantic import BaseModel

from agent_fleet import Completed, Failed
from agent_fleet.adapters.openai_agents import openai_agents_handler

agents.set_tracing_disabled(True)


class ScriptedModel(agents.Model):
    """Answers each turn with the next output, and keeps what it was given."""

    def __init__(self, *turns: Any) -> None:
        self.turns = list(turns)
        self.inputs: list[Any] = []

    async def get_response(self, *args: Any, **kwargs: Any) -> agents.ModelResponse:
        raise NotImplementedError  # the adapter streams

    async def stream_response(self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any) -> AsyncIterator[TResponseStreamEvent]:
        self.inputs.append(input)
        turn = self.turns.pop(0)
        item: Any = turn
        if isinstance(turn, str):
            for number, word in enumerate(turn.split(" ")):
                yield ResponseTextDeltaEvent(
                    content_index=0,
                    delta=word if number == 0 else f" {word}",
                    item_id="msg",
                    logprobs=[],
                    output_index=0,
                    sequence_number=number,
                    type="response.output_text.delta",
                )
            text = ResponseOutputText(annotations=[], text=turn, type="output_text", logprobs=[])
            item = ResponseOutputMessage(id="msg", content=[text], role="assistant", status="completed", type="message")
        usage = ResponseUsage(
            input_tokens=3,
            output_tokens=2,
            total_tokens=5,
            input_tokens_details=InputTokensDetails.model_construct(cached_tokens=0),
            output_tokens_details=OutputTokensDetails(reasoning_tokens=0),
        )
        response = Response(
            id="resp",
            created_at=0,
            model="scripted",
            object="response",
            output=[item],
            parallel_tool_calls=False,
            tool_choice="auto",
            tools=[],
            usage=usage,
        )
        yield ResponseCompletedEvent(response=response, sequence_number=99, type="response.completed")


def test_streams_the_text_and_reports_the_usage() -> None:
    agent = agents.Agent("assistant", model=ScriptedModel("Once upon a time"))
    result, pieces = asyncio.run(run_task(openai_agents_handler(agent), "Tell me a story"))
    assert pieces == ["Once", " upon", " a", " time"]
    assert result == Completed(usage={"input_tokens": 3, "output_tokens": 2})


def test_calls_tools() -> None:
    @agents.function_tool
    def price(item: str) -> str:
        return f"{item} costs 250"

    call = ResponseFunctionToolCall(arguments='{"item":"tea"}', call_id="call_1", name="price", type="function_call")
    model = ScriptedModel(call, "It costs 250")
    result, pieces = asyncio.run(run_task(openai_agents_handler(agents.Agent("assistant", model=model, tools=[price])), "Price?"))
    assert "".join(pieces) == "It costs 250"
    assert result == Completed(usage={"input_tokens": 6, "output_tokens": 4})
    assert model.inputs[1][-1]["output"] == "tea costs 250"


def test_a_session_is_a_conversation() -> None:
    async def run() -> None:
        conversation = SQLiteSession("ses_1")
        model = ScriptedModel("One", "Two")
        handler = openai_agents_handler(agents.Agent("assistant", model=model), session=lambda id: conversation)
        await run_task(handler, "First")
        await run_task(handler, "Second", message_id="msg_2")
        assert [item.get("content") for item in model.inputs[1]][::2] == ["First", "Second"]
        conversation.close()

    asyncio.run(run())


def test_an_output_with_a_type_is_data() -> None:
    class Weather(BaseModel):
        sunny: bool

    agent = agents.Agent("assistant", model=ScriptedModel('{"sunny":true}'), output_type=Weather)
    result, _ = asyncio.run(run_task(openai_agents_handler(agent), "Weather?"))
    usage: Any = {"input_tokens": 3, "output_tokens": 2}
    assert result == Completed(parts=[{"kind": "data", "data": {"sunny": True}}], usage=usage)


def test_a_tool_that_needs_an_approval_fails_the_message() -> None:
    @agents.function_tool(needs_approval=True)
    def pay() -> str:
        raise AssertionError("nobody has approved")

    call = ResponseFunctionToolCall(arguments="{}", call_id="call_1", name="pay", type="function_call")
    agent = agents.Agent("assistant", model=ScriptedModel(call), tools=[pay])
    result, _ = asyncio.run(run_task(openai_agents_handler(agent), "Pay"))
    assert isinstance(result, Failed)
    assert result.code == "APPROVAL_UNSUPPORTED"
