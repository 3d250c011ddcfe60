"""An agent on LangGraph that asks before it pays back. It needs no model.

    pip install '…/python[langgraph]'
    python langgraph_agent.py

Send it "A-17": its message waits for a human; once somebody has confirmed, the graph goes on. A saver in memory forgets with the process:
then the graph begins anew, and asks again. LangGraph has savers for SQLite and Postgres, which do not.
"""

from typing import Any

from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt

from agent_fleet import Agent, TaskResolution
from agent_fleet.adapters.langgraph import langgraph_handler


def refund(state: MessagesState) -> dict[str, Any]:
    order = state["messages"][-1].content
    answer: TaskResolution = interrupt({"title": "Refund?", "prompt": f"Refund order {order}?"})
    return {"messages": [AIMessage(f"Order {order} is refunded." if answer.accepted else "Nothing was refunded.")]}


graph = StateGraph(MessagesState).add_node("refund", refund).add_edge(START, "refund").compile(checkpointer=InMemorySaver())

agent = Agent("refunder", description="Pays back, if somebody agrees")
agent.on_message(langgraph_handler(graph))
agent.run()
