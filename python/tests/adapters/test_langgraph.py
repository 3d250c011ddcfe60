"""The adapter for LangGraph, with LangChain's own fake model."""

import asyncio
import operator
from typing import Annotated, Any

import pytest
from fake_task import answered, run_task
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.language_models import FakeMessagesListChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt
from typing_extensions import TypedDict

from agent_fleet import Completed, Failed, InputRequired, TaskResolution
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


class Notes(TypedDict):
    notes: Annotated[list[str], operator.add]


def refunds(saver: Any, ran: list[str]) -> Any:
    """A graph that asks twice, and notes how often its first step ran."""

    def look(state: Notes) -> Notes:
        ran.append("look")
        return {"notes": ["looked"]}

    def ask(name: str) -> Any:
        def node(state: Notes) -> Notes:
            answer: TaskResolution = interrupt({"kind": "approval", "title": name, "prompt": f"May I {name}?"})
            return {"notes": [f"{name}: {answer.resolution} {answer.comment or ''}".strip()]}

        return node

    graph = StateGraph(Notes).add_node("look", look).add_node("refund", ask("refund")).add_node("tell", ask("tell"))
    graph.add_edge(START, "look").add_edge("look", "refund").add_edge("refund", "tell")
    return graph.compile(checkpointer=saver)


def handler_of(graph: Any) -> Any:
    return langgraph_handler(graph, make_input=lambda task: {"notes": []})


def notes(*said: str) -> Completed:
    return Completed(parts=[{"notes": list(said)}])


def asked(result: object) -> str:
    """The title of the question that a handler has returned."""
    assert isinstance(result, InputRequired), result
    return result.question["title"]


def test_an_interrupt_is_a_question_and_its_answer_goes_on_in_another_process_that_has_the_checkpoints() -> None:
    async def run() -> None:
        saver, ran = InMemorySaver(), list[str]()
        handler, elsewhere = handler_of(refunds(saver, ran)), handler_of(refunds(saver, ran))
        first, _ = await run_task(handler, "o-1")
        assert first == InputRequired(question={"kind": "approval", "title": "refund", "prompt": "May I refund?"})
        one = answered("refund", comment="fine")
        assert asked((await run_task(elsewhere, "o-1", answers=[one]))[0]) == "tell"
        # The same dispatch again, after its agent was lost: the first answer is not taken for the second question.
        assert asked((await run_task(elsewhere, "o-1", answers=[one]))[0]) == "tell"
        both = [one, answered("tell", resolution="rejected")]
        done = notes("looked", "refund: approved fine", "tell: rejected")
        assert (await run_task(handler, "o-1", answers=both))[0] == done
        assert (await run_task(elsewhere, "o-1", answers=both))[0] == done  # it is over, and does not run again
        assert ran == ["look"]

    asyncio.run(run())


def test_what_is_not_a_question_is_confirmed_and_resume_may_give_what_the_graph_expects() -> None:
    def node(state: Notes) -> Notes:
        return {"notes": ["yes" if interrupt("Refund?") is True else "no"]}

    async def run() -> None:
        graph = StateGraph(Notes).add_node("ask", node).add_edge(START, "ask").compile(checkpointer=InMemorySaver())
        handler = langgraph_handler(graph, make_input=lambda task: {"notes": []}, resume=lambda resolution: resolution.accepted)
        question, _ = await run_task(handler, "o-1")
        assert question == InputRequired(question={"kind": "confirmation", "title": "Shall I go on?", "prompt": "Refund?"})
        agreed = answered("Shall I go on?", resolution="confirmed")
        assert (await run_task(handler, "o-1", answers=[agreed]))[0] == notes("yes")

    asyncio.run(run())


def test_interrupts_of_one_step_are_asked_one_after_the_other_also_when_a_dispatch_comes_again() -> None:
    def ask(name: str) -> Any:
        def node(state: Notes) -> Notes:
            return {"notes": [f"{name}: {interrupt({'title': name, 'prompt': name}).comment}"]}

        return node

    async def run() -> None:
        graph = StateGraph(Notes).add_node("first", ask("first")).add_node("second", ask("second"))
        graph.add_edge(START, "first").add_edge(START, "second")
        handler = handler_of(graph.compile(checkpointer=InMemorySaver()))
        one, two = answered("first", comment="A"), answered("second", comment="B")
        for _ in range(2):
            assert asked((await run_task(handler, "o-1"))[0]) == "first"
        for _ in range(2):
            assert asked((await run_task(handler, "o-1", answers=[one]))[0]) == "second"
        assert (await run_task(handler, "o-1", answers=[one, two]))[0] == notes("first: A", "second: B")

    asyncio.run(run())


