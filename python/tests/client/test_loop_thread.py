"""The event loop of clients without one of their own."""

import asyncio
import signal
import threading
from collections.abc import AsyncIterator, Iterator

import pytest

from agent_fleet.client.sync.loop_thread import LoopThread


async def nothing() -> None:
    pass


@pytest.fixture
def thread() -> Iterator[LoopThread]:
    thread = LoopThread()
    yield thread
    thread.stop(nothing)


def test_what_waits_in_another_thread_ends_with_the_client(thread: LoopThread) -> None:
    waits, raised = threading.Event(), []

    async def forever() -> None:
        waits.set()
        await asyncio.Event().wait()

    def call() -> None:
        try:
            thread.wait(forever())
        except RuntimeError as error:
            raised.append(str(error))

    calling = threading.Thread(target=call, daemon=True)
    calling.start()
    assert waits.wait(10)
    thread.stop(nothing)
    calling.join(10)
    assert raised == ["the client is closed"]
    with pytest.raises(RuntimeError, match="the client is closed"):
        thread.wait(nothing())


def test_an_interrupted_stream_unwinds_before_it_is_closed(thread: LoopThread) -> None:
    steps = []

    async def source() -> AsyncIterator[int]:
        try:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            await asyncio.Event().wait()
            yield 1
        finally:
            for _ in range(5):
                await asyncio.sleep(0)
            steps.append("unwound")

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has its background commands ignore it
    try:
        with pytest.raises(KeyboardInterrupt):
            next(thread.each(source()))
    finally:
        signal.signal(signal.SIGINT, before)
    assert steps == ["unwound"]


def test_a_call_from_the_loops_own_thread_is_refused(thread: LoopThread) -> None:
    async def call() -> None:
        thread.wait(nothing())

    async def stop() -> None:
        thread.stop(nothing)

    for made in (call(), stop()):
        with pytest.raises(RuntimeError, match="the client's own thread"):
            thread.wait(made)


def test_a_stream_that_the_loops_own_thread_collects_is_closed(thread: LoopThread) -> None:
    closed = threading.Event()

    async def source() -> AsyncIterator[int]:
        try:
            yield 1
            yield 2
        finally:
            closed.set()

    items = thread.each(source())
    assert next(items) == 1

    async def collect() -> None:
        items.close()  # type: ignore[attr-defined]

    thread.wait(collect())
    assert closed.wait(10)
