"""The log of agents."""

from __future__ import annotations

import logging

DEFAULT_LOG = logging.getLogger("agent_fleet")

SILENT_LOG = logging.Logger("agent_fleet.silent")
"""A logger that discards everything."""
SILENT_LOG.disabled = True


def announce(log: logging.Logger, line: str) -> None:
    """Logs a line at INFO. While the program has configured no logging, it goes where Python shows warnings: standard error."""
    if log.hasHandlers():
        log.info("%s", line)
    elif log.isEnabledFor(logging.WARNING) and logging.lastResort:
        logging.lastResort.handle(log.makeRecord(log.name, logging.INFO, "", 0, "%s", (line,), None))


def printable(text: str) -> str:
    """Without control characters: logged values may come from other programs."""
    return "".join(char if char.isprintable() else " " for char in text)