def asks_twice(state: Notes) -> Notes:
    """The same question, until the answer will do."""
    said = [interrupt({"title": "Which?", "prompt": "Which?"}).comment]
    while said[-1] != "tea":
        said.append(interrupt({"title": "Which?", "prompt": "Which?"}).comment)
    return {"notes": said}


def in_a_subgraph(node: Any) -> Any:
    inner = StateGraph(Notes).add_node("ask", node).add_edge(START, "ask").compile()
    return StateGraph(Notes).add_node("inner", inner).add_edge(START, "inner")


@pytest.mark.parametrize(
    "graph", [StateGraph(Notes).add_node("ask", asks_twice).add_edge(START, "ask"), in_a_subgraph(asks_twice)], ids=["node", "subgraph"]
)
def test_the_same_question_of_one_node_gets_its_own_answer_each_time(graph: Any) -> None:
    async def run() -> None:
        handler = handler_of(graph.compile(checkpointer=InMemorySaver()))
        one, two = answered("Which?", comment="coffee"), answered("Which?", comment="tea")
        for answers in ([], [], [one], [one]):
            assert asked((await run_task(handler, "o-1", answers=answers))[0]) == "Which?"
        assert (await run_task(handler, "o-1", answers=[one, two]))[0] == notes("coffee", "tea")

    asyncio.run(run())


