"""Records come in: what is written, the short way for plain requests, and what acks promise."""
