"""What has to happen outside a shard when a transaction ends."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.coordinators.decision import Effect
from penstock.coordinators.transactions.requests import Partition
from penstock.model.ids import Epoch


@dataclass(frozen=True, slots=True)
class SendMarkers(Effect):
    """Write a marker into each of the partitions; the outcome is decided and committed.

    Whoever carries it out tells the shard what became of it through `Runtime.tell`: `TransactionShard.markers_written`
    when every partition has its marker or is gone for good, `markers_refused` when somebody else has taken over, and
    may tell of single partitions before (`partitions_marked`), which DescribeTransactions then lists no longer.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    """The epoch in the marker: one more than that of the data when the epoch was raised."""
    coordinator_epoch: Epoch
    commits: bool
    transaction_version: int
    """How leaders judge the epoch of the marker: 2 is strict, 0 and 1 are lenient."""
    partitions: tuple[Partition, ...]
    number: int = 0
    """Tells the effects of one shard apart: transactions of a classic client may be alike in everything else."""
