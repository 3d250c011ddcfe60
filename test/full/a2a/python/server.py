"""An agent on the official A2A SDK for Python, 0.3 or 1.x, whichever is installed: `server.py plain|streaming`. Prints its address."""

from __future__ import annotations

import asyncio
import socket
import sys
from importlib.metadata import version
from typing import Any

import uvicorn
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from starlette.applications import Starlette

IS_1 = not version("a2a-sdk").startswith("0.")

if IS_1:
    from a2a.helpers import new_task_from_user_message as new_task
    from a2a.helpers import new_text_part as text_part
    from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
    from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill
else:
    from a2a.server.apps import A2AStarletteApplication
    from a2a.types import AgentCapabilities, AgentCard, AgentSkill, Part, TextPart
    from a2a.utils import new_task

    def text_part(text: str) -> Any:
        return Part(root=TextPart(text=text))


class Travel(AgentExecutor):
    """Answers `ask` with a question, works on `slow` until it is canceled, and says everything else back in two pieces."""

    def __init__(self) -> None:
        self.canceled: dict[str, asyncio.Event] = {}

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        text = context.get_user_input()
        task = context.current_task
        is_answer = task is not None
        if task is None:
            task = new_task(context.message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        if is_answer:
            await self.say(updater, f"to {text}")
        elif text == "ask":
            await updater.requires_input(updater.new_agent_message([text_part("Where to?")]))
        elif text == "slow":
            await updater.start_work(updater.new_agent_message([text_part("on the way")]))
            await self.canceled.setdefault(task.id, asyncio.Event()).wait()
        else:
            await updater.start_work(updater.new_agent_message([text_part("thinking")]))
            await self.say(updater, f"you said {text}")

    async def say(self, updater: TaskUpdater, text: str) -> None:
        half = len(text) // 2
        await updater.add_artifact([text_part(text[:half])], artifact_id="answer")
        await updater.add_artifact([text_part(text[half:])], artifact_id="answer", append=True, last_chunk=True)
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        print(f"canceled {context.task_id}", flush=True)
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()
        self.canceled.setdefault(context.task_id, asyncio.Event()).set()


def app(url: str, streaming: bool) -> Any:
    common = {
        "name": "Travel",
        "description": "Books travel.",
        "version": "1.0.0",
        "capabilities": AgentCapabilities(streaming=streaming),
        "default_input_modes": ["text/plain"],
        "default_output_modes": ["text/plain"],
        "skills": [AgentSkill(id="book", name="Book", description="Books.", tags=["travel"])],
    }
    if not IS_1:
        card = AgentCard(url=url, **common)
        handler = DefaultRequestHandler(agent_executor=Travel(), task_store=InMemoryTaskStore())
        return A2AStarletteApplication(agent_card=card, http_handler=handler).build()
    interface = AgentInterface(url=url, protocol_binding="JSONRPC", protocol_version="1.0")
    card = AgentCard(supported_interfaces=[interface], **common)
    handler = DefaultRequestHandler(agent_executor=Travel(), task_store=InMemoryTaskStore(), agent_card=card)
    return Starlette(routes=[*create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/")])


def main() -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listening.getsockname()[1]}/"
    served = app(url, sys.argv[1:] == ["streaming"])
    print(f"listening {url}", flush=True)
    uvicorn.Server(uvicorn.Config(served, log_level="warning")).run(sockets=[listening])


main()
