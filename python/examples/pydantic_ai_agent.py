"""An agent on Pydantic AI: it streams, remembers its session, and reports its usage.

    pip install '…/python' pydantic-ai
    MODEL=openai:gpt-5-mini OPENAI_API_KEY=… python pydantic_ai_agent.py

Without MODEL a model of Pydantic AI's own answers, which is made for tests.
"""

import os

from pydantic_ai import Agent as Assistant
from pydantic_ai import ModelMessage, ModelRequest, ModelResponse, TextPart

from agent_fleet import Agent, AgentTask, Completed

assistant = Assistant(os.environ.get("MODEL", "test"), instructions="You sell tea. Be brief.")
agent = Agent("pydantic-ai", description="Sells tea")


@assistant.tool_plain
def price(item: str) -> str:
    """The price of an item"""
    return f"{item}: 2.50"


@agent.on_message
async def answer(task: AgentTask) -> Completed:
    earlier: list[ModelMessage] = [
        ModelRequest.user_text_prompt(turn.text) if turn.role == "user" else ModelResponse([TextPart(turn.text)])
        for turn in await task.history()
    ]
    async with assistant.run_stream(task.text, message_history=earlier) as run:
        async for text in run.stream_text(delta=True, debounce_by=None):
            await task.stream(text)
    used = run.usage
    return Completed(usage={"input_tokens": used.input_tokens, "output_tokens": used.output_tokens})


if __name__ == "__main__":
    agent.run()
