"""The handlers of an agent, and what they get and give."""
