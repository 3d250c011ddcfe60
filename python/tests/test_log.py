"""Where the lines of an agent stand."""

import logging

import pytest

from agent_fleet import SILENT_LOG, AgentError
from agent_fleet.agent.error_reporter import ErrorReporter
from agent_fleet.agent.lifecycle_log import LifecycleLog


def lines_of(log: logging.Logger) -> None:
    """All that an agent says of where it stands: it joins, loses its connection twice in a row, has it again, drains, and gives up."""
    errors = ErrorReporter("agent shop", None, lambda work: None, log)
    lifecycle = LifecycleLog("agent shop", log, errors)
    lifecycle.connected("shop-1", "http://x", False)
    for _ in range(2):
        lifecycle.retries(AgentError("CONNECTION_LOST", "it\nbroke"), "wss://x", was_connected=True)
        lifecycle.connected("shop-1", "http://x", True)
    lifecycle.draining(30)
    lifecycle.cut_off(2)


SAID = [
    "agent shop: joined the platform (instance_id=shop-1, url=http://x)",
    "agent shop: connection lost, trying again: it broke (code=CONNECTION_LOST)",
    "agent shop: connected again (instance_id=shop-1, url=http://x, resumed=True)",
    "agent shop: draining: takes no new work and finishes what runs (grace_seconds=30)",
    "agent shop: stopped before its work was done: what was running is given up (dispatches=2)",
]


def test_while_no_logging_is_configured_they_stand_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    lines_of(logging.Logger("apart"))
    assert capsys.readouterr().err.splitlines() == SAID


def test_where_logging_is_configured_they_go_there(capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "agent_fleet")
    lines_of(logging.getLogger("agent_fleet"))
    assert caplog.messages == SAID
    assert capsys.readouterr().err == ""


def test_a_silent_log_and_one_for_graver_things_say_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    graver = logging.Logger("apart")
    graver.setLevel(logging.ERROR)
    for log in (SILENT_LOG, graver):
        lines_of(log)
    assert capsys.readouterr().err == ""
