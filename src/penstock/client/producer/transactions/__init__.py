"""Transactions of a producer: many partitions and a group's offsets in one step, or not at all.

Read `machine.py` first (states, events, and what is asked of whom), then `reactions.py` (what an error means),
`messages.py` (requests and replies as data), `driver.py` (which obeys the machine and drains the buffer) and
`prepared.py` (what another process needs to end a transaction).

Invariants: one request of a transaction is under way at a time; a transaction is ended when every batch of it has its
answer, and in the protocol that it began with; commit() succeeds only if the coordinator has said so; a request whose
fate is unknown can never end or change a transaction that comes later: with EndTxn 5 by the epoch that it raises, with
older versions because the producer takes a new epoch first.
"""

from penstock.client.producer.transactions.prepared import PreparedTransaction, ProducerEpoch

__all__ = ["PreparedTransaction", "ProducerEpoch"]
