"""Agents on the OpenAI Agents SDK: a session is a conversation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import agents
from agents.memory import Session

from ..handlers.agent_task import AgentTask
from ..handlers.results import Completed, Failed
from ..parts import Usage


def openai_agents_handler(
    agent: agents.Agent[Any],
    *,
    session: Callable[[str], Session] | None = None,
    run_config: agents.RunConfig | None = None,
    max_turns: int = 10,
) -> Callable[[AgentTask], Awaitable[object]]:
    """The handler for an agent. It streams the text of the model, and reports its usage.

    `session` makes the conversation of a session id, for example `lambda id: SQLiteSession(id, "conversations.db")`; without it
    each message stands alone. Tools that wait for an approval of that SDK fail the message with `APPROVAL_UNSUPPORTED`: let a policy
    of the platform ask instead, which needs no process that waits.
    """

    async def handle(task: AgentTask) -> object:
        conversation = session(task.session_id) if session else None
        run = agents.Runner.run_streamed(
            agent, task.text, session=conversation, run_config=run_config, max_turns=max_turns
        )
        streamed = False
        try:
            async for event in run.stream_events():
                if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
                    streamed = True
                    await task.stream(event.data.delta)
        finally:
            run.cancel()
        if run.interruptions:
            name = run.interruptions[0].name
            return Failed(code="APPROVAL_UNSUPPORTED", message=f"the tool {name} waits for an approval of the Agents SDK")
        counted = run.context_wrapper.usage
        usage: Usage = {"input_tokens": counted.input_tokens, "output_tokens": counted.output_tokens}
        if isinstance(agent.model, str):
            usage["model"] = agent.model
        if not isinstance(run.final_output, str):
            return Completed(parts=[{"kind": "data", "data": _data_of(run.final_output)}], usage=usage)
        return Completed(parts=None if streamed else [{"kind": "text", "text": run.final_output}], usage=usage)

    return handle


def _data_of(output: Any) -> dict[str, Any]:
    """An output with a type of its own as the object of a data part."""
    data = output.model_dump(mode="json") if hasattr(output, "model_dump") else output
    return data if isinstance(data, dict) else {"output": data}
