"""Consumer groups: who reads which partition, and how far a group has read.

A `GroupShard` (`shard.py`) holds all groups whose id hashes to one partition of `__consumer_offsets` (`home.py` of the
floor above: transactional ids find their home in the same way). It answers the group requests, replays the partition's
records and is told the time.

Two kinds of groups share one table (`table.py`): `classic/` has the protocol in which clients join, sync and assign
among themselves; `consumer/` the one in which the coordinator assigns. Offsets (`offsets.py`, `expiry.py`) belong to
either kind, or to no member at all.

May import model, protocol and metadata. Invariants: durable state changes in `apply` alone; what was decided, written
and replayed gives the same durable state; a group without members has no timer; a heartbeat is a few dictionary
lookups. Records are those of Apache Kafka 4.3.1, byte for byte (`records.py`).

Read `table.py` first, then `shard.py`, then `classic/group.py`.
"""
