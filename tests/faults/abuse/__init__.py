"""Those who come to do harm: handshakes that do not end, bytes that are none, crowds. Others must not notice."""
