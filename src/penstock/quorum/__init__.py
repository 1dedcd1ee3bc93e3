"""Raft as KRaft has it, as a machine you feed events and obey: `QuorumNode.step(event) -> list[Effect]`.

Duty: who leads the metadata log in which epoch, what is committed, what must be on disk before anybody hears of it. One
voter or seven run the same code. Replication itself is by Fetch and belongs to the drivers: facts about the log come in
as arguments.

May import: `model`, `protocol`; neither `storage` nor `metadata` nor `replication`. Pure: time comes in with the event
(monotonic milliseconds), randomness through the constructor.

Invariants: one vote per epoch, on disk before it is on the wire; a leader never leads an epoch twice; an epoch has one
leader; the high watermark only rises and only over a record of the leader's own epoch; only flushed bytes count; the
voters are those of the newest record in the log, committed or not, and at most one change of them is uncommitted.

Effects are promises the driver keeps *in order*.

Read `events.py` (the language), then `node.py` (the machine, with its table of roles and events). `election.py` has the
rules of voting, `leading.py` those of committing, `membership.py` those of changing the voters, `fetching.py` those of
serving the log; `voters.py` and `history.py` say who votes and since when.
"""
