"""The client, against answers of a platform that is not there."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import httpx
import pytest

from agent_fleet import ApiError, FleetClient, SyncFleetClient, has_ended, text_of, text_stream
from agent_fleet.client import waiting

TOKEN = {"token": "t", "expires_in": 3600}


def message(state: str) -> dict[str, Any]:
    return {"ok": True, "message": {"message_id": "msg_1", "state": state, "assistant_output": "done"}}


def task(state: str, said: str = "") -> dict[str, Any]:
    status = {"state": state, "message": {"kind": "message", "messageId": "m", "role": "agent", "parts": [{"kind": "text", "text": said}]}}
    return {"kind": "task", "id": "msg_1", "contextId": "ses_1", "status": status}


class Platform:
    """Answers requests from a table of paths, or of JSON-RPC methods; a list is answered one after the other."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.requests: list[tuple[str, Any]] = []

    def handle(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content or b"{}")
        name = body.get("method") or request.url.path
        if name.endswith("/auth/get_token"):
            return httpx.Response(200, json=TOKEN)
        self.requests.append((request.url.path, body))
        answer = self.answers[name.rsplit("/", 1)[-1]]
        answer = answer.pop(0) if isinstance(answer, list) else answer
        if isinstance(answer, httpx.Response):
            return answer
        wrapped = {"jsonrpc": "2.0", "id": 1, **answer} if "error" in answer or "result" in answer else answer
        return httpx.Response(200, json=wrapped, headers={"x-request-id": "req_1"})


def events(*results: dict[str, Any]) -> httpx.Response:
    lines = "".join(f"id: {at}\ndata: {json.dumps({'jsonrpc': '2.0', 'id': 1, 'result': each})}\n\n" for at, each in enumerate(results, 1))
    return httpx.Response(200, text=lines, headers={"content-type": "text/event-stream"})


@pytest.fixture
def with_client(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    def run(platform: Platform, use: Callable[[FleetClient], Awaitable[Any]], url: str = "http://platform") -> Any:
        monkeypatch.setattr(httpx, "AsyncClient", partial(_AsyncClient, transport=httpx.MockTransport(platform.handle)))
        monkeypatch.setattr(waiting, "_POLL_FIRST_SECONDS", 0)

        async def main() -> Any:
            async with FleetClient(url=url, client_id="c", client_secret="s") as client:
                return await use(client)

        return asyncio.run(main())

    return run


_AsyncClient = httpx.AsyncClient


def update(state: str, said: str = "", *, final: bool = True) -> dict[str, Any]:
    return {"kind": "status-update", "taskId": "msg_1", "contextId": "ses_1", "status": task(state, said)["status"], "final": final}


def output(text: str) -> dict[str, Any]:
    artifact = {"artifactId": "a", "parts": [{"kind": "text", "text": text}]}
    return {"kind": "artifact-update", "taskId": "msg_1", "contextId": "ses_1", "artifact": artifact, "append": True}


def test_send_waits_through_questions(with_client: Any) -> None:
    platform = Platform(
        send={"result": task("input-required", "Sure?")},
        get_by_id=[message("input-required"), message("working"), message("completed")],
        get={"result": task("completed", "done")},
    )
    ended = with_client(platform, lambda client: client.send("hi", through_questions=True))
    assert has_ended(ended)
    assert text_of(ended) == "done"


def test_a_stream_goes_on_after_a_question(with_client: Any) -> None:
    platform = Platform(
        stream=events(task("submitted"), output("one "), update("input-required", "Sure?")),
        get_by_id=[message("input-required"), message("working")],
        resubscribe=events(update("working", final=False), output("two"), update("completed")),
    )

    async def read(client: FleetClient) -> list[str]:
        return [piece async for piece in text_stream(client.stream("hi", through_questions=True))]

    assert with_client(platform, read) == ["one ", "two"]


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        ({"code": -32001, "message": "no task"}, 404, "-32001"),
        ({"code": -32602, "message": "no type", "data": [{"code": "TARGET_REQUIRED"}]}, 400, "TARGET_REQUIRED"),
        ({"code": -32004, "message": "closed", "data": {"code": "SESSION_CLOSED"}}, 409, "SESSION_CLOSED"),
        ({"code": -32603, "message": "a fault"}, 500, "-32603"),
    ],
)
def test_an_error_of_json_rpc_has_a_status_and_a_request_id(with_client: Any, error: Any, status: int, code: str) -> None:
    with pytest.raises(ApiError) as refused:
        with_client(Platform(send={"error": error}), lambda client: client.send("hi"))
    found = refused.value
    assert (found.status, found.code, found.request_id, found.rpc_code) == (status, code, "req_1", error["code"])


