"""OpenTelemetry: the agent's spans join the caller's trace."""

from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from agent_fleet import Agent, AgentTask
from agent_fleet.client.messaging import _headers_of
from agent_fleet.testing import run, run_tool

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
EXPORTER = InMemorySpanExporter()


@pytest.fixture(autouse=True, scope="module")
def _provider() -> None:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(EXPORTER))
    trace.set_tracer_provider(provider)


def spans() -> dict[str, ReadableSpan]:
    found = {span.name: span for span in EXPORTER.get_finished_spans()}
    EXPORTER.clear()
    return found


def make_agent() -> Agent:
    agent = Agent("a")

    @agent.on_message
    async def answer(task: AgentTask) -> str:
        with trace.get_tracer("program").start_as_current_span("think"):
            await task.call_tool("price")
        return "done"

    @agent.skill
    def plain(task: AgentTask) -> str:
        with trace.get_tracer("program").start_as_current_span("in a thread"):
            raise ValueError("no tea")

    @agent.tool
    async def price() -> int:
        return 250

    return agent


def test_the_spans_of_a_handler_join_the_trace_of_its_message() -> None:
    run(make_agent(), traceparent=f"00-{TRACE}-{SPAN}-01", tools={"price": 250})
    found = spans()
    handler, own = found["on_message"], found["think"]
    assert handler.parent is not None
    assert own.parent is not None
    assert (f"{handler.context.trace_id:032x}", f"{handler.parent.span_id:016x}") == (TRACE, SPAN)
    assert (own.context.trace_id, own.parent.span_id) == (handler.context.trace_id, handler.context.span_id)
    assert (handler.attributes or {})["fleet.message.id"] == "msg_test"


def test_a_failure_is_recorded_and_threads_keep_the_trace() -> None:
    run(make_agent(), skill_id="plain", traceparent=f"00-{TRACE}-{SPAN}-01")
    found = spans()
    assert found["skill plain"].status.status_code == trace.StatusCode.ERROR
    assert f"{found['in a thread'].context.trace_id:032x}" == TRACE


def test_tools_have_spans() -> None:
    run_tool(make_agent(), "price")
    assert list(spans()) == ["tool price"]


def test_the_client_passes_the_current_span() -> None:
    assert _headers_of({}) == {}
    with trace.get_tracer("program").start_as_current_span("call") as span:
        passed = _headers_of({})["traceparent"].split("-")
        assert passed[1:3] == [f"{span.get_span_context().trace_id:032x}", f"{span.get_span_context().span_id:016x}"]
        own: Any = {"traceparent": f"00-{TRACE}-{SPAN}-01"}
        assert _headers_of(own) == own
