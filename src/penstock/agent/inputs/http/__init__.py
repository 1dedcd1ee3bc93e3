"""Events over HTTP: JSON, NDJSON, lines or a body as it is. Here alone senders learn what became of their events.

Invariants: a request is taken as a whole or not at all; 200 means that the brokers (or the spool) have every event of
it, 202 that the agent has; whoever gets anything else sends again. Without room the answer is 429 with Retry-After,
and nothing is taken. `bodies.py` (pure) makes events of bodies, `input.py` answers, `settings.py` is how it is written.
"""
