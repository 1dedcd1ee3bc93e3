"""Transactions: which partitions a producer writes to, how that ended, and who the producer is now.

A `TransactionShard` (`shard.py`) holds all transactional ids that hash to one partition of `__transaction_state`. It
answers InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn and EndTxn, replays the partition's records, is told the
time, and has one effect: markers to be written into the partitions of a transaction that ended.

May import model, protocol and metadata. Invariants: durable state changes in `TransactionTable.apply` alone; every
record follows the table in `transitions.py` from the one before; what was decided, written and replayed gives the same
state; an outcome that is decided never changes; epoch 32767 is told to nobody; an id at rest is a few hundred bytes and
costs nothing as time passes. Records are those of Apache Kafka 4.3.1, byte for byte (`records.py`).

Read `transaction.py` first, then `transitions.py`, `ending.py` and `shard.py`.
"""
