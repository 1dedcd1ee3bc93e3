"""A coffee shop whose counter is a topic."""
