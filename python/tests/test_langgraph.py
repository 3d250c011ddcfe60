"""The adapter for LangGraph, with LangChain's own fake model."""

import asyncio
from typing import Any

from fake_task import run_task
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt

from agent_fleet import Completed, InputRequired
from agent_fleet.adapters.langgraph import langgraph_handler


def chat(*answers: AIMessage) -> Any:
    model = GenericFakeChatModel(messages=iter(answers))

    async def speak(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(state["messages"])]}

    return StateGraph(MessagesState).add_node("speak", speak).add_edge(START, "speak")


def test_streams_the_text_of_the_model_and_keeps_the_thread_of_a_session() -> None:
    async def run() -> None:
        graph = chat(AIMessage("Once upon a time"), AIMessage("The end")).compile(checkpointer=InMemorySaver())
        result, pieces = await run_task(langgraph_handler(graph), "Tell me a story")
        assert result == Completed()
        assert "".join(pieces) == "Once upon a time"
        assert len(pieces) > 1
        await run_task(langgraph_handler(graph), "Go on", message_id="msg_2")
        state = await graph.aget_state({"configurable": {"thread_id": "ses_1"}})
        assert [message.content for message in state.values["messages"]] == ["Tell me a story", "Once upon a time", "Go on", "The end"]

    asyncio.run(run())


def test_reports_usage() -> None:
    async def run() -> None:
        usage = {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}

        async def speak(state: MessagesState) -> dict[str, Any]:
            return {"messages": [AIMessage("Hello", usage_metadata=usage, response_metadata={"model_name": "fake"})]}

        graph = StateGraph(MessagesState).add_node("speak", speak).add_edge(START, "speak").compile(checkpointer=InMemorySaver())
        result, pieces = await run_task(langgraph_handler(graph), "Hi")
        assert result == Completed(usage={"input_tokens": 3, "output_tokens": 2, "model": "fake"})
        assert pieces == ["Hello"]

    asyncio.run(run())


def refunds() -> Any:
    def refund(state: MessagesState) -> dict[str, Any]:
        sure = interrupt("Refund?")
        why = interrupt({"kind": "form", "title": "Why?", "prompt": "Say why", "schema": {"type": "object"}}) if sure else {}
        return {"messages": [AIMessage(f"Refunded, {why['reason']}" if sure else "Kept")]}

    return StateGraph(MessagesState).add_node("refund", refund).add_edge(START, "refund")


def test_an_interrupt_is_a_question_and_its_answer_goes_on_in_another_process() -> None:
    async def run() -> None:
        saver = InMemorySaver()
        asked, _ = await run_task(langgraph_handler(refunds().compile(checkpointer=saver)), "refund")
        assert asked == InputRequired(question={"kind": "confirmation", "title": "Question", "prompt": "Refund?"})
        restarted = langgraph_handler(refunds().compile(checkpointer=saver))
        agreed = {"request_id": "r1", "resolution": "confirmed", "kind": "confirmation", "title": "Question"}
        asked, _ = await run_task(restarted, "refund", resolution=agreed)
        assert isinstance(asked, InputRequired)
        assert asked.question["kind"] == "form"
        filled = {"request_id": "r2", "resolution": "submitted", "kind": "form", "title": "Why?", "data": {"reason": "late"}}
        result, pieces = await run_task(restarted, "refund", resolution=filled)
        assert result == Completed()
        assert pieces == ["Refunded, late"]

    asyncio.run(run())


def test_the_answer_to_one_message_does_not_answer_the_interrupt_of_another() -> None:
    async def run() -> None:
        handler = langgraph_handler(refunds().compile(checkpointer=InMemorySaver()))
        await run_task(handler, "refund 1", message_id="msg_1")
        await run_task(handler, "refund 2", message_id="msg_2")
        agreed = {"request_id": "r1", "resolution": "confirmed", "kind": "confirmation", "title": "Question"}
        asked, _ = await run_task(handler, "refund 1", message_id="msg_1", resolution=agreed)
        assert asked == InputRequired(question={"kind": "confirmation", "title": "Question", "prompt": "Refund?"})

    asyncio.run(run())
