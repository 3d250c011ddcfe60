"""What goes with a message."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, TypedDict

from ..parts import JsonObject, Part
from ..values.json_values import Record, jsonable, parts_of

Content = str | Part | Record | Sequence[str | Part | Record]
"""What a message says: text, a part, or data (a dict, a pydantic model, a dataclass), or a list of these."""


class RoutingOptions(TypedDict, total=False):
    """Where a message goes, and how long it may take."""

    agent_type: str | None
    """Any agent of this type."""
    instance_id: str | None
    """This agent."""
    target_agent: str | None
    """An instance; if there is none of that id, an agent type."""
    skill_id: str | None
    """The skill that is asked for."""
    user_id: str | None
    """The end user that the message is sent for."""
    args: Record | None
    """The arguments of the skill."""
    deadline_ms: int | None
    """Time limit for the answer in milliseconds."""
    accepted_output_modes: Sequence[str] | None
    """Media types that the caller accepts."""


class MessageOptions(RoutingOptions, total=False):
    """Options of a message."""

    context_id: str | None
    """The session; a new one is opened by default."""
    message_id: str | None
    """Idempotency key: the same key returns the same task. A random one by default."""
    metadata: Mapping[str, Any] | None
    """Members of your own, which the agent gets."""


class SendOptions(MessageOptions, total=False):
    """Options of `send` and `stream`."""

    task_id: str | None
    """The `input-required` task that this message answers."""
    hops: int | None
    """How many agents it came through: `task.client` counts them."""
    traceparent: str | None
    """W3C trace context of the caller; the current span of OpenTelemetry by default, where that is installed."""


_ROUTING = (*RoutingOptions.__annotations__, "hops")
_OPTIONS = SendOptions.__annotations__
_RESERVED = {*_ROUTING, *SendOptions.__annotations__, "blocking", "accepted_output_modes"}


def message_params(content: Content, options: SendOptions, blocking: bool | None) -> JsonObject:
    """`params` of `message/send` and `message/stream`.

    Raises TypeError for an unknown option, and for an option in `metadata`, where it would have no effect.
    """
    for name in options:
        if name not in _OPTIONS:
            near = get_close_matches(name, _OPTIONS, n=1)
            remedy = f"did you mean {near[0]}?" if near else f"the options are {', '.join(_OPTIONS)}"
            raise TypeError(f"a message has no option {name!r}: {remedy} Members of your own go into metadata={{…}}.")
    parts = parts_of(content)
    if parts is None:
        raise TypeError(f"a message is text, parts or data (dicts, models, dataclasses), not {content!r:.100}")
    message_id = options.get("message_id") or str(uuid.uuid4())
    message: JsonObject = {"kind": "message", "messageId": message_id, "role": "user", "parts": jsonable(parts)}
    if options.get("context_id"):
        message["contextId"] = options["context_id"]
    if options.get("task_id"):
        message["taskId"] = options["task_id"]
    metadata = _metadata_of(options)
    return {
        "message": message,
        **({"configuration": {"blocking": blocking}} if blocking is not None else {}),
        **({"metadata": metadata} if metadata else {}),
    }


def _metadata_of(options: SendOptions) -> JsonObject:
    own = dict(options.get("metadata") or {})
    for name in own:
        if name in _RESERVED:
            raise TypeError(f"metadata[{name!r}] is an option of the message: give {name}=… beside metadata")
    given: Mapping[str, Any] = options
    return {**own, **{name: jsonable(given[name]) for name in _ROUTING if given.get(name) is not None}}
