"""An agent on the OpenAI Agents SDK that remembers each session, and asks a human before it pays back.

    pip install '…/python[openai-agents]'
    OPENAI_API_KEY=… python openai_agent.py

Send it "What is tea?", or "Refund order A-17": then its message waits for a human. Its files are conversations.db and runs.db.
"""

import agents

from agent_fleet import Agent
from agent_fleet.adapters.openai_agents import SQLiteRuns, openai_agents_handler


@agents.function_tool
def price(item: str) -> str:
    """The price of an item"""
    return f"{item}: 2.50"


@agents.function_tool(needs_approval=True)
def refund(order: str) -> str:
    """Pays an order back"""
    return f"Order {order} is refunded."


assistant = agents.Agent("Shop assistant", instructions="You sell tea. Be brief.", tools=[price, refund])
handler = openai_agents_handler(
    assistant, session=lambda id: agents.SQLiteSession(id, "conversations.db"), store=SQLiteRuns("runs.db")
)

agent = Agent("assistant", description="Sells tea")
agent.on_message(handler)
agent.run()
