"""An agent on Google's Agent Development Kit: it streams, its session is ADK's, and it reports its usage.

    pip install '…/python' google-adk
    GOOGLE_API_KEY=… python google_adk_agent.py

A `DatabaseSessionService` in place of the one in memory keeps the conversations over a restart.
"""

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode  # type: ignore[attr-defined]  # it exports both, without saying so
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai import types

from agent_fleet import Agent, AgentTask, Completed, Usage


def price(item: str) -> str:
    """The price of an item"""
    return f"{item}: 2.50"


assistant = LlmAgent(name="assistant", model="gemini-flash-latest", instruction="You sell tea. Be brief.", tools=[price])
runner = Runner(app_name="shop", agent=assistant, session_service=InMemorySessionService(), auto_create_session=True)
agent = Agent("adk", description="Sells tea")


@agent.on_message
async def answer(task: AgentTask) -> Completed:
    usage: Usage = {"input_tokens": 0, "output_tokens": 0}
    message = types.Content(role="user", parts=[types.Part(text=task.text)])
    config = RunConfig(streaming_mode=StreamingMode.SSE)
    has_text = False
    events = runner.run_async(user_id=task.user_id or "user", session_id=task.session_id, new_message=message, run_config=config)
    async for event in events:
        counted = None if event.partial else event.usage_metadata
        if counted:
            usage["input_tokens"] += counted.prompt_token_count or 0
            usage["output_tokens"] += counted.candidates_token_count or 0
        text = "".join(part.text or "" for part in (event.content.parts or [])) if event.content else ""
        if event.partial or (event.is_final_response() and not has_text):  # the last event repeats what was streamed
            has_text = has_text or bool(text)
            await task.stream(text)
    return Completed(usage=usage)


if __name__ == "__main__":
    agent.run()
