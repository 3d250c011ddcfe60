"""The stream of the tenant's events, from a server that ends its connections."""

import asyncio

from agent_fleet import ApiError, FleetClient

_CLOSED = 'event: stream.closed\ndata: {"code":"BACKPRESSURE","error":"slow"}\n\n'


def _event(id: str) -> str:
    return f'id: {id}\nevent: message.received\ndata: {{"event_id":"{id}","event_type":"message.received"}}\n\n'


async def _follow(answers: list[tuple[str, str]]) -> tuple[list[str], list[str]]:
    """The ids of the events, and the `last-event-id` of each connection, for these statuses and bodies until an error ends them."""
    asked: list[str] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        asked.append(next((line.partition(": ")[2] for line in head.splitlines() if line.startswith("last-event-id")), ""))
        status, body = answers.pop(0)
        kind = "text/event-stream" if status == "200 OK" else "application/json"
        writer.write(f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n{body}".encode())
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    seen: list[str] = []
    async with server, FleetClient(url=f"http://127.0.0.1:{port}", token="token") as client:
        try:
            async for record in client.telemetry.stream_events(session_id="ses_1"):
                seen.append(record["event_id"])
        except ApiError as error:
            seen.append(error.code)
    return seen, asked


def test_goes_on_after_its_last_event_on_another_connection() -> None:
    gone = ("404 Not Found", '{"ok":false,"error":"not kept","code":"NOT_FOUND"}')
    seen, asked = asyncio.run(_follow([("200 OK", _event("evt_1") + _CLOSED), ("200 OK", _event("evt_2")), gone]))
    assert seen == ["evt_1", "evt_2", "NOT_FOUND"]
    assert asked == ["", "evt_1", "evt_2"]
