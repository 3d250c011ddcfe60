"""One WebSocket to the mesh."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI
from websockets.typing import Subprotocol

from ..access import tls_context
from ..client.transport import retry_after_ms
from ..limits import CLOSE_PROTOCOL_ERROR, FRAME_BYTES
from .frames import SUBPROTOCOL, Frame, decode_frame, encode_frame, is_welcome
from .keep_alive import KeepAlive


@dataclass(frozen=True, kw_only=True)
class ConnectionOptions:
    """What one connection needs."""

    url: str
    """`wss` address, including the `instance_id` parameter."""
    token: str
    ca: str | None
    hello: dict[str, Any]
    handshake_timeout_ms: float
    """Time limit for the handshake, and again for `welcome`."""
    on_welcome: Callable[[dict[str, Any]], None]
    """Called once, before `on_frame`."""
    on_frame: Callable[[Frame], None]
    """Called with frames about dispatches and tools, and with `close_request`."""


@dataclass(frozen=True, kw_only=True)
class ConnectionEnd:
    """How a connection ended."""

    code: str = ""
    """The platform's code; empty when the connection was lost without one."""
    message: str = ""
    http_status: int | None = None
    """Status of a refused handshake."""
    retry_after_ms: float | None = None
    """`Retry-After` of a refused handshake."""
    close_code: int | None = None
    nothing_sent: bool = False
    """The handshake did not complete: the mesh may have moved."""
    timed_out: bool = False
    """The handshake or `welcome` exceeded its time limit."""
    error: BaseException | None = None
    """Network or TLS error."""


