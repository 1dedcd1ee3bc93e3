"""What the coordinator is asked that is not one whole message, and its answer.

InitProducerId, AddOffsetsToTxn and EndTxn come as they are on the wire. AddPartitionsToTxn holds several transactions
from version 4 on, which live in different shards: each of them is one `AddPartitions`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from penstock.model.errors import ErrorCode

Partition = tuple[str, int]
"""A topic by its name, and the index of a partition. Transactions know topics by name, not by id."""

CLASSIC: Final = 0
"""The client registers partitions itself, and its epoch stays when a transaction ends."""
EPOCH_PER_TRANSACTION: Final = 2
"""Leaders register partitions, and every end raises the epoch (KIP-890)."""

BROKER_ADDS_SINCE: Final = 4
"""From this version of AddPartitionsToTxn on brokers ask, and not clients."""
BUMPS_EPOCH_SINCE: Final = 5
"""From this version of EndTxn on the epoch is raised with every transaction."""


@dataclass(frozen=True, slots=True)
class AddPartitions:
    """One transaction of AddPartitionsToTxn. `client_version` is `client_version_of` the request's version."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: tuple[Partition, ...]
    verify_only: bool = False
    client_version: int = CLASSIC


@dataclass(frozen=True, slots=True)
class PartitionsAdded:
    """What became of each partition."""

    errors: dict[Partition, ErrorCode]

    @classmethod
    def all_with(cls, error: ErrorCode, partitions: tuple[Partition, ...]) -> PartitionsAdded:
        """The same for every partition; also what is answered when nobody could be asked."""
        return cls(dict.fromkeys(partitions, error))


def client_version_of(add_partitions_version: int) -> int:
    """The protocol that a version of AddPartitionsToTxn belongs to."""
    return EPOCH_PER_TRANSACTION if add_partitions_version >= BROKER_ADDS_SINCE else CLASSIC
