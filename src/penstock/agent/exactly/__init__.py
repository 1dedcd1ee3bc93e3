"""Exactly once: records and the positions that they came from, in one transaction.

    inputs, spool ──take()──▶ Positions ──rows──▶ Transactions ──▶ __penstock_agent ┐ one transaction
    Outlet ──shipments that took off──────────────────▲          ──▶ topics          ┘

    identity.py    who this agent is: transactional id, machine      rows.py       what the topic's records mean; pure
    beginning.py   which positions count at a start; pure            outcome.py    how a transaction ended; pure
    topic.py       the topic of positions, read to its very end      positions.py  what inputs are given and asked for
    allowance.py   how much goes into a transaction; pure
    transactions.py  the loop: begin, fill, positions, commit; abort and again; a new producer after a failure

Invariants: what is in a transaction and what the positions in it say are the same portions, whole; an input hears
that something is done only after the commit; the log is the witness: whether a transaction of doubtful end was
committed is what the topic says, read past the high watermark that was taken after InitProducerId; whoever finds the
stamp of another life there has been replaced and ends. Local checkpoints follow the topic and never lead it.

Imports the client, the outlet and checkpoints, no input. Begin with `rows.py`, then `transactions.py`.
"""
