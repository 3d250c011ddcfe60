"""The events of the tenant, over as many connections as necessary."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager

from ...errors import ApiError, UnreachableError, is_transient
from ..transport import Answer, JsonObject
from .event_reader import read_events
from .reconnection import Reconnection

_CLOSED = "stream.closed"
"""The event with which the platform ends a stream that can be continued."""


async def followed_events(
    open_stream: Callable[[str], AbstractAsyncContextManager[Answer]],
) -> AsyncIterator[JsonObject]:
    """The data of server-sent events, which a broken connection does not end: another one continues after the last event.

    What happened between two connections before the first event is not seen. `open_stream` opens the stream after an event; after
    none where the id is empty. Raises ApiError for a permanent failure, `NOT_FOUND` where the last event is no longer kept;
    UnreachableError after two minutes without the platform.
    """
    reconnection = Reconnection()
    last_event_id = ""
    while True:
        try:
            async with open_stream(last_event_id) as answer:
                reconnection.opened()
                failure: Exception = UnreachableError(answer.url, "the stream ended")
                async for event in read_events(answer.chunks()):
                    reconnection.seen()
                    last_event_id = event.id or last_event_id
                    if event.type != _CLOSED:
                        yield json.loads(event.data)
        except (ApiError, UnreachableError) as error:
            if not is_transient(error):
                raise
            failure = error
        await reconnection.wait(failure)
