"""The agent, and how it reports what happens to it."""
