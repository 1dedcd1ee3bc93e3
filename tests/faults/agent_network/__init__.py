"""Senders that are broken, slow, huge or gone: the network inputs of an agent go on, and hold little."""
