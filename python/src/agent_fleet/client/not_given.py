"""Members of a request that the caller leaves out."""

from __future__ import annotations

from enum import Enum
from typing import Any, Final


class NotGiven(Enum):
    """The type of `NOT_GIVEN`."""

    TOKEN = "not given"


NOT_GIVEN: Final = NotGiven.TOKEN
"""The member is left out, and the platform's default counts. `None` is null."""


def given(**members: Any) -> dict[str, Any]:
    """The members that the caller has given."""
    return {name: value for name, value in members.items() if value is not NOT_GIVEN}
