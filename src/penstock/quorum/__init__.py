"""Raft as KRaft has it, as a machine you feed events and obey: `QuorumNode.step(event) -> list[Effect]`.

Duty: who leads the metadata log in which epoch, what is committed, what must be on disk before anybody hears of it. One
voter or seven run the same code. Replication itself is by Fetch and belongs to the drivers: facts about the log come in
as arguments.

May import: `model`, `protocol`; neither `storage` nor `metadata` nor `replication`. Pure: time comes in with the event
(monotonic milliseconds), randomness through the constructor.

Invariants: one vote per epoch, on disk before it is on the wire; a leader never leads an epoch twice; an epoch has one
leader; the high watermark only rises and only over a record of the leader's own epoch; only flushed bytes count.

Effects are promises the driver keeps *in order*.

Read `events.py` (the language), then `member.py` (what a node remembers, how it follows) and `node.py`; `election.py`
has the rules of voting, `leading.py` those of committing, `voters.py` who votes and what the log says about it.
"""
