"""Waits between attempts."""

from __future__ import annotations

import random
from collections.abc import Callable

_STEPS_MS = (1_000, 2_000, 4_000, 8_000, 16_000, 30_000)
_JITTER = 0.25
_RETRY_AFTER_MS_MAX = 300_000
"""Upper limit for the wait that the platform asks for."""


class Backoff:
    """Waits between reconnect attempts: 1, 2, 4, 8, 16, then 30 s, each ±25 %."""

    def __init__(self, random_number: Callable[[], float] = random.random) -> None:
        self._random = random_number
        self._failures = 0

    def next(self, retry_after_ms: float = 0) -> float:
        """The next wait in milliseconds.

        `retry_after_ms` is the wait that the platform asked for (`Retry-After`); up to 25 % are added, so that clients do
        not all return at once.
        """
        step = _STEPS_MS[min(self._failures, len(_STEPS_MS) - 1)]
        self._failures += 1
        chance = self._random()
        asked = min(retry_after_ms, _RETRY_AFTER_MS_MAX) * (1 + chance * _JITTER)
        return max(step * (1 - _JITTER + chance * 2 * _JITTER), asked)

    def reset(self) -> None:
        """Called after a success: the next failure waits 1 s again."""
        self._failures = 0