def test_a_body_that_is_too_large_is_not_sent(with_client: Any) -> None:
    platform = Platform()
    with pytest.raises(ApiError, match=r"has 5\d{6} bytes. A request has at most 1048576 bytes") as refused:
        with_client(platform, lambda client: client.send("x" * 5_000_000))
    assert (refused.value.status, refused.value.code) == (413, "PAYLOAD_TOO_LARGE")
    assert platform.requests == []


def test_a_proxy_that_refuses_a_body_is_told_apart(with_client: Any) -> None:
    with pytest.raises(ApiError, match="at most 1048576 bytes"):
        with_client(Platform(send=httpx.Response(413, text="<html>")), lambda client: client.send("hi"))


def test_a_url_with_a_path_is_honoured(with_client: Any) -> None:
    platform = Platform(send={"result": task("completed")})
    with_client(platform, lambda client: client.send("hi"), url="http://proxy/fleet/")
    assert platform.requests[0][0] == "/fleet/send"


def test_an_unknown_option_is_refused(with_client: Any) -> None:
    with pytest.raises(TypeError, match=r"no option 'agent_typ': did you mean agent_type\?"):
        with_client(Platform(), lambda client: client.send("hi", agent_typ="shop"))


def test_the_forms_of_an_answer_are_told_apart_by_a_member(with_client: Any) -> None:
    async def names(client: FleetClient) -> list[str]:
        answer = await client.telemetry.get_traces(trace_id="t1")
        return [span["name"] for span in answer["trace"]["spans"]] if "trace" in answer else []  # mypy knows the form

    platform = Platform(get_traces={"ok": True, "trace": {"spans": [{"name": "dispatch"}]}})
    assert with_client(platform, names) == ["dispatch"]


def test_models_are_sent_as_data(with_client: Any) -> None:
    @dataclass
    class Order:
        item: str

    platform = Platform(send={"result": task("completed")})
    with_client(platform, lambda client: client.send(["hi", Order("tea")], args=Order("cup")))
    params = platform.requests[0][1]["params"]
    assert params["message"]["parts"] == [{"kind": "text", "text": "hi"}, {"kind": "data", "data": {"item": "tea"}}]
    assert params["metadata"] == {"args": {"item": "cup"}}


def test_a_program_without_an_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    platform = Platform(
        send={"result": task("completed", "done")},
        stream=[events(task("submitted"), output("one "), output("two"), update("completed")), events(task("submitted"), output("one "))],
        get_by_id=[message("working"), message("completed")],
    )
    monkeypatch.setattr(httpx, "AsyncClient", partial(_AsyncClient, transport=httpx.MockTransport(platform.handle)))
    with SyncFleetClient(url="http://platform", client_id="c", client_secret="s") as client:
        assert text_of(client.send("hi")) == "done"
        assert list(client.stream_text("hi")) == ["one ", "two"]
        assert next(iter(client.stream_text("hi"))) == "one "
        assert client.messages.wait_for_end("msg_1")["state"] == "completed"
        with pytest.raises(TypeError, match="no option"):
            client.send("hi", agent="x")  # type: ignore[call-overload]
    client.close()  # may be closed again


def test_a_restart_is_told_in_the_thread_that_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    restarted = {**update("working"), "final": False, "metadata": {"restarted": True}}
    stream = events(task("submitted"), output("one "), restarted, output("1 "), output("2"), update("completed"))
    platform = Platform(stream=stream, get_by_id=message("completed"))
    monkeypatch.setattr(httpx, "AsyncClient", partial(_AsyncClient, transport=httpx.MockTransport(platform.handle)))
    with SyncFleetClient(url="http://platform", client_id="c", client_secret="s") as client:
        shown: list[str] = []

        def restart() -> None:
            client.messages.wait_for_end("msg_1")  # the client may be used there
            shown.clear()

        for piece in client.stream_text("hi", on_restart=restart):
            shown.append(piece)
    assert shown == ["1 ", "2"]
