"""One partition's replicas: who leads, who is in sync, what is committed, what may enter. Pure.

May import metadata, protocol, kernels and model; never storage or quorum: facts about the log come in as arguments.
Invariants: leader epochs never fall; the high watermark never falls within a leader epoch; it stands still while
fewer than `min.insync.replicas` replicas are in sync; nothing above it is shown to consumers. What
`partition.py` asserts of these, and when, stands at its top with the table of its roles.

Read `partition.py` first (roles and the high watermark), then `isr.py` (who is in sync), `admission.py` (which batches
may enter), `acks.py` (when a producer is told), `reading.py` (how far a fetch may read), `fetch_session.py` and
`selection.py` (who reads where); for the other side of a fetch `following.py` (what a follower asks, and what an answer
means), `fetching_session.py` and `throttle.py`.
"""
