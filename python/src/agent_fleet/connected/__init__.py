"""The connection of an agent to the mesh."""
