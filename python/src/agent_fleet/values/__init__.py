"""Values as JSON, and values as types."""
