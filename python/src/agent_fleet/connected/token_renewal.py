"""The token of a living connection."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

from .frames import Frame, frame_id
from .mesh_connection import MeshConnection
from .tool_calls import ConnectedToolCalls

_REAUTH_SECONDS = 10.0
"""Time limit for the answer to `reauth`."""
_RECONNECT_WAIT_SECONDS = 30.0
"""Tool calls end with their connection: a reconnect for a new token waits up to this long for running calls."""
_RETRY_SECONDS = 5.0
"""Pause before another attempt to get a new token."""


class TokenRenewal:
    """Renews the token of a connection before it expires: by `reauth`, or with an older mesh by a reconnect."""

    def __init__(
        self,
        connection: MeshConnection,
        tools: ConnectedToolCalls,
        *,
        token: str,
        takes_reauth: bool,
        renew_at_ms: Callable[[], float],
        renew_token: Callable[[], Awaitable[str | None]],
        log: logging.Logger,
    ) -> None:
        """`token` made the connection. `renew_at_ms`: when to renew the newest one. `renew_token` gives None when there is none."""
        self.token = token
        """The token that keeps the connection open."""
        self.is_reconnecting = False
        """Whether the connection was cut for a new token, so that the next one follows at once."""
        self._connection = connection
        self._tools = tools
        self._takes_reauth = takes_reauth
        self._renew_at_ms = renew_at_ms
        self._renew_token = renew_token
        self._log = log
        self._pending: tuple[str, asyncio.Future[bool]] | None = None
        """The id of the `reauth` frame that was sent last, and whether the mesh took it."""
        self._task = asyncio.create_task(self._run())

    def receive(self, frame: Frame) -> bool:
        """Takes the answer to `reauth`. Gives False when the frame is none."""
        if not self._pending or frame.in_reply_to != self._pending[0]:
            return False
        if frame.type == "error":
            self._log.info("the mesh did not take the new token (code=%s)", frame.payload.get("code"))
        if not self._pending[1].done():
            self._pending[1].set_result(frame.type == "reauth_ok")
        return True

    def stop(self) -> None:
        """The connection is closed."""
        if not self.is_reconnecting:  # otherwise it is this task that has cut the connection
            self._task.cancel()

    async def _run(self) -> None:
        while True:
            wait_seconds = max(self._renew_at_ms() / 1000 - time.time(), 1.0)
            if math.isinf(wait_seconds):
                return
            await asyncio.sleep(wait_seconds)
            # The new token comes before the cut: without one the resume window could pass, and in-flight work would be lost.
            while (token := await self._renew_token()) is None:  # noqa: ASYNC110 - it waits for nothing of this process
                await asyncio.sleep(_RETRY_SECONDS)
            if not self._takes_reauth or not await self._reauth(token):
                await self._reconnect()
                return
            self.token = token
            self._log.debug("the connection has a new token")

    async def _reauth(self, token: str) -> bool:
        """Whether the mesh took the token."""
        accepted: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._pending = (frame_id(), accepted)
        self._connection.send("reauth", {"token": token}, id=self._pending[0])
        try:
            async with asyncio.timeout(_REAUTH_SECONDS):
                return await accepted
        except TimeoutError:
            return False
        finally:
            self._pending = None

    async def _reconnect(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_RECONNECT_WAIT_SECONDS):
                await self._tools.all_settled()
        self.is_reconnecting = True
        self._log.debug("reconnecting with a new token")
        self._connection.cut()
