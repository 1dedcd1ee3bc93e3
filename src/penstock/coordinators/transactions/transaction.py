"""One transactional id: what its last record says, and the little that no record holds.

States and what happens to them. *Settling* is an id whose last record is not committed yet, or that is in Prepare*.

| | InitProducerId | partitions are added | EndTxn | all markers are written | out of time | unused for long |
|---|---|---|---|---|---|---|
| no such id | Empty | 49 | 49 | – | – | – |
| settling | 51 | 51, but Ongoing goes on | 51 | Complete* from Prepare* | later | later |
| Empty | Empty, epoch + 1 | Ongoing | 48; v5: abort to PrepareAbort | – | – | no such id |
| Ongoing | PrepareAbort, and 51 | Ongoing | PrepareCommit, PrepareAbort | – | PrepareAbort | – |
| PrepareCommit, PrepareAbort | 51 | 51 | 51 | CompleteCommit, CompleteAbort | – | – |
| CompleteCommit, CompleteAbort | Empty, epoch + 1 | Ongoing | done, or 48; v5: as in Empty | – | – | no such id |

Kafka also has Dead ("the tombstone is under way") and PrepareEpochFence ("fencing begins"). They never reach the log
and nobody needs them here: a tombstone counts at once, and fencing is one step.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

from penstock.coordinators.decision import Moment
from penstock.coordinators.transactions.requests import EPOCH_PER_TRANSACTION, Partition
from penstock.model.ids import Millis, Offset

NO_PRODUCER: Final = -1
NO_EPOCH: Final = -1
NO_TIME: Final = Millis(-1)
EPOCH_MAX: Final = 32_767
"""Only used inside Prepare* and in markers, never told to a producer."""
EPOCH_LAST: Final = EPOCH_MAX - 1
"""The last epoch that a producer can have; the next one needs another producer id."""
NEVER_TIMES_OUT_MS: Final = 2_147_483_647
"""The timeout of transactions that an outside coordinator ends (two-phase commit)."""


class Status(IntEnum):
    """As it is in records. Kafka's names, which tools print, are `name_of`."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5


STATUS_NAMES: Final = {
    Status.EMPTY: "Empty",
    Status.ONGOING: "Ongoing",
    Status.PREPARE_COMMIT: "PrepareCommit",
    Status.PREPARE_ABORT: "PrepareAbort",
    Status.COMPLETE_COMMIT: "CompleteCommit",
    Status.COMPLETE_ABORT: "CompleteAbort",
}
NAMES_OF_NO_STATUS: Final = frozenset({"Dead", "PrepareEpochFence"})
"""States of Kafka that no id is ever seen in."""

PREPARED: Final = frozenset({Status.PREPARE_COMMIT, Status.PREPARE_ABORT})
COMPLETED: Final = frozenset({Status.COMPLETE_COMMIT, Status.COMPLETE_ABORT})
NO_PARTITIONS: Final[frozenset[Partition]] = frozenset()


class State(NamedTuple):
    """What a record says of an id. Every record holds all of it, so the last one is enough."""

    producer_id: int
    epoch: int
    timeout_ms: int
    status: Status
    partitions: frozenset[Partition]
    updated_ms: Millis
    started_ms: Millis
    previous_producer_id: int
    """The producer id before the transition that led here: another one just after a rotation."""
    next_producer_id: int
    """The producer id after this transaction, when its epoch is used up."""
    client_version: int
    """The protocol of whoever moved the state: 2 for an epoch per transaction, else less."""

    @property
    def exhausted(self) -> bool:
        return self.epoch >= EPOCH_LAST


class Transaction:
    """A transactional id. An idle one must stay small: brokers remember ids for a week."""

    __slots__ = ("id", "last_epoch_told", "offset", "state")

    def __init__(self, transactional_id: str, state: State, offset: Offset) -> None:
        self.id = transactional_id
        self.state = state
        self.offset = offset
        """Where the last record lies in the log."""
        self.last_epoch_told: int | None = None
        """What a decision of this life of the shard made of the last epoch; None when none has."""

    @property
    def last_epoch(self) -> int:
        """The epoch before the one that the producer has, when a request with it may be a repeated one.

        No record holds it. Of a transaction with an epoch of its own it can be derived all the same, so that a failover
        does not fence a producer that only repeats itself (KAFKA-20357).
        """
        return self.last_epoch_told if self.last_epoch_told is not None else _derived_last_epoch(self.state)

    def settling(self, now: Moment) -> bool:
        """Whether the next state is already decided, or the present one may still be taken back."""
        return self.state.status in PREPARED or self.offset >= now.committed

    def committed(self, now: Moment) -> bool:
        return self.offset < now.committed


def _derived_last_epoch(state: State) -> int:
    ended = state.status in PREPARED or state.status in COMPLETED
    if not ended or state.client_version < EPOCH_PER_TRANSACTION:
        return NO_EPOCH
    if state.epoch == 0 and state.previous_producer_id != state.producer_id:
        return EPOCH_LAST
    return state.epoch - 1
