"""The thread of a graph, with what the adapter notes in its checkpoints."""

from __future__ import annotations

import copy
import logging
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

from langgraph.types import Interrupt

from ..handlers.results import TaskResolution

_MESSAGE = "fleet_message_id"
"""The member of a checkpoint's metadata that says whose message it is."""
_ASKED = "fleet_asked"
"""The channel of the notes about questions. No graph has it."""
_UNFINISHED = ("__error__", "__error_source_node__", "__interrupt__", "__resume__", _ASKED)
"""Channels of what a task writes before it has ended."""

_RESOLUTION = (TaskResolution.__module__, TaskResolution.__name__)


@dataclass(frozen=True)
class WaitingInterrupt:
    """An interrupt without an answer."""

    interrupt: Interrupt
    answers_before: int | None
    """How many answers the message had when a human was asked; None when nobody was."""


@dataclass(frozen=True)
class ThreadState:
    """Where a thread stands."""

    values: Any
    message_id: str | None
    """The message whose run made the newest checkpoint; None for none."""
    is_over: bool
    """Nothing is left to run."""
    waiting: list[WaitingInterrupt]
    """Interrupts of the open step that wait for an answer, in its order."""


class GraphThread:
    """A thread whose checkpoints say whose message they are, and which questions were asked."""

    def __init__(self, graph: Any, thread_id: str, config: Mapping[str, Any]) -> None:
        """Raises ValueError for a graph without a checkpointer."""
        if not hasattr(graph.checkpointer, "aput_writes"):
            raise ValueError("langgraph_handler: compile the graph with a checkpointer")
        self._graph = _with_resolutions(graph)
        self._config = {**config, "configurable": {**config.get("configurable", {}), "thread_id": thread_id}}

    async def state(self) -> ThreadState:
        snapshot = await self._graph.aget_state(self._config)
        found = await self._graph.checkpointer.aget_tuple(snapshot.config) if snapshot.tasks else None
        writes = (found.pending_writes or []) if found else []
        # A task of the open step that has ended keeps its interrupt until the step is over.
        ended = {task_id for task_id, channel, _ in writes if channel not in _UNFINISHED}
        asked = {task_id: answers for task_id, channel, answers in writes if channel == _ASKED}
        waiting = [
            WaitingInterrupt(interrupt, asked.get(_note_of(interrupt)))
            for task in snapshot.tasks
            if task.id not in ended
            for interrupt in task.interrupts
        ]
        message_id = (snapshot.metadata or {}).get(_MESSAGE)
        return ThreadState(snapshot.values, message_id, not snapshot.next and not waiting, waiting)

    def run(self, given: Any, message_id: str) -> AsyncIterator[Any]:
        """Runs the graph for a message, until it is over or interrupted: chunks of messages, each with its metadata."""
        config = {**self._config, "metadata": {**self._config.get("metadata", {}), _MESSAGE: message_id}}
        chunks: AsyncIterator[Any] = self._graph.astream(given, config, stream_mode="messages")
        return chunks

    async def note_asked(self, interrupt: Interrupt, answers: int) -> None:
        """Notes in the newest checkpoint that a human is asked. LangGraph ignores a pending write of a task that it does not know."""
        config = copy.copy((await self._graph.aget_state(self._config)).config)
        await self._graph.checkpointer.aput_writes(config, [(_ASKED, answers)], _note_of(interrupt))


def _with_resolutions(graph: Any) -> Any:
    """The graph, whose checkpoints may hold answers of humans, also with LANGGRAPH_STRICT_MSGPACK.

    Without that LangGraph allows them, and warns that it may allow less one day. It will not concern them: that line is left out.
    """
    saver = graph.checkpointer
    allowing = saver.with_allowlist([_RESOLUTION]) if hasattr(saver, "with_allowlist") else saver
    logging.getLogger("langgraph.checkpoint.serde.jsonplus").addFilter(_is_about_others)
    return graph if allowing is saver else graph.copy({"checkpointer": allowing})


def _is_about_others(record: logging.LogRecord) -> bool:
    is_warning = str(record.msg).startswith("Deserializing unregistered type")
    return not (is_warning and isinstance(record.args, tuple) and record.args[:2] == _RESOLUTION)


def _note_of(interrupt: Interrupt) -> str:
    return f"fleet:{interrupt.id}"
