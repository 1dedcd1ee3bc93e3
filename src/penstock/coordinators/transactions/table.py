"""All transactional ids of one shard, and what is known of the surroundings."""

from __future__ import annotations

from collections.abc import Callable

from penstock.coordinators.transactions.records import state_of, value_version
from penstock.coordinators.transactions.requests import Partition
from penstock.coordinators.transactions.settings import TransactionSettings
from penstock.coordinators.transactions.transaction import PREPARED, Status, Transaction
from penstock.metadata.features import TRANSACTION_VERSION
from penstock.metadata.image import ClusterImage
from penstock.metadata.readiness import waits_for
from penstock.model.errors import ErrorCode
from penstock.model.ids import NO_EPOCH, Epoch, Offset
from penstock.protocol.disk.transaction_records import TransactionLogValue


class TransactionTable:
    """Ids by name. Those that are busy are in one more table each, so that idle ones cost nothing as time passes."""

    __slots__ = (
        "deadlines", "epoch", "image", "marking", "marking_number", "next_check", "next_expiry", "next_producer_id",
        "prepared", "refused", "settings", "transactions", "unmarked", "waits_for",
    )  # fmt: skip

    def __init__(
        self, settings: TransactionSettings, image: ClusterImage, next_producer_id: Callable[[], int | None]
    ) -> None:
        self.settings, self.next_producer_id = settings, next_producer_id
        self.see(image)
        self.transactions: dict[str, Transaction] = {}
        self.epoch: Epoch = NO_EPOCH
        """The coordinator epoch: that in which this node leads the partition of the shard."""
        self.prepared: dict[str, Transaction] = {}
        """Transactions whose outcome is decided and whose markers are not all written."""
        self.deadlines: dict[str, int | None] = {}
        """The ticks until which ongoing transactions have time; None for those of which only the log tells so far."""
        self.next_check: int | None = None
        """When to look for transactions that are out of time. None while none is ongoing."""
        self.next_expiry: int | None = None
        self.marking: dict[str, int] = {}
        """The effects that are under way for prepared transactions, by their number."""
        self.marking_number = 0
        self.unmarked: dict[str, set[Partition]] = {}
        """What is left to mark of prepared transactions of which some partitions are marked. Never in a record."""
        self.refused: dict[str, ErrorCode] = {}
        """Prepared transactions whose markers were refused for good in this epoch, and why."""

    def see(self, image: ClusterImage) -> None:
        """The cluster is as `image` says."""
        self.image, self.waits_for = image, waits_for(image)

    @property
    def transaction_version(self) -> int:
        """The finalized level of the feature."""
        return self.image.features.get(TRANSACTION_VERSION, 0)

    @property
    def value_version(self) -> int:
        """The version of values that this cluster writes."""
        return value_version(self.transaction_version)

    def apply(self, transactional_id: str, value: TransactionLogValue | None, offset: Offset) -> None:
        """Takes in one record: the only place where what is durable changes."""
        if value is None:
            self.transactions.pop(transactional_id, None)
            self.deadlines.pop(transactional_id, None)
            self._forget_markers(transactional_id)
            return
        state = state_of(value)
        transaction = self.transactions.get(transactional_id)
        if transaction is None:
            transaction = self.transactions[transactional_id] = Transaction(transactional_id, state, offset)
        else:
            transaction.state, transaction.offset = state, offset
        if state.status is Status.ONGOING:
            # Whoever decided it has said until when; a replay knows no clock.
            self.deadlines.setdefault(transactional_id, None)
        else:
            self.deadlines.pop(transactional_id, None)
        if state.status in PREPARED:
            self.prepared[transactional_id] = transaction
        else:
            self._forget_markers(transactional_id)

    def _forget_markers(self, transactional_id: str) -> None:
        if self.prepared.pop(transactional_id, None) is not None:
            self.marking.pop(transactional_id, None)
            self.unmarked.pop(transactional_id, None)
            self.refused.pop(transactional_id, None)
