"""The connection of an agent to the mesh (specification section 6)."""
