"""Who produces into a log: sequences for idempotence, open transactions for the last stable offset.

`check` looks, `apply` changes; a follower only applies. Each producer's last five batches are remembered, so a retry
within them is answered with the offset it got the first time. Transactions are open from their first batch to their
marker, and stay unstable until the marker is replicated.

Who may write, in Kafka's order; what a follower copies and what a start replays is never refused:

| | a client's batch | of a transaction | a coordinator's, of a transaction | a marker |
|---|---|---|---|---|
| one of the last five | its first offset | its first offset | | |
| its transaction is not open, and its epoch is old | | INVALID_PRODUCER_EPOCH | INVALID_PRODUCER_EPOCH | |
| it is not open, and the guard is not that of now | | INVALID_TXN_STATE | INVALID_TXN_STATE | |
| its epoch is old | INVALID_PRODUCER_EPOCH | the same | the same | the same; see `check_marker` |
| its sequence is not next | OUT_OF_ORDER_SEQUENCE_NUMBER | the same; see `_check_verified` | | |
| a transaction is open | INVALID_TXN_STATE | | | |
| its coordinator's epoch is old | | | | TRANSACTION_COORDINATOR_FENCED |
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from penstock.kernels import HEADER_BYTES, BatchHeader, decode_records
from penstock.model.errors import (
    INVALID_PRODUCER_EPOCH,
    INVALID_TXN_STATE,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    TRANSACTION_COORDINATOR_FENCED,
    Refused,
)
from penstock.model.ids import Millis, Offset
from penstock.storage.producer_snapshot import ProducerRecord
from penstock.storage.tickets import Ticket
from penstock.storage.transaction_index import AbortedTransaction
from penstock.storage.verification import EPOCH_MAX, Verification, Verifications

TRANSACTIONAL = 0x10
CONTROL = 0x20
ABORT, COMMIT = 0, 1

_SEQUENCE_MAX = (1 << 31) - 1
BATCHES_KEPT = 5
STRICT = 2
"""The version of transactions from which on each has a producer epoch of its own."""
_NONE = -1
_MARKER_KEY = struct.Struct(">hh")
_MARKER_VALUE = struct.Struct(">hi")


class Batch(NamedTuple):
    """A batch that a producer wrote lately."""

    first_sequence: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int


class Marker(NamedTuple):
    """The end of a transaction, as a control batch says it."""

    aborts: bool
    coordinator_epoch: int
    timestamp: int


class Producer:
    """What the log knows of one producer id. -1 stands for none."""

    __slots__ = (
        "batches", "coordinator_epoch", "epoch", "from_snapshot", "last_timestamp", "producer_id", "transaction_first",
    )  # fmt: skip

    def __init__(self, producer_id: int, epoch: int = _NONE) -> None:
        self.producer_id = producer_id
        self.epoch = epoch
        self.batches: deque[Batch] = deque(maxlen=BATCHES_KEPT)
        self.coordinator_epoch = _NONE
        self.last_timestamp = _NONE
        self.transaction_first = _NONE
        self.from_snapshot = False  # the log may hold batches of it that are not known here

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else _NONE

    @property
    def last_offset(self) -> int:
        return self.batches[-1].last_offset if self.batches else _NONE

    def move_to_epoch(self, epoch: int) -> None:
        """Sequences begin anew in a new epoch."""
        if epoch != self.epoch:
            self.batches.clear()
            self.epoch = epoch

    def record(self) -> ProducerRecord:
        last = self.batches[-1] if self.batches else Batch(_NONE, _NONE, _NONE, 0, _NONE)
        return ProducerRecord(
            self.producer_id, self.epoch, last.last_sequence, last.last_offset, last.offset_delta,
            self.last_timestamp, self.coordinator_epoch, self.transaction_first,
        )  # fmt: skip


class Producers:
    """All producers of one log. Offsets up to `end` are taken into account."""

    __slots__ = (
        "_by_id", "_open", "end", "ends_known_from", "expiration_ms", "first_unstable", "unreplicated", "verifications",
    )  # fmt: skip

    def __init__(self, expiration_ms: int = 86_400_000) -> None:
        self.expiration_ms = expiration_ms
        self._by_id: dict[int, Producer] = {}
        # Open transactions: first offset -> producer id, in the order of their first offsets.
        self._open: dict[int, int] = {}
        # Ended, with the marker not yet replicated: first offset -> offset of the marker.
        self.unreplicated: dict[int, int] = {}
        self.first_unstable: int | None = None
        self.end = Offset(0)
        self.ends_known_from = Offset(0)
        """A snapshot does not tell which transactions ended before it, only which are open."""
        self.verifications = Verifications()

    def __len__(self) -> int:
        return len(self._by_id)

    def states(self) -> list[Producer]:
        """For DescribeProducers and for compaction, which keeps each producer's last batch."""
        return list(self._by_id.values())

    def get(self, producer_id: int) -> Producer | None:
        return self._by_id.get(producer_id)

    def is_open(self, producer_id: int, epoch: int) -> bool:
        """Whether the producer has a transaction of this epoch open."""
        producer = self._by_id.get(producer_id)
        return producer is not None and producer.transaction_first != _NONE and producer.epoch == epoch

    @property
    def have_ended(self) -> bool:
        """Whether there are producers whose transactions have ended, as far as is remembered."""
        return any(producer.coordinator_epoch != _NONE for producer in self._by_id.values())

    def oldest_open(self) -> Producer | None:
        """Whose transaction began first of those that are open."""
        return self._by_id[next(iter(self._open.values()))] if self._open else None

    # -- may a client's batch enter?

    def check(self, header: BatchHeader) -> Ticket | None:
        """None when the batch may be appended, the original's ticket when it was appended before; else Refused.

        For batches that are not of a transaction.
        """
        producer = self._by_id.get(header.producer_id)
        if producer is None:
            return None
        first, batches = header.base_sequence, producer.batches
        if (
            batches
            and first == batches[-1].last_sequence + 1
            and header.producer_epoch == producer.epoch
            and producer.transaction_first == _NONE
        ):
            return None  # next in line, as nearly every batch is
        known = self._duplicate_of(producer, header)
        if known is not None:
            return known
        self._check_epoch(producer, header.producer_epoch)
        self._check_sequence(producer, header)
        if producer.transaction_first != _NONE:
            raise Refused(
                INVALID_TXN_STATE,
                f"producer {producer.producer_id} has a transaction open; this batch is not part of one",
            )
        return None

    def check_transactional(
        self, header: BatchHeader, guard: Verification | None, *, verifies: bool = True
    ) -> Ticket | None:
        """The same for a batch of a transaction. `guard` is of now when the coordinator was asked about this batch.

        Without `verifies` nobody need have been asked.
        """
        producer = self._by_id.get(header.producer_id)
        if producer is not None:
            batches = producer.batches
            is_open = producer.transaction_first != _NONE and producer.epoch == header.producer_epoch
            is_next = batches and header.base_sequence == batches[-1].last_sequence + 1
            if is_open and is_next and self.verifications.get(header.producer_id) is None:
                return None  # as nearly every batch is
            known = self._duplicate_of(producer, header)
            if known is not None:
                return known
        self._check_guard(header, guard, verifies)
        self._check_verified(producer, header)
        if producer is not None:
            self._check_sequence(producer, header)
        return None

    def check_coordinated(self, header: BatchHeader, guard: Verification | None, *, verifies: bool = True) -> None:
        """The same for what a coordinator writes as part of a producer's transaction: it counts no sequences."""
        self._check_guard(header, guard, verifies)

    def check_marker(self, producer_id: int, epoch: int, coordinator_epoch: int, transaction_version: int = 0) -> None:
        """Whether a coordinator may end this producer's transaction; Refused for one that was replaced.

        Where each transaction has an epoch of its own (version 2) a marker has a newer one than the data before it. An
        equal one with nothing open is the same marker again, and is written again so that its sender can go on.
        """
        producer = self._by_id.get(producer_id)
        if producer is None:
            return
        self._check_epoch(producer, epoch)
        is_open = producer.transaction_first != _NONE
        if transaction_version >= STRICT and epoch == producer.epoch and is_open and epoch != EPOCH_MAX:
            raise Refused(
                INVALID_PRODUCER_EPOCH,
                f"producer {producer_id} has a transaction of epoch {epoch} open; its marker has a newer one",
            )
        if coordinator_epoch < producer.coordinator_epoch:
            raise Refused(
                TRANSACTION_COORDINATOR_FENCED,
                f"coordinator epoch {coordinator_epoch} is older than {producer.coordinator_epoch}, which is known",
            )

    # -- may the coordinator be asked?

    def begin_verification(
        self, producer_id: int, epoch: int, sequence: int, *, bumps_epoch: bool, now: Millis
    ) -> Verification | None:
        """The guard to append with once the coordinator has agreed; None when the transaction is open already."""
        producer = self._by_id.get(producer_id)
        if producer is not None:
            if producer.transaction_first != _NONE and producer.epoch == epoch:
                return None
            self._check_epoch(producer, epoch)
        return self.verifications.begin(producer_id, epoch, sequence, bumps_epoch=bumps_epoch, now=now)

    # -- what is wrong with it

    @staticmethod
    def _duplicate_of(producer: Producer, header: BatchHeader) -> Ticket | None:
        if header.producer_epoch != producer.epoch:
            return None
        first, last = header.base_sequence, advance_sequence(header.base_sequence, header.last_offset_delta)
        for batch in producer.batches:
            if batch.first_sequence == first and batch.last_sequence == last:
                base = batch.last_offset - batch.offset_delta
                return Ticket(Offset(base), Offset(batch.last_offset + 1), batch.timestamp)
        return None

    def _check_guard(self, header: BatchHeader, guard: Verification | None, verifies: bool) -> None:
        """A batch that does not go on with an open transaction needs leave to begin one.

        The epoch is looked at first: who was replaced should hear that, which ends it for good, and not that its
        transaction is in a bad state.
        """
        producer_id, epoch = header.producer_id, header.producer_epoch
        producer = self._by_id.get(producer_id)
        if producer is not None:
            self._check_epoch(producer, epoch)
            if producer.transaction_first != _NONE and producer.epoch == epoch:
                return
        if verifies and (guard is None or guard is not self.verifications.get(producer_id)):
            raise Refused(
                INVALID_TXN_STATE, f"the transaction of producer {producer_id}, epoch {epoch} is not known to be open"
            )

    def _check_verified(self, producer: Producer | None, header: BatchHeader) -> None:
        """A later batch must not overtake one that came before it and was not let in."""
        entry, first = self.verifications.get(header.producer_id), header.base_sequence
        if entry is None:
            return
        if entry.bumps_epoch and first != 0 and (producer is None or not producer.batches):
            raise Refused(
                OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {header.producer_id} is not known and begins its transaction at sequence {first}, not 0",
            )
        if first > entry.lowest_sequence:
            raise Refused(
                OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {header.producer_id} sends sequence {first}; {entry.lowest_sequence} has not been written",
            )

    def _check_epoch(self, producer: Producer, epoch: int) -> None:
        if epoch < producer.epoch:
            raise Refused(
                INVALID_PRODUCER_EPOCH,
                f"producer {producer.producer_id} has epoch {producer.epoch}; this request has the older {epoch}",
            )

    def _check_sequence(self, producer: Producer, header: BatchHeader) -> None:
        first = header.base_sequence
        if header.producer_epoch != producer.epoch:
            if first != 0 and producer.epoch != _NONE:
                raise Refused(
                    OUT_OF_ORDER_SEQUENCE_NUMBER,
                    f"producer {producer.producer_id} begins epoch {header.producer_epoch} at sequence {first}, not 0",
                )
            return
        # A producer that only has markers in the log so far knows no sequence; its first one must be 0.
        expected = advance_sequence(producer.last_sequence, 1) if producer.batches else 0
        if first != expected:
            raise Refused(
                OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {producer.producer_id} sends sequence {first}; {expected} is next",
            )

    # -- what was appended

    def apply(self, header: BatchHeader, base: int, batch: bytes | bytearray | memoryview) -> AbortedTransaction | None:
        """Takes an appended batch into account. `batch` is read only when it is a control batch.

        Returns the transaction that it aborted, for the transaction index.
        """
        if header.attributes & CONTROL:
            marker = read_marker(header, batch)
            return self.apply_marker(header.producer_id, header.producer_epoch, base, marker) if marker else None
        self.apply_data(header, base)
        return None

    def apply_data(self, header: BatchHeader, base: int) -> None:
        producer = self._by_id.get(header.producer_id)
        if producer is None:
            producer = self._by_id[header.producer_id] = Producer(header.producer_id, header.producer_epoch)
        elif producer.epoch != header.producer_epoch:
            producer.move_to_epoch(header.producer_epoch)
        first, delta = header.base_sequence, header.last_offset_delta
        last = first + delta
        if last > _SEQUENCE_MAX:
            last = advance_sequence(first, delta)
        producer.batches.append(Batch(first, last, base + delta, delta, header.max_timestamp))
        producer.last_timestamp = header.max_timestamp
        if header.attributes & TRANSACTIONAL:
            if len(self.verifications):
                self.verifications.written(header.producer_id)
            if producer.transaction_first == _NONE:
                producer.transaction_first = base
                self._open[base] = header.producer_id
                self._find_first_unstable()

    def apply_marker(self, producer_id: int, epoch: int, offset: int, marker: Marker) -> AbortedTransaction | None:
        producer = self._by_id.get(producer_id)
        if producer is None:
            producer = self._by_id[producer_id] = Producer(producer_id, epoch)
        if len(self.verifications):
            self.verifications.ended(producer_id, epoch)
        producer.move_to_epoch(epoch)
        producer.coordinator_epoch = marker.coordinator_epoch
        producer.last_timestamp = marker.timestamp
        first, producer.transaction_first = producer.transaction_first, _NONE
        if first == _NONE:
            return None
        self._open.pop(first, None)
        self.unreplicated[first] = offset
        self._find_first_unstable()
        if not marker.aborts:
            return None
        last_stable = next(iter(self._open), offset + 1)
        return AbortedTransaction(producer_id, first, offset, last_stable)

    def replicated_to(self, offset: int) -> None:
        """Markers below `offset` are replicated: their transactions are stable."""
        self.unreplicated = {first: last for first, last in self.unreplicated.items() if last >= offset}
        self._find_first_unstable()

    def expire(self, now: Millis) -> int:
        """Forgets producers that were silent for too long; returns how many."""
        silent = [producer.producer_id for producer in self._by_id.values() if self._expired(producer, now)]
        for producer_id in silent:
            del self._by_id[producer_id]
        self.verifications.expire(now, self.expiration_ms)
        return len(silent)

    # -- snapshots

    def records(self) -> list[ProducerRecord]:
        return [producer.record() for producer in self._by_id.values()]

    def load(self, records: Iterable[ProducerRecord], end: Offset, now: Millis) -> None:
        """Starts from a snapshot at `end`, without the producers that expired meanwhile."""
        self.clear(end)
        for record in records:
            producer = Producer(record.producer_id, record.epoch)
            producer.from_snapshot = True
            producer.coordinator_epoch = record.coordinator_epoch
            producer.last_timestamp = record.timestamp
            producer.transaction_first = record.transaction_first
            if record.last_offset >= 0:
                first = retreat_sequence(record.last_sequence, record.offset_delta)
                producer.batches.append(
                    Batch(first, record.last_sequence, record.last_offset, record.offset_delta, record.timestamp)
                )
            if not self._expired(producer, now):
                self._by_id[producer.producer_id] = producer
        transactions = [(p.transaction_first, p.producer_id) for p in self.states() if p.transaction_first != _NONE]
        self._open = dict(sorted(transactions))
        self._find_first_unstable()

    def clear(self, end: Offset) -> None:
        self._by_id.clear()
        self._open.clear()
        self.unreplicated.clear()
        self.first_unstable = None
        self.end = self.ends_known_from = end

    def _expired(self, producer: Producer, now: int) -> bool:
        return producer.transaction_first == _NONE and now - producer.last_timestamp >= self.expiration_ms

    def _find_first_unstable(self) -> None:
        opened = next(iter(self._open), None)
        if not self.unreplicated:
            self.first_unstable = opened
            return
        first = min(self.unreplicated)
        self.first_unstable = opened if opened is not None and opened < first else first


def advance_sequence(sequence: int, by: int) -> int:
    """Sequences go from 2^31-1 on to 0."""
    return (sequence + by) % (_SEQUENCE_MAX + 1)


def retreat_sequence(sequence: int, by: int) -> int:
    return (sequence - by) % (_SEQUENCE_MAX + 1)


def read_marker(header: BatchHeader, batch: bytes | bytearray | memoryview) -> Marker | None:
    """The transaction marker in a control batch; None for other control records and for a batch that was emptied."""
    if header.record_count < 1:
        return None
    payload = memoryview(batch)[HEADER_BYTES : header.size]
    record = decode_records(payload, header.record_count, header.base_offset, header.base_timestamp)[0]
    if record.key is None or record.value is None or len(record.key) < _MARKER_KEY.size:
        return None
    _, kind = _MARKER_KEY.unpack_from(record.key)
    if kind not in (ABORT, COMMIT) or len(record.value) < _MARKER_VALUE.size:
        return None
    _, coordinator_epoch = _MARKER_VALUE.unpack_from(record.value)
    return Marker(kind == ABORT, coordinator_epoch, record.timestamp)
