"""Hosted agents as ASGI apps, and the middleware that verifies the platform's tokens."""

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from functools import partial
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from agent_fleet import SILENT_LOG, Agent, AgentTask, ToolCall
from agent_fleet.hosted import PlatformAuth
from agent_fleet.hosted.asgi import Receive, Scope, Send, send_json
from agent_fleet.tools import tool_caller

_AsyncClient = httpx.AsyncClient
KEY = Ed25519PrivateKey.generate()
JWK = {**json.loads(jwt.algorithms.OKPAlgorithm.to_jwk(KEY.public_key())), "kid": "k1", "alg": "EdDSA", "use": "sig"}
TRUST = {"jwks_url": "http://platform/.well-known/jwks.json", "instance_id": "shop-1", "tenant_id": "ten_1"}


def bearer(*, key: Any = KEY, **claims: Any) -> dict[str, str]:
    given = {"aud": "shop-1", "tenant_id": "ten_1", "exp": time.time() + 60, **claims}
    return {"authorization": f"Bearer {jwt.encode(given, key, algorithm='EdDSA', headers={'kid': 'k1'})}"}


class Platform:
    """The keys of a platform, and its answers to a hosted agent."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.tool_answers: list[dict[str, Any]] = [{"ok": True, "result": 250}]
        self.is_up = True

    def handle(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path
        if path.endswith("jwks.json"):
            return httpx.Response(200, json={"keys": [JWK]}) if self.is_up else httpx.Response(503)
        body = json.loads(request.content)
        self.calls.append((path, body))
        answers = {
            "/auth/get_token": {"token": "t", "expires_in": 3600},
            "/agents/register": {"ok": True, **TRUST},
            "/agents/heartbeat": {"ok": True},
        }
        return httpx.Response(200, json=self.tool_answers.pop(0) if path == "/tools/call" else answers[path])


@pytest.fixture
def platform(monkeypatch: pytest.MonkeyPatch) -> Platform:
    platform = Platform()
    monkeypatch.setattr(httpx, "AsyncClient", partial(_AsyncClient, transport=httpx.MockTransport(platform.handle)))
    return platform


async def until(is_so: Callable[[], bool]) -> None:
    while not is_so():  # noqa: ASYNC110 - the mock tells nobody
        await asyncio.sleep(0)


def request_of(app: Any) -> Callable[..., Any]:
    """Sends requests to an ASGI app."""
    client = _AsyncClient(transport=httpx.ASGITransport(app), base_url="http://agent")
    return client.request


def dispatch(method: str, text: str, **metadata: Any) -> dict[str, Any]:
    message = {"kind": "message", "messageId": "m", "role": "user", "parts": [{"kind": "text", "text": text}]}
    return {
        "jsonrpc": "2.0",
        "id": "frame-1",
        "method": method,
        "params": {"message": message, "metadata": metadata},
        "dispatch_id": f"dsp_{text}",
        "deadline_ms": 60_000,
        "session_context": {"session_id": "ses_1", "message_id": "msg_1"},
    }


def make_agent() -> Agent:
    agent = Agent("shop", url="http://platform", client_id="c", client_secret="s", instance_id="shop-1", log=SILENT_LOG)

    @agent.on_message
    async def answer(task: AgentTask) -> Any:
        if task.text == "ask":
            sure = await task.ask("confirmation", title="Sure?", prompt="Really?")
            return "yes" if sure.accepted else "no"
        if task.text == "fail":
            raise ValueError("no tea")
        if task.text == "price":
            return str(await task.call_tool("price"))

        async def words() -> AsyncIterator[str]:
            yield "one "
            yield "two"

        return words()

    @agent.tool
    async def sum(x: int, call: ToolCall) -> int:
        return x + 1

    return agent


def test_a_hosted_agent_registers_answers_and_leaves(platform: Platform) -> None:
    async def run() -> None:
        app = make_agent().asgi("http://agent/")
        send = request_of(app)
        assert (await send("POST", "/", json=dispatch("message/send", "x"))).status_code == 503  # not registered yet
        async with app.running():
            await until(lambda: any(path == "/agents/heartbeat" for path, _ in platform.calls))
            registered = next(body for path, body in platform.calls if path == "/agents/register")
            assert (registered["deployment_mode"], registered["public_url"]) == ("hosted", "http://agent/")
            card = (await send("GET", "/.well-known/agent-card.json")).json()
            assert card["url"] == "http://agent/"
            assert [extension["uri"] for extension in card["capabilities"]["extensions"]] == ["urn:agent-fleet:dispatch:1"]

            async def post(body: dict[str, Any]) -> Any:
                return (await send("POST", "/", json=body, headers=bearer())).json()

            result = (await post(dispatch("message/send", "x")))["result"]
            assert (result["status"]["state"], result["artifacts"][0]["parts"]) == ("completed", [{"kind": "text", "text": "one two"}])
            failed = (await post(dispatch("message/send", "fail")))["result"]
            assert failed["metadata"]["error"] == {"code": "HANDLER_ERROR", "message": "no tea", "retryable": False}
            question = await post(dispatch("message/send", "ask"))
            assert (question["result"], question["status"]["input_request"]["title"]) == ("", "Sure?")
            assert (await post(dispatch("message/send", "price")))["result"]["artifacts"][0]["parts"][0]["text"] == "250"
            called = next(body for path, body in platform.calls if path == "/tools/call")
            assert (called["tool"], called["instance_id"], called["dispatch_id"]) == ("price", "shop-1", "dsp_price")
            again = await post({"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {"id": "dsp_x"}})
            assert again["result"]["status"]["state"] == "completed"
            assert (await post({"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {}}))["error"]["code"] == -32001
            assert (await post({"jsonrpc": "2.0", "id": 1, "method": "x"}))["error"]["code"] == -32601
            assert (await post({"id": 1}))["error"]["code"] == -32600
        assert platform.calls[-1][1]["status"] == "draining"

    asyncio.run(run())


def test_a_hosted_agent_streams_and_answers_tool_calls(platform: Platform) -> None:
    async def run() -> None:
        app = make_agent().asgi("http://agent/")
        send = request_of(app)
        async with app.running():
            await until(lambda: app._tokens is not None)
            stream = (await send("POST", "/", json=dispatch("message/stream", "x"), headers=bearer())).text
            events = [json.loads(line[6:])["result"] for line in stream.splitlines() if line.startswith("data: ")]
            assert [event["kind"] for event in events] == ["task", "artifact-update", "artifact-update", "task", "status-update"]
            assert [event["artifact"]["parts"][0]["text"] for event in events[1:3]] == ["one ", "two"]
            assert (events[-1]["final"], events[-1]["status"]["state"]) == (True, "completed")

            call = {"tool": "sum", "dispatch_id": "dsp_call", "deadline_ms": 1_000, "caller": {"agent_type": "clerk"}}
            body = dispatch("message/send", "call", tool_call=call)
            body["params"]["message"]["parts"] = [{"kind": "data", "data": {"arguments": {"x": 1}}}]
            answered = (await send("POST", "/", json=body, headers=bearer())).json()
            assert answered["result"]["artifacts"][0]["parts"] == [{"kind": "data", "data": {"ok": True, "result": 2}}]

    asyncio.run(run())


def pieces_of(stream: str) -> list[str]:
    events = [json.loads(line[6:])["result"] for line in stream.splitlines() if line.startswith("data: ")]
    return [event["artifact"]["parts"][0]["text"] for event in events if event["kind"] == "artifact-update"]


def test_no_chunk_is_lost_on_a_slow_connection(platform: Platform) -> None:
    async def run() -> None:
        app = make_agent().asgi("http://agent/")

        async def slow(scope: Scope, receive: Receive, send: Send) -> None:
            async def later(message: Any) -> None:
                for _ in range(20):
                    await asyncio.sleep(0)
                await send(message)

            await app(scope, receive, later)

        async with app.running():
            await until(lambda: app._tokens is not None)
            stream = await request_of(slow)("POST", "/", json=dispatch("message/stream", "x"), headers=bearer())
            assert pieces_of(stream.text) == ["one ", "two"]

    asyncio.run(run())


def test_a_stream_that_ends_takes_the_chunks_of_no_other(platform: Platform) -> None:
    async def run() -> None:
        agent = Agent("shop", url="http://platform", client_id="c", client_secret="s", log=SILENT_LOG)
        go = asyncio.Event()

        @agent.on_message
        async def answer(task: AgentTask) -> AsyncIterator[str]:
            await go.wait()
            yield "one"

        app = agent.asgi("http://agent/")

        def listener() -> Any:
            return next((task.listener for task in app._tasks.running), None)

        async with app.running():
            await until(lambda: app._tokens is not None)
            post = partial(request_of(app), "POST", "/", json=dispatch("message/stream", "x"), headers=bearer())
            broken = asyncio.create_task(post())
            await until(lambda: listener() is not None)
            first = listener()
            again = asyncio.create_task(post())
            await until(lambda: listener() is not first)
            broken.cancel()
            await asyncio.wait({broken})
            go.set()
            assert pieces_of((await again).text) == ["one"]

    asyncio.run(run())


def test_a_handler_that_ignores_its_cancelation_holds_nobody(platform: Platform) -> None:
    async def run() -> None:
        agent = Agent("stubborn", url="http://platform", client_id="c", client_secret="s", log=SILENT_LOG, drain_grace_seconds=0)
        release = asyncio.Event()

        @agent.on_message
        async def stay(task: AgentTask) -> None:
            while not release.is_set():
                with suppress(asyncio.CancelledError):
                    await release.wait()

        app = agent.asgi("http://agent/")
        async with asyncio.timeout(10):
            async with app.running():
                await until(lambda: app._tokens is not None)
                post = partial(request_of(app), "POST", "/", headers=bearer())
                first, second = (asyncio.create_task(post(json=dispatch("message/send", name))) for name in ("1", "2"))
                await until(lambda: len(app._tasks.running) == 2)
                await post(json={"jsonrpc": "2.0", "id": 1, "method": "tasks/cancel", "params": {"id": "dsp_1"}})
                assert (await first).json()["result"]["metadata"]["error"]["code"] == "CANCELED"
            error = (await second).json()["result"]["metadata"]["error"]
            assert (error["code"], error["unfinished"]) == ("AGENT_DISCONNECTED", True)
        release.set()

    asyncio.run(run())


def test_the_lifespan_of_the_server_is_that_of_the_agent(platform: Platform) -> None:
    async def run() -> None:
        app = make_agent().asgi("http://agent/")
        received: asyncio.Queue[Any] = asyncio.Queue()
        sent: list[str] = []

        async def send(message: Any) -> None:
            sent.append(message["type"])

        serving = asyncio.create_task(app({"type": "lifespan"}, received.get, send))
        received.put_nowait({"type": "lifespan.startup"})
        await until(lambda: any(path == "/agents/heartbeat" for path, _ in platform.calls))
        assert app.instance_id == "shop-1"
        received.put_nowait({"type": "lifespan.shutdown"})
        await serving
        assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
        assert platform.calls[-1] == ("/agents/heartbeat", {
            "instance_id": "shop-1",
            "status": "draining",
            "current_sessions": 0,
            "max_concurrent_sessions": 10,
            "max_concurrent_tasks": 0,
        })

    asyncio.run(run())


def test_a_hosted_agent_reports_its_status_and_drains_by_hand(platform: Platform) -> None:
    async def run() -> None:
        agent = make_agent()
        app = agent.asgi("http://agent/")

        def statuses() -> list[str]:
            return [body["status"] for path, body in platform.calls if path == "/agents/heartbeat"]

        async with app.running():
            await until(lambda: statuses() == ["available"])
            agent.report_status("busy")
            async with asyncio.timeout(10):
                await until(lambda: statuses() == ["available", "busy"])
            await app.drain()
            agent.report_status("available")
            await until(lambda: len(statuses()) == 4)
            assert (await request_of(app)("POST", "/", json=dispatch("message/send", "x"), headers=bearer())).json()["result"]
        assert statuses() == ["available", "busy", "draining", "draining", "draining"]

    asyncio.run(run())


def test_work_ends_when_the_grace_is_over_and_the_log_counts_it(platform: Platform, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "apart")
    log = logging.getLogger("apart")

    async def run() -> None:
        agent = Agent("slow", url="http://platform", client_id="c", client_secret="s", log=log, drain_grace_seconds=0)

        @agent.on_message
        async def forever(task: AgentTask) -> None:
            await asyncio.Event().wait()

        app = agent.asgi("http://agent/")
        async with app.running():
            await until(lambda: app._tokens is not None)
            post = asyncio.create_task(request_of(app)("POST", "/", json=dispatch("message/send", "x"), headers=bearer()))
            await until(lambda: len(app._tasks.running) == 1)
        assert (await post).json()["result"]["metadata"]["error"]["code"] == "AGENT_DISCONNECTED"

    asyncio.run(run())
    assert caplog.messages[-2:] == [
        "agent slow: draining: takes no new work and finishes what runs (grace_seconds=0)",
        "agent slow: stopped before its work was done: what was running is given up (dispatches=1)",
    ]


def test_an_approved_call_waits_for_an_agent_that_offers_the_tool(platform: Platform, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_caller, "_PAUSE_SECONDS", 0)
    refused = {"code": "TARGET_UNAVAILABLE", "message": "not now", "retryable": True}
    unavailable = {"ok": False, "error": refused}
    approved = {"ok": False, "error": {**refused, "approved": True}}

    async def run() -> None:
        app = make_agent().asgi("http://agent/")
        async with app.running():
            await until(lambda: app._tokens is not None)

            async def ask(dispatch_id: str) -> Any:
                body = {**dispatch("message/send", "price"), "dispatch_id": dispatch_id}
                return (await request_of(app)("POST", "/", json=body, headers=bearer())).json()["result"]

            platform.tool_answers = [unavailable]
            assert (await ask("dsp_1"))["status"]["state"] == "failed"  # nobody has approved it
            platform.tool_answers = [approved, unavailable, {"ok": True, "result": 250}]
            assert (await ask("dsp_2"))["artifacts"][0]["parts"][0]["text"] == "250"

    asyncio.run(run())


def test_only_the_platforms_requests_pass(platform: Platform) -> None:
    async def inner(scope: Scope, receive: Receive, send: Send) -> None:
        await send_json(send, 200, {"ok": True})

    async def run() -> None:
        send = request_of(PlatformAuth(inner, **TRUST))
        statuses = {
            "trusted": (await send("POST", "/", headers=bearer())).status_code,
            "card": (await send("GET", "/.well-known/agent-card.json")).status_code,
            "missing": (await send("POST", "/")).status_code,
            "get": (await send("GET", "/")).status_code,
            "malformed": (await send("POST", "/", headers={"authorization": "Bearer x"})).status_code,
            "expired": (await send("POST", "/", headers=bearer(exp=time.time() - 60))).status_code,
            "other tenant": (await send("POST", "/", headers=bearer(tenant_id="ten_2"))).status_code,
            "other agent": (await send("POST", "/", headers=bearer(aud="shop-2"))).status_code,
            "other key": (await send("POST", "/", headers=bearer(key=Ed25519PrivateKey.generate()))).status_code,
        }
        assert statuses == {**dict.fromkeys(statuses, 401), "trusted": 200, "card": 200}
        platform.is_up = False
        unready = await request_of(PlatformAuth(inner, **TRUST))("POST", "/", headers=bearer())
        assert (unready.status_code, unready.json()["code"]) == (503, "AGENT_NOT_READY")

    asyncio.run(run())
