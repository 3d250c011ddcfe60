"""Threads for handlers that may block."""

from __future__ import annotations

import asyncio
import contextvars
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from .limits import DISPATCHES_IN_FLIGHT

T = TypeVar("T")

# The event loop's own few threads also look up host names: handlers that block in them would keep the agent from reconnecting. There are
# as many as a connection has dispatches in flight; further calls wait for one.
_threads = ThreadPoolExecutor(max_workers=DISPATCHES_IN_FLIGHT, thread_name_prefix="agent-fleet-handler")


async def in_thread(function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """Calls a function in a thread, with the context variables of the caller."""
    call = functools.partial(contextvars.copy_context().run, function, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(_threads, call)