@pytest.mark.parametrize(("is_strict", "allowed"), [(True, None), (False, True)])
def test_two_interrupts_of_one_node_with_strict_checkpoints_and_without_a_warning_else(
    is_strict: bool, allowed: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As with LANGGRAPH_STRICT_MSGPACK, which is read when the process starts, and without it."""
    monkeypatch.setattr("langgraph._internal._serde.STRICT_MSGPACK_ENABLED", is_strict)
    monkeypatch.setattr("langgraph.checkpoint.serde.jsonplus._warned_unregistered_types", set())
    graph = StateGraph(Notes).add_node("ask", asks_twice).add_edge(START, "ask")

    async def run() -> None:
        saver = InMemorySaver(serde=JsonPlusSerializer(allowed_msgpack_modules=allowed))
        one, two = answered("Which?", comment="coffee"), answered("Which?", comment="tea")
        for answers in ([], [one]):
            assert asked((await run_task(handler_of(graph.compile(checkpointer=saver)), "o-1", answers=answers))[0]) == "Which?"
        done, _ = await run_task(handler_of(graph.compile(checkpointer=saver)), "o-1", answers=[one, two])
        assert done == notes("coffee", "tea")

    asyncio.run(run())
    assert caplog.messages == []


class ToolModel(FakeMessagesListChatModel):
    """A model that may call tools."""

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self


@pytest.mark.parametrize("mode", ["batched", "per_call"])
def test_human_in_the_loop_middleware_needs_no_arguments(mode: Any) -> None:
    ran: list[str] = []

    @tool
    def refund(order: int) -> str:
        """Pays an order back"""
        ran.append(f"refund {order}")
        return "paid"

    @tool
    def mail(to: str) -> str:
        """Sends a letter"""
        ran.append(f"mail {to}")
        return "sent"

    calls: Any = [
        {"name": "refund", "args": {"order": 1}, "id": "c1", "type": "tool_call"},
        {"name": "mail", "args": {"to": "a"}, "id": "c2", "type": "tool_call"},
    ]

    async def run() -> None:
        model = ToolModel(responses=[AIMessage("", tool_calls=calls), AIMessage("All done")])
        review = HumanInTheLoopMiddleware({"refund": True, "mail": True}, interrupt_mode=mode)
        graph = create_agent(model, [refund, mail], middleware=[review], checkpointer=InMemorySaver())
        handler = langgraph_handler(graph)
        first, _ = await run_task(handler, "Refund it")
        assert isinstance(first, InputRequired)
        assert (first.question["tool"], first.question["arguments"]) == ("refund", {"order": 1})
        one = answered("Call refund?", kind="approval", arguments={"order": 2})
        for _ in range(2):
            assert asked((await run_task(handler, "Refund it", answers=[one]))[0]) == "Call mail?"
        two = answered("Call mail?", kind="approval", resolution="rejected", comment="not now")
        _, pieces = await run_task(handler, "Refund it", answers=[one, two])
        assert ("".join(pieces), ran) == ("All done", ["refund 2"])

    asyncio.run(run())


def test_a_tool_whose_result_a_human_gives_is_a_form() -> None:
    asks = {"action_requests": [{"name": "ask", "args": {}}], "review_configs": [{"action_name": "ask", "allowed_decisions": ["respond"]}]}

    def node(state: Notes) -> Notes:
        return {"notes": [str(interrupt(asks)["decisions"])]}

    async def run() -> None:
        handler = handler_of(StateGraph(Notes).add_node("ask", node).add_edge(START, "ask").compile(checkpointer=InMemorySaver()))
        assert asked((await run_task(handler, "o-1"))[0]) == "Answer ask"
        given = answered("Answer ask", kind="form", resolution="submitted", data={"message": "tea"})
        done, _ = await run_task(handler, "o-1", answers=[given])
        assert done == notes(str([{"type": "respond", "message": "tea"}]))

    asyncio.run(run())


@pytest.mark.parametrize("states", [{"msg_1": "canceled"}, {}], ids=["canceled", "gone"])
def test_the_question_of_a_message_that_is_over_holds_up_no_other_message(states: dict[str, str]) -> None:
    async def run() -> None:
        handler = handler_of(refunds(InMemorySaver(), []))
        await run_task(handler, "o-1")
        assert asked((await run_task(handler, "o-2", message_id="msg_2", states=states))[0]) == "refund"

    asyncio.run(run())


def test_another_message_to_a_thread_that_waits_is_refused_and_the_question_stays() -> None:
    async def run() -> None:
        handler = handler_of(refunds(InMemorySaver(), []))
        await run_task(handler, "o-1")
        refused, _ = await run_task(handler, "o-2", message_id="msg_2", states={"msg_1": "input-required"})
        assert isinstance(refused, Failed)
        assert (refused.code, refused.retryable, "msg_1" in refused.message) == ("AGENT_BUSY", True, True)
        assert asked((await run_task(handler, "o-1", answers=[answered("refund")]))[0]) == "tell"

    asyncio.run(run())


def test_a_message_that_comes_again_after_a_crash_goes_on_from_its_last_checkpoint() -> None:
    ran: list[str] = []

    def first(state: MessagesState) -> dict[str, Any]:
        ran.append("first")
        return {"messages": []}

    def second(state: MessagesState) -> dict[str, Any]:
        ran.append("second")
        if len(ran) == 2:
            raise OSError("the process dies")
        return {"messages": [AIMessage("done")]}

    async def run() -> None:
        graph = StateGraph(MessagesState).add_node("first", first).add_node("second", second)
        graph.add_edge(START, "first").add_edge("first", "second")
        handler = langgraph_handler(graph.compile(checkpointer=InMemorySaver()))
        with pytest.raises(OSError, match="the process dies"):
            await run_task(handler, "go")
        result, pieces = await run_task(handler, "go")
        assert (result, pieces) == (Completed(), ["done"])
        assert ran == ["first", "second", "second"]

    asyncio.run(run())


def test_only_the_text_of_chosen_nodes_is_the_answer_and_all_tokens_count() -> None:
    usage: Any = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}

    async def run() -> None:
        graph = StateGraph(MessagesState)
        graph.add_node("route", lambda _: {"messages": [AIMessage("to sales", usage_metadata=usage)]})
        graph.add_node("sales", lambda _: {"messages": [AIMessage("tea", usage_metadata=usage)]})
        graph.add_edge(START, "route").add_edge("route", "sales")
        handler = langgraph_handler(graph.compile(checkpointer=InMemorySaver()), nodes=["sales"])
        result, pieces = await run_task(handler, "buy")
        assert (result, pieces) == (Completed(usage={"input_tokens": 6, "output_tokens": 8}), ["tea"])

    asyncio.run(run())


def test_a_graph_needs_a_checkpointer() -> None:
    with pytest.raises(ValueError, match="checkpointer"):
        asyncio.run(run_task(langgraph_handler(chat(AIMessage("Hello")).compile()), "Hi"))
