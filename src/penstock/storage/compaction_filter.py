"""What compaction keeps of one batch. No files: a batch comes in and its replacement goes out.

A record goes when a later one has its key, when it is a tombstone whose horizon has passed, or when its transaction was
aborted. Offsets never change. A batch that loses records keeps its place, its producer and its last offset.

A tombstone must be seen by every reader who keeps up, so it is not dropped at once: the first pass that keeps one
writes into the batch when it may go (the delete horizon), and a later pass drops it. Transaction markers go the same
way, once nothing of their transaction is left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from penstock.kernels import BatchHeader, RecordSpan, index_records, splice_records
from penstock.protocol.batch import (
    CONTROL,
    DELETE_HORIZON,
    LOG_APPEND_TIME,
    NO_TIMESTAMP,
    TRANSACTIONAL,
    delete_horizon_of,
    payload_of,
    rebuild_batch,
)
from penstock.protocol.compression import NONE
from penstock.protocol.control import ABORT, COMMIT, control_type
from penstock.storage.clean_job import LastOfProducer
from penstock.storage.offset_map import OffsetMap
from penstock.storage.transaction_index import AbortedTransaction

_INT64_MAX: Final = (1 << 63) - 1


def _wrapped(number: int) -> int:
    """As 64 bits have it: readers add a delta to a late horizon in 64 bits too, and come back to the record's time."""
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


class TransactionWalk:
    """Follows transactions through the batches of a pass, which must come in order.

    `kept` is told each aborted transaction of which something is still there, at its marker: those belong into the new
    transaction index.
    """

    __slots__ = ("_aborted", "_aborting", "_committing", "_kept")

    def __init__(self, aborted: Iterable[AbortedTransaction], kept: Callable[[AbortedTransaction], None]) -> None:
        # The next to begin is last, so that it can be popped.
        self._aborted = sorted(aborted, key=lambda each: each.first, reverse=True)
        # By producer: the transaction, and whether one of its batches was met.
        self._aborting: dict[int, tuple[AbortedTransaction, bool]] = {}
        self._committing: set[int] = set()
        self._kept = kept

    def _reach(self, offset: int) -> None:
        while self._aborted and self._aborted[-1].first <= offset:
            begun = self._aborted.pop()
            self._aborting.setdefault(begun.producer_id, (begun, False))

    def on_data(self, header: BatchHeader) -> bool:
        """Whether the batch belongs to an aborted transaction."""
        self._reach(header.last_offset)
        if not header.attributes & TRANSACTIONAL:
            return False
        aborting = self._aborting.get(header.producer_id)
        if aborting is None:
            self._committing.add(header.producer_id)
            return False
        self._aborting[header.producer_id] = aborting[0], True
        return True

    def on_control(self, header: BatchHeader, key: bytes | None) -> bool:
        """Whether nothing is left that the marker speaks of. `key` is None for a batch that has lost its marker."""
        self._reach(header.last_offset)
        if key is None:
            return True
        kind = control_type(key)
        if kind == COMMIT:
            if header.producer_id not in self._committing:
                return True
            self._committing.remove(header.producer_id)
            return False
        if kind != ABORT:
            return False
        aborted, met = self._aborting.pop(header.producer_id, (None, False))
        if aborted is None or not met:
            return True
        self._kept(aborted)
        return False


class Kept(NamedTuple):
    """A batch after the filter: None when nothing of it stays. Records are counted before and after."""

    data: bytes | bytearray | memoryview | None
    max_timestamp: int
    records_before: int
    records_after: int