class _Connect(connect):
    """Follows no redirects: another address must not get the token."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        return exc


class MeshConnection:
    """One WebSocket to the mesh, from the upgrade to its end."""

    def __init__(self, options: ConnectionOptions) -> None:
        self._options = options
        self._loop = asyncio.get_running_loop()
        self._opening: asyncio.Task[ClientConnection] | None = None
        self._socket: ClientConnection | None = None
        self._queue: deque[tuple[bytes, Callable[[], None] | None]] = deque()
        self._queued = asyncio.Event()
        self._buffered_bytes = 0
        self._reason = ""
        """Why this side ended the connection; empty when it did not."""
        self._timed_out = False
        self._keep_alive: KeepAlive | None = None
        self._last_error: dict[str, Any] | None = None
        """The last frame, if it was an `error` frame that explains the end of the connection."""

    @property
    def buffered_bytes(self) -> int:
        """Bytes that were sent but not yet written to the network."""
        return self._buffered_bytes

    async def run(self) -> ConnectionEnd:
        """Opens the socket and handles its frames until it is closed. Never raises but CancelledError."""
        opened = await self._open()
        if isinstance(opened, ConnectionEnd):
            return opened
        self._socket = opened
        self.send("hello", self._options.hello)
        timer = self._loop.call_later(self._options.handshake_timeout_ms / 1000, self._time_out, "welcome")
        writer = asyncio.create_task(self._write(opened))
        try:
            async for text in opened:
                self._receive(text)
                if self._keep_alive:
                    timer.cancel()
        except ConnectionClosed:
            pass  # `_end` reads how
        finally:
            timer.cancel()
            writer.cancel()
            if self._keep_alive:
                self._keep_alive.stop()
            opened.transport.abort()
        return self._end(opened)

    def send(
        self,
        type: str,
        payload: dict[str, Any],
        *,
        id: str | None = None,
        in_reply_to: str | None = None,
        traceparent: str = "",
        on_sent: Callable[[], None] | None = None,
    ) -> None:
        """Sends a frame; it is dropped when the socket is closed. `on_sent` runs when the network has taken the frame."""
        text = encode_frame(type, payload, id=id, in_reply_to=in_reply_to, traceparent=traceparent)
        self._queue.append((text, on_sent))
        self._buffered_bytes += len(text)
        self._queued.set()

    def close(self, code: int) -> None:
        """Starts the closing handshake; the connection is cut when the mesh does not answer it within 10 s."""
        if self._socket:
            self._closing = asyncio.create_task(self._socket.close(code))

    def cut(self) -> None:
        """Cuts the connection without a closing handshake, so that the mesh keeps its dispatches for a resume."""
        if self._socket:
            self._socket.transport.abort()
        elif self._opening:
            self._opening.cancel()

    async def _open(self) -> ClientConnection | ConnectionEnd:
        timeout = self._options.handshake_timeout_ms / 1000
        self._opening = asyncio.create_task(self._handshake())
        try:
            await asyncio.wait({self._opening}, timeout=timeout)
            if not self._opening.done():
                self._time_out("answer to the handshake")
                await asyncio.wait({self._opening})
            return self._opening.result()
        except asyncio.CancelledError:
            if not self._opening.cancelled():  # this task is canceled, not the handshake alone
                self._opening.cancel()
                raise
            return ConnectionEnd(message=self._reason, nothing_sent=True, timed_out=self._timed_out)
        except InvalidStatus as refusal:
            return _refusal(refusal)
        except (OSError, EOFError, InvalidHandshake, InvalidURI) as error:
            return ConnectionEnd(message=str(error), nothing_sent=True, error=error)

    async def _handshake(self) -> ClientConnection:
        options = self._options
        return await _Connect(
            options.url,
            subprotocols=[Subprotocol(SUBPROTOCOL)],
            additional_headers={"Authorization": f"Bearer {options.token}"},
            ssl=tls_context(options.ca) if options.url.startswith("wss:") else None,
            max_size=2 * FRAME_BYTES,
            compression=None,
            open_timeout=None,
            ping_interval=None,
        )

    async def _write(self, socket: ClientConnection) -> None:
        """Writes queued frames in order; waits where the network takes no more."""
        try:
            while True:
                await self._queued.wait()
                self._queued.clear()
                while self._queue:
                    text, on_sent = self._queue.popleft()
                    await socket.send(text, text=True)
                    self._buffered_bytes -= len(text)
                    if on_sent:
                        on_sent()
        except ConnectionClosed:
            return  # what is left was not sent; the reader reports the end

    def _receive(self, text: str | bytes) -> None:
        frame = decode_frame(text)
        if self._keep_alive:
            self._keep_alive.frame_received()
        self._last_error = frame.payload if frame and _explains_end(frame) else None
        if not frame:
            self.send("error", {"code": "BAD_FRAME", "message": "not a frame of service.v1", "retryable": False})
            self._reason = "it sent an invalid service.v1 frame"
            self.close(CLOSE_PROTOCOL_ERROR)
        elif not self._keep_alive and frame.type != "error":
            self._welcome(frame)
        elif frame.type == "ping":
            self.send("pong", frame.payload, in_reply_to=frame.id)
        elif frame.type != "pong" and (frame.type != "error" or frame.in_reply_to):
            self._options.on_frame(frame)

    def _welcome(self, frame: Frame) -> None:
        if frame.type != "welcome" or not is_welcome(frame.payload):
            self._reason = "it sent an invalid welcome"
            self.close(CLOSE_PROTOCOL_ERROR)
            return
        self._keep_alive = KeepAlive(
            frame.payload["ping_interval_ms"],
            ping=lambda: self.send("ping", {}),
            dead=lambda: self._cut_with("it does not answer pings"),
        )
        self._options.on_welcome(frame.payload)

    def _time_out(self, what: str) -> None:
        self._timed_out = True
        self._cut_with(f"no {what} within {self._options.handshake_timeout_ms:.0f} ms")

    def _cut_with(self, reason: str) -> None:
        self._reason = reason
        self.cut()

    def _end(self, socket: ClientConnection) -> ConnectionEnd:
        explained = self._last_error or {}
        message = explained.get("message") or self._reason or socket.close_reason or ""
        return ConnectionEnd(
            code=str(explained.get("code", "")),
            message=str(message),
            close_code=socket.close_code,
            timed_out=self._timed_out,
        )


def _explains_end(frame: Frame) -> bool:
    """Whether an `error` frame explains the end of the connection. One about a dispatch or call does so only with `BAD_FRAME`."""
    return frame.type == "error" and (not frame.in_reply_to or frame.payload.get("code") == "BAD_FRAME")


def _refusal(refusal: InvalidStatus) -> ConnectionEnd:
    """A refused handshake: an HTTP answer with a JSON body."""
    response = refusal.response
    status, wait_ms = response.status_code, retry_after_ms(response.headers)
    try:
        body = json.loads(response.body or b"")
        code, message = str(body.get("code", "")), str(body.get("error", ""))
    except (ValueError, AttributeError):  # not JSON, for example a proxy's page: only the status is known
        code, message = "", f"HTTP {status}"
    return ConnectionEnd(code=code, message=message, http_status=status, retry_after_ms=wait_ms)
