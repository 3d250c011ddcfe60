"""The tool calls of a hosted agent."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from ..backoff import Backoff
from ..client.platform_api import PlatformApi, with_retries
from ..errors import ApiError, ToolError, UnreachableError, is_transient
from ..handlers.task_deadline import TaskDeadline
from ..limits import DEADLINE_MS_MAX
from ..tools.tool_caller import tool_failure

_ANSWER_MARGIN_MS = 10_000
"""Added to the deadline of a call, for its answer to arrive."""


class PostedToolCalls:
    """Calls tools by `POST /tools/call`."""

    def __init__(self, api: PlatformApi, instance_id: Callable[[], str]) -> None:
        self._api = api
        self._instance_id = instance_id

    async def call(self, payload: dict[str, Any], traceparent: str, deadline: TaskDeadline | None = None) -> dict[str, Any]:
        """A call that waits for a human is repeated under its key until it is decided, also over a restart of the platform."""
        body = {**payload, "idempotency_key": payload.get("idempotency_key") or str(uuid.uuid4()), "instance_id": self._instance_id()}
        silence_ms = payload.get("deadline_ms", DEADLINE_MS_MAX) + _ANSWER_MARGIN_MS
        headers = {"traceparent": traceparent} if traceparent else {}

        async def post() -> dict[str, Any]:
            async with self._api.open("/tools/call", body, headers=headers, silence_ms=silence_ms) as answer:
                return await answer.json()

        # Whether a human is asked is known only later. The platform ends a call that takes longer than the task may.
        with deadline.paused() if deadline else nullcontext():
            try:
                answer = await with_retries(post)
            except (ApiError, UnreachableError) as error:
                if not is_transient(error):
                    raise
                return tool_failure(ToolError(str(error), code="TARGET_UNAVAILABLE"))
            backoff = Backoff()
            while _is_pending(answer):
                try:
                    answer = await post()
                    backoff.reset()
                except (ApiError, UnreachableError) as error:
                    if not is_transient(error):
                        raise
                    await asyncio.sleep(backoff.next((error.retry_after_ms if isinstance(error, ApiError) else None) or 0) / 1000)
            return answer


def _is_pending(answer: dict[str, Any]) -> bool:
    return answer.get("ok") is False and answer["error"].get("code") == "APPROVAL_PENDING"
