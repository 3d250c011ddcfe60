"""Frames of `service.v1`."""

from __future__ import annotations

import json
import secrets
import time
import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ..handlers.result_frame import now
from ..values.sendable import well_formed

SUBPROTOCOL = "service.v1"


@dataclass(frozen=True)
class Frame:
    """One received frame."""

    type: str
    id: str
    payload: dict[str, Any]
    in_reply_to: str | None
    traceparent: str
    """The frame's trace context as a W3C header; empty without one."""


def frame_id() -> str:
    """A new frame id: RFC 9562 version 7, 48 bits of milliseconds, then random bits."""
    millis = time.time_ns() // 1_000_000
    return str(uuid.UUID(int=millis << 80 | 0x7 << 76 | secrets.randbits(12) << 64 | 0b10 << 62 | secrets.randbits(62)))


def encode_frame(
    type: str, payload: dict[str, Any], *, id: str | None = None, in_reply_to: str | None = None, traceparent: str = ""
) -> bytes:
    """The text of a frame, in UTF-8. `traceparent` is W3C trace context; empty for none."""
    frame: dict[str, Any] = {"v": 1, "type": type, "id": id or frame_id(), "ts": now()}
    if in_reply_to is not None:
        frame["in_reply_to"] = in_reply_to
    trace = traceparent.split("-")
    if len(trace) >= 3:
        frame["trace_id"], frame["parent_span_id"] = trace[1], trace[2]
    return well_formed(json.dumps({**frame, "payload": payload}, ensure_ascii=False, separators=(",", ":")))


def decode_frame(text: str | bytes) -> Frame | None:
    """Parses a frame; None when `text` is not one. A binary message is none."""
    if isinstance(text, bytes):
        return None
    try:
        frame = json.loads(text)
        uuid.UUID(frame["id"])
        type_, id_, payload = frame["type"], frame["id"], frame["payload"]
        datetime.fromisoformat(frame["ts"])
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        return None  # the caller reports it on its connection
    in_reply_to, trace_id, span_id = (frame.get(name) for name in ("in_reply_to", "trace_id", "parent_span_id"))
    is_typed = isinstance(type_, str) and 1 <= len(type_) <= 64 and isinstance(payload, dict)
    is_optional = all(value is None or isinstance(value, str) for value in (in_reply_to, trace_id, span_id))
    if frame.get("v") != 1 or not is_typed or not is_optional:
        return None
    traceparent = f"00-{trace_id}-{span_id}-01" if trace_id and span_id else ""
    return Frame(type_, id_, payload, in_reply_to, traceparent)


def is_dispatch(payload: dict[str, Any]) -> bool:
    """Whether the payload of a `dispatch` has every required member."""
    params, context = payload.get("params"), payload.get("session_context")
    message = params.get("message") if isinstance(params, dict) else None
    if not isinstance(context, dict) or not isinstance(message, dict):
        return False
    parts = message.get("parts")
    return (
        isinstance(parts, list)
        and all(isinstance(part, dict) and isinstance(part.get("kind"), str) for part in parts)
        and isinstance(payload.get("dispatch_id"), str)
        and _is_number(payload.get("deadline_ms"))
        and isinstance(context.get("session_id"), str)
        and isinstance(context.get("message_id"), str)
    )


def is_tool_delivery(payload: dict[str, Any]) -> bool:
    """Whether the payload of a `tool_call` has every required member."""
    caller = payload.get("caller")
    return (
        isinstance(payload.get("tool"), str)
        and isinstance(payload.get("arguments"), dict)
        and isinstance(payload.get("dispatch_id"), str)
        and _is_number(payload.get("deadline_ms"))
        and isinstance(caller, dict)
        and isinstance(caller.get("agent_type"), str)
    )


def is_welcome(payload: dict[str, Any]) -> bool:
    """Whether the payload of a `welcome` has every required member."""
    times = [payload.get(name) for name in ("heartbeat_interval_ms", "ping_interval_ms", "resume_window_ms")]
    return (
        isinstance(payload.get("resumed"), bool)
        and isinstance(payload.get("resume_token"), str)
        and all(time_ms is not None and _is_number(time_ms) and time_ms > 0 for time_ms in times)
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
