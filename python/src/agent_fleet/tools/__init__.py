"""Calls of other agents' tools and of the platform's, and the handlers of an agent's own tools."""
