"""A hosted agent as an ASGI app."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from ..access import CertificateAuthority
from ..agent.background import Background
from ..agent.conversation import PlatformConversation
from ..agent.error_reporter import ErrorReporter
from ..agent.lifecycle_log import LifecycleLog
from ..agent.options import AgentOptions, ReportedStatus
from ..agent.profile import AgentProfile
from ..client.platform_api import PlatformApi
from ..connected.frames import is_dispatch
from ..errors import ApiError, UnreachableError
from ..handlers.handlers import Handlers
from ..handlers.result_frame import ResultFrame, task_in
from ..handlers.run_dispatch import RunDeps
from ..handlers.task_output import ChunkContent
from ..limits import FRAME_BYTES
from ..tools.tool_handlers import ToolHandlers
from .asgi import Receive, Scope, Send, header, is_card_request, read_body, send_json, send_refusal
from .hosted_tasks import HostedTasks, ids_of, task_of
from .membership import Membership
from .platform_tokens import PlatformTokens
from .posted_tool_calls import PostedToolCalls

JsonObject = dict[str, Any]
_KEEP_ALIVE_SECONDS = 15.0
_PARSE_ERROR, _INVALID_REQUEST, _NO_METHOD, _INVALID_PARAMS, _INTERNAL = -32700, -32600, -32601, -32602, -32603
_NO_TASK, _NOT_CANCELABLE = -32001, -32002


class HostedAgentApp:
    """The ASGI app of an agent: the agent card for everyone, JSON-RPC for the platform, whose tokens it verifies.

    It registers the agent when the server starts (ASGI's lifespan), and drains when the server stops. An app that is mounted in another
    one, which gets no lifespan, is started by `async with app.running():`.
    """

    def __init__(self, options: AgentOptions, handlers: Handlers, tools: ToolHandlers, public_url: str) -> None:
        self._options = options
        self._public_url = public_url
        self._profile = AgentProfile(options, handlers, tools)
        self._api = PlatformApi(options.access, options.type, "agent")
        self._ca: CertificateAuthority | None = self._api.ca
        self._membership: Membership | None = None
        self.tool_calls = PostedToolCalls(self._api, lambda: self.instance_id)
        self._tasks = HostedTasks(RunDeps(handlers, self.tool_calls, PlatformConversation(self._api), options.log), tools)
        self._tokens: PlatformTokens | None = None
        name = f"agent {options.type}"
        self._background = Background(name, options.log)
        self._errors = ErrorReporter(name, options.on_error, self._background.spawn, options.log)
        self._lifecycle = LifecycleLog(name, options.log, self._errors)
        self._status: ReportedStatus = "available"
        self._is_draining = False

    @property
    def instance_id(self) -> str:
        """The configured id, or the one that the platform chose; empty before the first registration."""
        return self._membership.instance_id if self._membership else self._options.instance_id or ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] != "http":
            raise NotImplementedError(f"a hosted agent answers HTTP, not {scope['type']}")
        elif is_card_request(scope):
            await send_json(send, 200, self._profile.card(self._public_url))
        elif scope["method"] != "POST":
            await send_json(send, 404, {"error": "POST JSON-RPC here"})
        else:
            verdict = await self._tokens.verify(header(scope, "authorization")) if self._tokens else "not_ready"
            if verdict != "trusted":
                await send_refusal(send, verdict)
                return
            body = await read_body(receive, FRAME_BYTES)
            if body is None:
                await send_json(send, 413, {"error": f"a body has at most {FRAME_BYTES} bytes"})
                return
            await self._answer(body, receive, send)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[HostedAgentApp]:
        """Keeps the agent registered meanwhile, and finishes what runs at the end."""
        membership = self._membership = Membership(
            self._api,
            self._profile,
            self._public_url,
            self._lifecycle,
            self._errors,
            heartbeat=self._heartbeat,
            on_registered=self._trust,
        )
        joined = asyncio.create_task(membership.run())
        joined.add_done_callback(self._errors.ended)
        try:
            yield self
        finally:
            joined.cancel()
            await asyncio.wait({joined})
            await self.drain()
            cut_off = await self._tasks.drain(self._options.drain_grace_seconds)
            if cut_off:
                self._lifecycle.cut_off(cut_off)
            await self._api.close()

    def report_status(self, status: ReportedStatus) -> None:
        """Reports a status to the platform, at once and with every heartbeat. A draining agent stays `draining`."""
        self._status = status
        if self._membership:
            self._background.spawn(self._report())

    async def drain(self) -> None:
        """Asks for no new work, for good: call it before the server is told to stop, so that no request meets closing connections.

        Requests that arrive all the same are answered.
        """
        if not self._is_draining:
            self._lifecycle.draining(self._options.drain_grace_seconds)
        self._is_draining = True
        await self._report()

    async def _report(self) -> None:
        if self._membership and self._membership.instance_id:
            with suppress(ApiError, UnreachableError):  # the next heartbeat says it; the platform notices an end by missed ones
                await self._membership.heartbeat()

    def _heartbeat(self) -> JsonObject:
        status = "draining" if self._is_draining else self._status
        return {"status": status, "current_sessions": self._tasks.session_count, **self._profile.capacity}

    def _trust(self, registered: JsonObject) -> None:
        names = ("jwks_url", "instance_id", "tenant_id")
        self._tokens = PlatformTokens(**{name: registered[name] for name in names}, ca=self._ca, log=self._options.log)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        async with self.running():
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})

    async def _answer(self, body: bytes, receive: Receive, send: Send) -> None:
        """Answers one JSON-RPC request of A2A 0.3; errors are sent with HTTP 200."""
        try:
            request = json.loads(body)
        except ValueError:
            await send_json(send, 200, _failure(None, _PARSE_ERROR, "not JSON"))
            return
        if not isinstance(request, dict) or request.get("jsonrpc") != "2.0" or not isinstance(request.get("method"), str):
            await send_json(send, 200, _failure(None, _INVALID_REQUEST, "not a JSON-RPC 2.0 request"))
            return
        id, method = request.get("id"), request["method"]
        if method not in ("message/send", "message/stream"):
            await send_json(send, 200, self._answer_about(method, id, request.get("params")))
        elif not is_dispatch(request) or not isinstance(id, (str, int)):
            text = "not a dispatch of the platform: does the card that this agent is registered with name urn:agent-fleet:dispatch:1?"
            await send_json(send, 200, _failure(id, _INVALID_PARAMS, text))
        elif self._tasks.is_full:
            await send_json(send, 200, _failure(id, _INTERNAL, "too many dispatches at once"))
        elif method == "message/send":
            await self._send_once(request, receive, send)
        else:
            await self._send_streamed(request, receive, send)

    async def _send_once(self, dispatch: JsonObject, receive: Receive, send: Send) -> None:
        """Answers with one body. A caller that disconnects does not know the task, so it is canceled."""
        task = self._tasks.start(dispatch)
        gone: asyncio.Future[Any] = asyncio.ensure_future(receive())
        try:
            await asyncio.wait({task.done, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done.done():
                task.abort("CANCELED")
            await send_json(send, 200, _final_answer(task.done.result(), dispatch))
        finally:
            gone.cancel()

    async def _send_streamed(self, dispatch: JsonObject, receive: Receive, send: Send) -> None:
        """Streams the task, its chunks and its end. After a disconnect the task goes on, and the platform may ask for it."""
        id, writing = dispatch["id"], asyncio.Lock()

        async def write(data: JsonObject | None) -> None:
            text = ": keep-alive\n\n" if data is None else f"data: {json.dumps(data, ensure_ascii=False)}\n\n"
            async with writing:
                await send({"type": "http.response.body", "body": text.encode("utf-8", "replace"), "more_body": True})

        async def chunk(content: ChunkContent) -> None:
            await write(_result(id, _update_of(content, dispatch)))

        head = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store")]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        await write(_result(id, task_in("working", ids_of(dispatch))))
        task = self._tasks.start(dispatch, chunk)
        gone: asyncio.Future[Any] = asyncio.ensure_future(receive())
        try:
            while not task.done.done() and not gone.done():
                await asyncio.wait({task.done, gone}, timeout=_KEEP_ALIVE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
                if not task.done.done() and not gone.done():
                    await write(None)
            if not task.done.done():
                return
            frame = task.done.result()
            await write(_final_answer(frame, dispatch))
            if not _is_question(frame):
                ended = task_of(frame, dispatch)
                update = {"kind": "status-update", "taskId": ended["id"], "contextId": ended["contextId"], "status": ended["status"]}
                await write(_result(id, {**update, "final": True}))
            await send({"type": "http.response.body", "body": b""})
        finally:
            if task.listener is chunk:  # another request may stream the same task
                task.listener = None
            gone.cancel()

    def _answer_about(self, method: str, id: Any, params: Any) -> JsonObject:
        """Answers `tasks/get` and `tasks/cancel`."""
        if method not in ("tasks/get", "tasks/cancel"):
            return _failure(id, _NO_METHOD, f"there is no method {method[:64]}")
        task = self._tasks.get(params.get("id") if isinstance(params, dict) else None)
        if not task:
            return _failure(id, _NO_TASK, "there is no such task")
        if method == "tasks/get":
            return _result(id, task.snapshot())
        if task.is_over:
            return _failure(id, _NOT_CANCELABLE, "the task has ended")
        task.abort("CANCELED")
        return _result(id, task_in("canceled", ids_of(task.dispatch)))


def _final_answer(frame: ResultFrame, dispatch: JsonObject) -> JsonObject:
    """A question is an empty result with `status` beside it, as in a `dispatch_result`: the message comes again with the answer."""
    if not _is_question(frame):
        return _result(dispatch["id"], task_of(frame, dispatch))
    usage = frame.payload.get("usage")
    return {**_result(dispatch["id"], ""), "status": frame.payload["status"], **({"usage": usage} if usage else {})}


def _is_question(frame: ResultFrame) -> bool:
    return frame.type == "dispatch_result" and frame.payload.get("status", {}).get("state") == "input-required"


def _update_of(content: ChunkContent, dispatch: JsonObject) -> JsonObject:
    ids = dict(zip(("taskId", "contextId"), ids_of(dispatch), strict=True))
    if "artifact" in content:
        return {"kind": "artifact-update", **ids, "artifact": content["artifact"], "append": content["append"]}
    status = task_in("working", ids_of(dispatch), content["status_text"])["status"]
    return {"kind": "status-update", **ids, "status": status, "final": False}


def _result(id: Any, result: object) -> JsonObject:
    return {"jsonrpc": "2.0", "id": id, "result": result}


def _failure(id: Any, code: int, message: str) -> JsonObject:
    return {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}
