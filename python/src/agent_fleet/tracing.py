"""OpenTelemetry, where it is installed: `agent-fleet[otel]`, or the program's own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

try:
    from opentelemetry import context as otel_context
    from opentelemetry import trace
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
except ImportError:
    _is_installed = False
else:
    _is_installed = True

from .version import __version__


def current_traceparent() -> str:
    """The current span as a W3C header; empty without one."""
    carrier: dict[str, str] = {}
    if _is_installed:
        TraceContextTextMapPropagator().inject(carrier)
    return carrier.get("traceparent", "")


@contextmanager
def handler_span(name: str, traceparent: str, attributes: Mapping[str, Any]) -> Iterator[None]:
    """A span for a run of a handler, which is part of the caller's trace. What it raises is recorded, and passed on."""
    if not _is_installed:
        yield
        return
    parent = TraceContextTextMapPropagator().extract({"traceparent": traceparent}, otel_context.Context())
    tracer = trace.get_tracer("agent_fleet", __version__)
    given = {key: value for key, value in attributes.items() if value is not None}
    with tracer.start_as_current_span(name, parent, kind=trace.SpanKind.SERVER, attributes=given):
        yield
