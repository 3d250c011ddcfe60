"""Operations that wait."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypeVar, cast

from ..errors import ApiError, UnreachableError, is_transient
from .generated.models import KnowledgeGetStatusResponse, MessageRecord, MessagesResolveResponse, Plan
from .generated.operations import KnowledgeOperations, MessagesOperations, PlansOperations
from .not_given import NOT_GIVEN, NotGiven

_POLL_FIRST_SECONDS = 0.1
_POLL_MAX_SECONDS = 1.0
_READ_MARGIN_SECONDS = 1.0
"""A request that was begun in time may take so much longer."""
_READ_SECONDS_MAX = 60.0
_ENDED = ("completed", "failed", "canceled")

T = TypeVar("T")
Until = Literal["terminal", "settled"]
"""`terminal`: it has ended. `settled`: or it waits for a human."""


class Messages(MessagesOperations):
    """`/messages/*`, and the decisions of humans."""

    async def wait_for(self, message_id: str, *, until: Until = "settled", timeout_ms: float = 600_000) -> MessageRecord:
        """Polls the message until it has settled; temporary failures of the platform are retried.

        Raises ApiError with the code `REQUEST_TIMEOUT` when that has not happened within `timeout_ms`.
        """

        return await self._wait(message_id, until, timeout_ms)

    async def wait_for_end(self, message_id: str, *, timeout_ms: float | None = None) -> MessageRecord:
        """Polls the message until it has ended, through every question that humans are asked meanwhile, for days if need be.

        Raises ApiError with the code `REQUEST_TIMEOUT` when that has not happened within `timeout_ms`, where it is given.
        """
        return await self._wait(message_id, "terminal", math.inf if timeout_ms is None else timeout_ms)

    async def wait_for_answer(self, message_id: str) -> MessageRecord:
        """Polls the message until it does not wait for a human, for days if need be."""

        async def read() -> MessageRecord:
            return (await self.get_by_id(message_id))["message"]

        return await _poll(read, lambda message: message["state"] != "input-required", f"message {message_id}", math.inf)

    async def _wait(self, message_id: str, until: Until, timeout_ms: float) -> MessageRecord:
        async def read() -> MessageRecord:
            return (await self.get_by_id(message_id))["message"]

        def is_over(message: MessageRecord) -> bool:
            return message["state"] in _ENDED or (until == "settled" and message["state"] == "input-required")

        return await _poll(read, is_over, f"message {message_id}", timeout_ms)

    async def approve(
        self,
        message_id: str,
        *,
        comment: str | NotGiven = NOT_GIVEN,
        request_id: str | NotGiven = NOT_GIVEN,
        digest: str | NotGiven = NOT_GIVEN,
        arguments: dict[str, Any] | NotGiven = NOT_GIVEN,
    ) -> MessagesResolveResponse:
        """Approves what a message waits for. `new_state` stays `input-required` while a quorum is not reached.

        `digest` is that of the `input_request` that was seen: where somebody has edited the arguments since, nothing is decided
        (`CONFLICT`). `arguments` replace those of the tool call that was asked about.
        """
        return await self.resolve(
            message_id, "approved", comment=comment, request_id=request_id, digest=digest, arguments=arguments
        )

    async def reject(
        self,
        message_id: str,
        *,
        comment: str | NotGiven = NOT_GIVEN,
        request_id: str | NotGiven = NOT_GIVEN,
        digest: str | NotGiven = NOT_GIVEN,
    ) -> MessagesResolveResponse:
        """Rejects what a message waits for. Except where an agent asked, the message fails."""
        return await self.resolve(message_id, "rejected", comment=comment, request_id=request_id, digest=digest)


class Plans(PlansOperations):
    """`/plans/*`: graphs of steps, each of which is a message to an agent."""

    async def wait_for(
        self, plan_id: str, *, until: Until = "settled", timeout_ms: float = 600_000
    ) -> Plan:
        """Polls the plan until it has ended, or by default until it has settled.

        It has settled, too, when it waits for its approval, or when steps wait for a human and none runs. Raises ApiError with the
        code `REQUEST_TIMEOUT` when that has not happened within `timeout_ms`.
        """

        async def read() -> Plan:
            return (await self.get_by_id(plan_id))["plan"]

        def is_over(plan: Plan) -> bool:
            progress = cast(dict[str, int], plan["progress"])
            waits = plan["state"] == "proposed" or (progress["input-required"] > 0 and progress["running"] == 0)
            return plan["state"] not in ("proposed", "running") or (until == "settled" and waits)

        return await _poll(read, is_over, f"plan {plan_id}", timeout_ms)


class Knowledge(KnowledgeOperations):
    """`/knowledge_base/*`, and a wait for a job."""

    async def wait_for(self, job_id: str, *, timeout_ms: float = 600_000) -> KnowledgeGetStatusResponse:
        """Polls a job of `ingest` or `refresh` until it is `completed` or `failed`.

        Raises ApiError with the code `REQUEST_TIMEOUT` when that has not happened within `timeout_ms`.
        """
        return await _poll(
            lambda: self.get_status(job_id), lambda job: job["status"] != "processing", f"job {job_id}", timeout_ms
        )


async def _poll(read: Callable[[], Awaitable[T]], is_over: Callable[[T], bool], what: str, timeout_ms: float) -> T:
    deadline = time.monotonic() + timeout_ms / 1000
    wait_seconds = _POLL_FIRST_SECONDS
    while True:
        try:
            left = max(0.0, deadline - time.monotonic()) + _READ_MARGIN_SECONDS
            async with asyncio.timeout(min(_READ_SECONDS_MAX, left)):
                found = await read()
            if is_over(found):
                return found
        except TimeoutError:
            pass  # the platform does not answer
        except (ApiError, UnreachableError) as error:
            if not is_transient(error):
                raise
        if time.monotonic() >= deadline:
            raise ApiError(f"{what} has not settled in {timeout_ms:.0f} ms", status=408, code="REQUEST_TIMEOUT")
        await asyncio.sleep(wait_seconds)
        wait_seconds = min(wait_seconds * 2, _POLL_MAX_SECONDS)
