"""An agent on the OpenAI Agents SDK that remembers each session.

    pip install '…/python[openai-agents]'
    OPENAI_API_KEY=… python openai_agent.py
"""

import agents

from agent_fleet import Agent
from agent_fleet.adapters.openai_agents import openai_agents_handler


@agents.function_tool
def price(item: str) -> str:
    """The price of an item"""
    return f"{item}: 2.50"


assistant = agents.Agent("Shop assistant", instructions="You sell tea. Be brief.", tools=[price])

agent = Agent("assistant", description="Sells tea")
agent.on_message(openai_agents_handler(assistant, session=lambda id: agents.SQLiteSession(id, "conversations.db")))
agent.run()
