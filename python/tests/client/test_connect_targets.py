"""The preparation of a connection, with a platform that takes the registration and does not answer it."""

import asyncio

import pytest

from agent_fleet import SILENT_LOG
from agent_fleet.access import Access
from agent_fleet.agent.options import AgentOptions
from agent_fleet.agent.profile import AgentProfile
from agent_fleet.client.platform_api import PlatformApi
from agent_fleet.connected.connect_targets import ConnectTarget, ConnectTargets
from agent_fleet.connected.registration import Registration
from agent_fleet.handlers.handlers import Handlers
from agent_fleet.tools.tool_handlers import ToolHandlers


async def _unanswered(is_canceled: bool) -> ConnectTarget | None:
    """What comes of a preparation that is canceled or given up once its request has arrived."""
    arrived = asyncio.Event()
    over = asyncio.Event()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        arrived.set()
        await over.wait()
        writer.close()

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    api = PlatformApi(Access(url=url, token="token"), "worker", "agent")
    profile = AgentProfile(AgentOptions(type="worker"), Handlers(), ToolHandlers())
    targets = ConnectTargets(Registration(api, profile), 1_000, SILENT_LOG)
    preparing = asyncio.create_task(targets.next(lambda error: None))
    try:
        await arrived.wait()
        if is_canceled:
            preparing.cancel()
        else:
            targets.give_up()
        return await preparing
    finally:
        over.set()
        await api.close()
        server.close()


def test_a_canceled_preparation_is_canceled() -> None:
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(_unanswered(is_canceled=True))


def test_one_that_is_given_up_has_no_target() -> None:
    assert asyncio.run(_unanswered(is_canceled=False)) is None
