"""All transactional ids that hash to one partition of `__transaction_state`: requests, records, time and markers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from penstock.coordinators.decision import Answer, Caller, Decision, Moment, StateRecord
from penstock.coordinators.shard import Demand
from penstock.coordinators.transactions import expiry, markers, timeouts
from penstock.coordinators.transactions.adding import decide_add, decide_add_offsets
from penstock.coordinators.transactions.answers import add_offsets_refused, end_refused, init_refused
from penstock.coordinators.transactions.describe import Described, Listed, Wanted, described, listed
from penstock.coordinators.transactions.effects import SendMarkers
from penstock.coordinators.transactions.ending import decide_end
from penstock.coordinators.transactions.init import decide_init
from penstock.coordinators.transactions.requests import AddPartitions, Partition, PartitionsAdded
from penstock.coordinators.transactions.settings import TransactionSettings
from penstock.coordinators.transactions.table import TransactionTable
from penstock.coordinators.transactions.verifying import decide_verify
from penstock.metadata.delta import Delta
from penstock.metadata.image import ClusterImage
from penstock.model.errors import COORDINATOR_NOT_AVAILABLE, ErrorCode
from penstock.model.ids import Epoch, Millis, Offset
from penstock.protocol.disk.transaction_records import TransactionLogKey, TransactionLogValue
from penstock.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from penstock.protocol.messages.end_txn import EndTxnRequest
from penstock.protocol.messages.init_producer_id import InitProducerIdRequest


class TransactionShard:
    """The coordinator of some transactional ids. A `Shard` of the runtime (`coordinators/shard.py`).

    `next_producer_id` gives a producer id that nobody had, or None while there is none at hand. Replies have today's
    error codes; `answers.py` says which of them an older version of a request is told.
    """

    def __init__(
        self, settings: TransactionSettings, image: ClusterImage, *, next_producer_id: Callable[[], int | None]
    ) -> None:
        self.table = TransactionTable(settings, image, next_producer_id)

    # Requests

    def demand_of(self, request: object) -> Demand:
        return Demand.READS if isinstance(request, AddPartitions) and request.verify_only else Demand.WRITES

    def decide(self, request: object, caller: Caller, now: Moment) -> Decision:
        if self.table.waits_for is not None and self.demand_of(request) is Demand.WRITES:
            return Decision(reply=_REFUSED[request.__class__](request))
        return _DECIDE[request.__class__](self, request, caller, now)

    def _init(self, request: InitProducerIdRequest, _caller: Caller, now: Moment) -> Decision:
        return decide_init(self.table, request, now)

    def _add(self, request: AddPartitions, _caller: Caller, now: Moment) -> Decision:
        return decide_verify(self.table, request) if request.verify_only else decide_add(self.table, request, now)

    def _add_offsets(self, request: AddOffsetsToTxnRequest, _caller: Caller, now: Moment) -> Decision:
        return decide_add_offsets(self.table, request, now)

    def _end(self, request: EndTxnRequest, caller: Caller, now: Moment) -> Decision:
        return decide_end(self.table, request, caller.api_version, now)

    # Reads

    def describe(self, transactional_id: str) -> Described:
        """One result of DescribeTransactions."""
        return described(self.table, transactional_id)

    def listed(self, wanted: Wanted, now: Moment) -> list[Listed]:
        """What ListTransactions asks for of this shard."""
        return list(listed(self.table, wanted, now))

    # Markers

    def markers_written(self, effect: SendMarkers, now: Moment) -> Decision:
        """Every partition of `effect` has its marker, or its topic is gone. Telling it twice changes nothing."""
        return markers.decide_written(self.table, effect, now)

    def partitions_marked(self, effect: SendMarkers, partitions: Iterable[Partition], now: Moment) -> Decision:
        """These partitions of `effect` have theirs, or are gone; when none is left it is as `markers_written`.

        Nobody has to tell of single partitions, but DescribeTransactions lists them until then.
        """
        return markers.decide_marked(self.table, effect, partitions, now)

    def markers_refused(self, effect: SendMarkers, error: ErrorCode, now: Moment) -> Decision:
        """A leader knows a later epoch of the producer or of its coordinator: the markers must go no further."""
        markers.note_refused(self.table, effect, error)
        return Decision()

    # The log

    def apply(self, record: StateRecord, offset: Offset) -> None:
        """Takes in one record. What has another kind of key is from a release that is newer than this one."""
        key, value = record.key, record.value
        if isinstance(key, TransactionLogKey):
            assert value is None or isinstance(value, TransactionLogValue), "keys and values come in pairs"
            self.table.apply(key.transactional_id, value, offset)

    def apply_pending(self, producer_id: int, record: StateRecord, offset: Offset) -> None:
        """No coordinator writes this topic in transactions, and no client may: there is nothing to keep apart."""

    def on_marker(self, producer_id: int, *, committed: bool) -> None:
        """There is nothing pending."""

    def loaded(self, now: Moment) -> Iterator[Decision]:
        """After the replay: transactions have the rest of their time."""
        self.table.next_expiry = now.tick + self.table.settings.expired_interval_ms
        timeouts.loaded(self.table, now)
        return iter(())

    def led(self, epoch: Epoch, now: Moment) -> Iterable[Decision]:
        """Markers bear the epoch of their coordinator: those that are not known to be written are decided again."""
        self.table.epoch = epoch
        return markers.led(self.table, now)

    # Time and world

    def next_deadline(self) -> Millis | None:
        """The tick at which to call `expire`: for ongoing transactions often, for idle ids hardly ever."""
        check, expiring = self.table.next_check, self.table.next_expiry
        if check is None or expiring is None:
            at = expiring if check is None else check
            return None if at is None else Millis(at)
        return Millis(min(check, expiring))

    def expire(self, now: Moment) -> Iterator[Decision]:
        """Everything that is due."""
        table = self.table
        if table.next_check is not None and now.tick >= table.next_check:
            yield from timeouts.expire(table, now)
        if table.next_expiry is not None and now.tick >= table.next_expiry:
            table.next_expiry = now.tick + table.settings.expired_interval_ms
            yield from expiry.expire(table, now)

    def see(self, image: ClusterImage) -> None:
        """The cluster is as `image` says: its features, the partitions of the offsets topic, and what brokers know."""
        self.table.see(image)

    def image_changed(self, image: ClusterImage, delta: Delta, now: Moment) -> Iterator[Decision]:
        """Nothing follows by itself: topics that are deleted are found by whoever writes markers."""
        if delta.brokers:
            self.see(image)
        else:
            self.table.image = image  # there may be many shards, many brokers and many changes
        return iter(())

    def unload(self) -> list[Answer]:
        """Nobody is ever held back."""
        return []


_DECIDE: dict[type, Callable[[TransactionShard, Any, Caller, Moment], Decision]] = {
    InitProducerIdRequest: TransactionShard._init,
    AddPartitions: TransactionShard._add,
    AddOffsetsToTxnRequest: TransactionShard._add_offsets,
    EndTxnRequest: TransactionShard._end,
}

_REFUSED: dict[type, Callable[[Any], object]] = {
    InitProducerIdRequest: lambda _: init_refused(COORDINATOR_NOT_AVAILABLE),
    AddPartitions: lambda asked: PartitionsAdded.all_with(COORDINATOR_NOT_AVAILABLE, asked.partitions),
    AddOffsetsToTxnRequest: lambda _: add_offsets_refused(COORDINATOR_NOT_AVAILABLE),
    EndTxnRequest: lambda _: end_refused(COORDINATOR_NOT_AVAILABLE),
}
"""What is told while a broker does not know transactions (`metadata/readiness.py`)."""
