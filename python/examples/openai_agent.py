"""An agent on the OpenAI Agents SDK that remembers each session, and asks a human before it pays back.

    pip install '…/python[openai-agents]'
    OPENAI_API_KEY=… python openai_agent.py

Send it "What is tea?", or "Refund order A-17": then its message waits for a human. Its files are conversations.db and runs.db.
"""

import sqlite3
from datetime import UTC, datetime

import agents

from agent_fleet import Agent
from agent_fleet.adapters.openai_agents import openai_agents_handler


@agents.function_tool
def price(item: str) -> str:
    """The price of an item"""
    return f"{item}: 2.50"


@agents.function_tool(needs_approval=True)
def refund(order: str) -> str:
    """Pays an order back"""
    return f"Order {order} is refunded."


class SavedRuns:
    """The runs that wait for an approval. Several agents that share the work need a database that they share."""

    def __init__(self) -> None:
        self._db = sqlite3.connect("runs.db", isolation_level=None)
        self._db.execute("CREATE TABLE IF NOT EXISTS runs (message_id TEXT PRIMARY KEY, run TEXT, keep_until TEXT)")

    async def load(self, message_id: str) -> str | None:
        found = self._db.execute("SELECT run FROM runs WHERE message_id = ?", (message_id,)).fetchone()
        return found[0] if found else None

    async def save(self, message_id: str, run: str, keep_until: datetime) -> None:
        self._db.execute("DELETE FROM runs WHERE keep_until < ?", (datetime.now(UTC).isoformat(),))
        self._db.execute("INSERT OR REPLACE INTO runs VALUES (?, ?, ?)", (message_id, run, keep_until.isoformat()))

    async def delete(self, message_id: str) -> None:
        self._db.execute("DELETE FROM runs WHERE message_id = ?", (message_id,))


assistant = agents.Agent("Shop assistant", instructions="You sell tea. Be brief.", tools=[price, refund])
handler = openai_agents_handler(
    assistant, session=lambda id: agents.SQLiteSession(id, "conversations.db"), store=SavedRuns()
)

agent = Agent("assistant", description="Sells tea")
agent.on_message(handler)
agent.run()
