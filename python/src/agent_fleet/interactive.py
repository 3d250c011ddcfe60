"""Notebooks and consoles, where the same line may run again."""

from __future__ import annotations

import sys


def is_interactive() -> bool:
    """Whether the program is a notebook or a console: a handler that is defined again replaces the earlier one."""
    return hasattr(sys, "ps1")
