"""The client's event loop, for programs without one."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import suppress
from typing import Any, TypeVar

from ...parts import JsonObject
from ..platform_api import PlatformApi

T = TypeVar("T")

_OWN_THREAD = "this is the client's own thread, as in a token provider, where its calls would wait for themselves: use another client here"


class LoopThread:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._is_stopped = False
        self._starting = threading.RLock()  # reentrant: a stream may be collected, and so be closed, while its thread holds it
        self._thread = threading.Thread(target=self.loop.run_forever, name="agent-fleet-client", daemon=True)
        self._thread.start()

    def wait(self, made: Coroutine[Any, Any, T]) -> T:
        """The result of a coroutine. Where the wait is interrupted (Ctrl-C), the coroutine is canceled.

        Raises RuntimeError in the loop's own thread, which would wait for itself, and once the client is closed.
        """
        if self._is_own_thread:
            made.close()
            raise RuntimeError(_OWN_THREAD)
        call = self._begin(made)
        try:
            return call.result()
        except BaseException as error:
            call.cancel()
            if self._is_stopped and isinstance(error, concurrent.futures.CancelledError):
                raise _ClosedError from None
            raise

    def each(self, source: AsyncIterator[T]) -> Iterator[T]:
        """The items of an asynchronous iterator, which is closed when its reader stops."""
        reading: asyncio.Task[Any] | None = None

        async def following() -> T | _End:
            nonlocal reading
            reading = asyncio.current_task()
            try:
                return await anext(source)
            except StopAsyncIteration:
                return _END

        async def close() -> None:
            if reading:  # an interrupted one still unwinds
                if not reading.cancelling():
                    reading.cancel()
                await asyncio.gather(reading, return_exceptions=True)
            if aclose := getattr(source, "aclose", None):
                await aclose()

        try:
            while not isinstance(item := self.wait(following()), _End):
                yield item
        finally:
            with suppress(_ClosedError):
                if self._is_own_thread:  # which collected the stream
                    self._begin(close())
                else:
                    self.wait(close())

    def stop(self, last: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Cancels what runs, calls `last`, and ends the thread. What waits raises RuntimeError. Does nothing the second time."""
        if self._is_own_thread:
            raise RuntimeError(_OWN_THREAD)

        async def end() -> None:
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
            await last()
            await self.loop.shutdown_asyncgens()

        with self._starting:
            if self._is_stopped:
                return
            self._is_stopped = True  # before `end` runs: whom it cancels asks
            ending = asyncio.run_coroutine_threadsafe(end(), self.loop)
        ending.result()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    @property
    def _is_own_thread(self) -> bool:
        return threading.get_ident() == self._thread.ident

    def _begin(self, made: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        with self._starting:
            if not self._is_stopped:
                return asyncio.run_coroutine_threadsafe(made, self.loop)
        made.close()
        raise _ClosedError


class _ClosedError(RuntimeError):
    """The client is closed."""

    def __init__(self) -> None:
        super().__init__("the client is closed")


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
