"""Handlers for agents that are written in other frameworks. Each module needs the extra of its name."""
