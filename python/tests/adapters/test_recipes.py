"""The recipes for frameworks without an adapter: the programs of examples/, with models of the test."""

import asyncio
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

from google.adk.models import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types
from pydantic_ai.models.function import AgentInfo, FunctionModel

from agent_fleet.handlers.conversation import Turn
from agent_fleet.testing import run, run_async

sys.path.append(str(Path(__file__).parents[2] / "examples"))
import google_adk_agent
import pydantic_ai_agent


def turn(role: Any, text: str) -> Turn:
    return Turn(role=role, text=text, parts=[], message_id="msg_0", state="completed", sent_at="2026-11-28T00:00:00.000Z")


def test_pydantic_ai_streams_and_knows_the_session() -> None:
    seen: list[Any] = []

    async def answer(messages: list[Any], info: AgentInfo) -> Any:
        seen.extend(messages)
        yield "Tea is "
        yield "2.50."

    with pydantic_ai_agent.assistant.override(model=FunctionModel(stream_function=answer)):
        found = run(pydantic_ai_agent.agent, "And tea?", history=[turn("user", "Hello"), turn("agent", "Hi")])
    assert (found.text, found.pieces) == ("Tea is 2.50.", ["Tea is ", "2.50."])
    assert [part.content for message in seen for part in message.parts] == ["Hello", "Hi", "And tea?"]
    assert found.usage is not None
    assert found.usage["output_tokens"] > 0


class ScriptedLlm(BaseLlm):
    """Calls the tool, then answers with what it said, in two pieces."""

    async def generate_content_async(self, llm_request: LlmRequest, stream: bool = False) -> AsyncGenerator[LlmResponse, None]:
        last = (llm_request.contents[-1].parts or [])[-1]
        if not last.function_response:
            call = types.Part(function_call=types.FunctionCall(name="price", args={"item": "tea"}))
            yield LlmResponse(content=types.Content(role="model", parts=[call]))
            return
        told = str((last.function_response.response or {})["result"])
        counted = types.GenerateContentResponseUsageMetadata(prompt_token_count=3, candidates_token_count=2)
        for text in ("It is ", told):
            yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=text)]), partial=True)
        whole = types.Content(role="model", parts=[types.Part(text=f"It is {told}")])
        yield LlmResponse(content=whole, usage_metadata=counted)


def test_google_adk_streams_calls_tools_and_keeps_its_session() -> None:
    async def twice() -> None:
        google_adk_agent.assistant.model = ScriptedLlm(model="scripted")
        found = await run_async(google_adk_agent.agent, "How much is tea?")
        assert (found.text, found.pieces) == ("It is tea: 2.50", ["It is ", "tea: 2.50"])
        assert found.usage == {"input_tokens": 3, "output_tokens": 2}
        session = await google_adk_agent.runner.session_service.get_session(app_name="shop", user_id="user", session_id="ses_test")
        assert session is not None
        assert [event.author for event in session.events if event.content] == ["user", "assistant", "assistant", "assistant"]

    asyncio.run(twice())
