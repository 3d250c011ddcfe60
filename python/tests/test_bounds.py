"""Waits that end, and work that does not wait for other work."""

import asyncio
import threading

import pytest

from agent_fleet import Agent, AgentStoppedError, ApiError, FleetClient, UnreachableError
from agent_fleet.client.streams.reconnection import Reconnection
from agent_fleet.threads import in_thread


def test_waiting_for_a_message_ends_while_the_platform_is_silent() -> None:
    async def run() -> None:
        over = asyncio.Event()

        async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await over.wait()
            writer.close()

        server = await asyncio.start_server(silent, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with FleetClient(url=url, token="token") as client:
            with pytest.raises(ApiError) as failed:
                await client.messages.wait_for("msg_1", timeout_ms=50)
        assert failed.value.code == "REQUEST_TIMEOUT"
        over.set()
        server.close()

    asyncio.run(run())


def test_an_agent_that_could_not_join_may_try_again() -> None:
    refusal = b'HTTP/1.1 401 Unauthorized\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n{"code":"UNAUTHORIZED"}'

    async def run() -> None:
        async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(refusal)
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(refuse, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        agent = Agent("shop", url=url, client_id="cred_1", client_secret="wrong", drain_on_signals=False)
        for _ in range(2):
            with pytest.raises(AgentStoppedError):
                await agent.connect(timeout_ms=10_000)
        server.close()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("failure", "least_seconds"),
    [
        (UnreachableError("http://x", "gone"), 0.75),
        (ApiError("slow down", status=429, code="RATE_LIMITED", retry_after_ms=20_000), 20.0),
        (ApiError("later", status=503, code="UNAVAILABLE", retry_after_ms=None), 0.75),
    ],
    ids=["no answer", "a wait that the platform asks for", "none"],
)
def test_a_stream_is_opened_again_after_the_wait_that_the_platform_asks_for(
    monkeypatch: pytest.MonkeyPatch, failure: Exception, least_seconds: float
) -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr("agent_fleet.client.streams.reconnection.asyncio.sleep", sleep)
    asyncio.run(Reconnection().wait(failure))
    assert least_seconds <= waited[0] <= least_seconds * 1.25 / 0.75


def test_handlers_that_block_do_not_wait_for_each_other() -> None:
    together = threading.Barrier(64)  # more than the threads of an event loop

    async def run() -> None:
        await asyncio.gather(*(in_thread(together.wait, 30) for _ in range(64)))

    asyncio.run(run())
