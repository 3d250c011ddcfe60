"""The client's event loop, for programs without one."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import Any, TypeVar

from ...parts import JsonObject
from ..platform_api import PlatformApi

T = TypeVar("T")


class LoopThread:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="agent-fleet-client", daemon=True)
        self._thread.start()

    def wait(self, made: Coroutine[Any, Any, T]) -> T:
        """The result of a coroutine. Where the wait is interrupted (Ctrl-C), the coroutine is canceled."""
        call = asyncio.run_coroutine_threadsafe(made, self.loop)
        try:
            return call.result()
        except BaseException:
            call.cancel()
            raise

    def each(self, source: AsyncIterator[T]) -> Iterator[T]:
        """The items of an asynchronous iterator, which is closed when its reader stops."""

        async def following() -> T | _End:
            try:
                return await anext(source)
            except StopAsyncIteration:
                return _END

        async def close() -> None:
            if aclose := getattr(source, "aclose", None):
                await aclose()

        try:
            while not isinstance(item := self.wait(following()), _End):
                yield item
        finally:
            if not self.loop.is_closed():
                self.wait(close())

    def stop(self) -> None:
        self.wait(self.loop.shutdown_asyncgens())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


class _End:
    """The end of an iterator."""


_END = _End()


class SyncApi:
    """`PlatformApi` for programs without an event loop."""

    def __init__(self, api: PlatformApi, thread: LoopThread) -> None:
        self._api = api
        self._thread = thread

    def call(self, path: str, body: object = None, **options: Any) -> JsonObject:
        return self._thread.wait(self._api.call(path, body, **options))

    def events(self, path: str, body: object) -> Iterator[JsonObject]:
        return self._thread.each(self._api.events(path, body))

    def lines(self, path: str, body: object) -> Iterator[JsonObject]:
        return self._thread.each(self._api.lines(path, body))
