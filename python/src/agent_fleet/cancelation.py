"""Who cancels a task."""

from __future__ import annotations

import asyncio


def is_canceled() -> bool:
    """Whether this task was asked to cancel, so that a CancelledError is not of its own making."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