class BatchFilter:
    """Decides for every batch of one pass."""

    __slots__ = ("_horizon_ms", "_last_of", "_map", "_now_ms", "_transactions", "keyless_dropped")

    def __init__(
        self,
        offsets: OffsetMap,
        transactions: TransactionWalk,
        producers: Sequence[LastOfProducer],
        *,
        now_ms: int,
        delete_retention_ms: int,
    ) -> None:
        self._map, self._transactions = offsets, transactions
        self._last_of = {last.producer_id: last for last in producers}
        # The field holds no later time, and `delete.retention.ms` may say that tombstones stay for ever.
        self._now_ms, self._horizon_ms = now_ms, min(now_ms + delete_retention_ms, _INT64_MAX)
        self.keyless_dropped = 0

    def keep(self, header: BatchHeader, batch: memoryview) -> Kept:
        """What stays of `batch`: itself, a batch with fewer records, a bare header, or nothing."""
        control = bool(header.attributes & CONTROL)
        payload = payload_of(batch, header) if header.record_count else memoryview(b"")
        spans = index_records(payload, header.record_count)
        if control:
            void = self._transactions.on_control(header, spans[0].key if spans else None)
            kept = [] if void and self._passed(header) else spans
        else:
            void = self._transactions.on_data(header)
            kept = [] if void else self._latest_of_keys(header, spans)
        if not kept:
            return self._bare(header, len(spans))
        # The horizon is set once, by the first pass that meets something which will have to go.
        expires = (control and void) or any(not span.has_value for span in kept)
        horizon = delete_horizon_of(header)
        if expires and horizon is None:
            horizon = self._horizon_ms
        elif len(kept) == len(spans):
            return Kept(batch, header.max_timestamp, len(spans), len(spans))
        return self._rebuilt(header, payload, kept, horizon, len(spans))

    def _passed(self, header: BatchHeader) -> bool:
        horizon = delete_horizon_of(header)
        return horizon is not None and horizon <= self._now_ms

    def _latest_of_keys(self, header: BatchHeader, spans: list[RecordSpan]) -> list[RecordSpan]:
        base, latest, find = header.base_offset, self._map.latest, self._map.get
        tombstones_stay = not self._passed(header)
        kept = []
        for span in spans:
            offset, key = base + span.offset_delta, span.key
            if offset > latest:
                kept.append(span)
            elif key is None:
                self.keyless_dropped += 1
            elif offset >= find(key) and (span.has_value or tombstones_stay):
                kept.append(span)
        return kept

    def _bare(self, header: BatchHeader, records_before: int) -> Kept:
        """The header alone keeps a producer's last sequence number; where nobody needs that, nothing stays.

        The last batch that the pass knows of stays too: it shows how far the log went.
        """
        if not self._is_last_of_producer(header) and header.last_offset != self._map.latest:
            return Kept(None, NO_TIMESTAMP, records_before, 0)
        bare = rebuild_batch(
            header,
            b"",
            codec=NONE,
            attributes=header.attributes & (LOG_APPEND_TIME | TRANSACTIONAL | CONTROL),
            base_timestamp=NO_TIMESTAMP,
            record_count=0,
        )
        return Kept(bare, header.max_timestamp, records_before, 0)

    def _is_last_of_producer(self, header: BatchHeader) -> bool:
        last = self._last_of.get(header.producer_id) if header.producer_id >= 0 else None
        if last is None:
            return False
        if last.last_offset >= 0:
            return header.last_offset == last.last_offset
        return bool(header.attributes & CONTROL) and header.producer_epoch == last.epoch

    @staticmethod
    def _rebuilt(
        header: BatchHeader,
        payload: bytes | bytearray | memoryview,
        kept: list[RecordSpan],
        horizon: int | None,
        records_before: int,
    ) -> Kept:
        """The same batch with fewer records, or with a horizon in the place of its base timestamp."""
        append_time = header.max_timestamp if header.attributes & LOG_APPEND_TIME else None
        times = [
            _wrapped(header.base_timestamp + span.timestamp_delta) if append_time is None else append_time
            for span in kept
        ]
        base = times[0] if horizon is None else horizon
        latest = max(NO_TIMESTAMP, *times) if append_time is None else append_time
        pieces = [
            (span.rest, span.end, span.offset_delta, _wrapped(time - base))
            for span, time in zip(kept, times, strict=True)
        ]
        batch = rebuild_batch(
            header,
            splice_records(payload, pieces),
            attributes=header.attributes if horizon is None else header.attributes | DELETE_HORIZON,
            base_timestamp=base,
            max_timestamp=latest,
            record_count=len(kept),
        )
        return Kept(batch, latest, records_before, len(kept))
