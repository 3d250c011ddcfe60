"""Sources of chunks: asynchronous and plain iterators, and generators."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, Iterator
from typing import Any, TypeGuard

from ..parts import Part
from ..threads import in_thread
from ..values.json_values import Record

Output = str | Part | Record | list[str | Part | Record]
"""One chunk of an answer: text, a part, or data (a dict, a pydantic model, a dataclass), or a list of these."""

OutputSource = AsyncIterable[Output] | Iterator[Output]
"""The chunks of an answer: an async generator, any other async iterable, a generator or another iterator."""

_END = object()


def is_source(value: object) -> TypeGuard[OutputSource]:
    """Whether the value is a source of chunks."""
    return isinstance(value, (AsyncIterable, Iterator))


async def chunks_of(source: OutputSource) -> AsyncGenerator[Any, None]:
    """The chunks of a source; it is closed when its reader stops early. A plain iterator may block: it runs in a thread."""
    if isinstance(source, AsyncIterable):
        try:
            async for chunk in source:
                yield chunk
        finally:
            if aclose := getattr(source, "aclose", None):
                await aclose()
        return
    step: asyncio.Future[Any] | None = None
    try:
        while True:
            step = asyncio.ensure_future(in_thread(next, source, _END))
            chunk = await asyncio.shield(step)
            if chunk is _END:
                return
            yield chunk
    finally:
        _close_after(step, source)


def _close_after(step: asyncio.Future[Any] | None, source: Iterator[Output]) -> None:
    """Closes a generator once its running step is over: it cannot be closed while a thread is in it."""
    close = getattr(source, "close", None)
    if close is None or step is None:
        return
    step.add_done_callback(lambda _: asyncio.ensure_future(in_thread(close)))
