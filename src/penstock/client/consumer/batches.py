"""What a fetch brings for one partition, taken apart: which batches are shown, and where each of them leads.

Pure. Headers are read when the bytes arrive, because the next fetch needs to know where this one ended; records are
unpacked and decoded when the application asks, so that nobody pays for what a seek throws away.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from operator import attrgetter
from typing import TYPE_CHECKING, Final, Protocol

from penstock.kernels import (
    HEADER_BYTES,
    BadBatch,
    BadBytes,
    BadCrc,
    BatchHeader,
    ConsumerRecord,
    check_batch,
    crc32c,
    decode_consumer_records,
    decode_records,
    read_header,
    scan_batches,
)
from penstock.protocol.batch import CODEC_MASK, CONTROL, LOG_APPEND_TIME, TRANSACTIONAL, payload_of
from penstock.protocol.control import ABORT, control_type
from penstock.protocol.wire import Buffer, Malformed

if TYPE_CHECKING:
    from penstock.kernels import ColumnSink

LARGE_BATCH_BYTES: Final = 64 << 10
"""From this size on a compressed batch is worth a thread."""


class Aborted(Protocol):
    """An aborted transaction, as Fetch tells it."""

    producer_id: int
    first_offset: int


class Batch:
    """One batch that the application will see.

    `end` is where reading goes on after it, past everything behind it that is not shown. Without a header nothing is
    shown at all: aborted or control records, or the gap that compaction left.
    """

    __slots__ = ("_check", "_payload", "_view", "broken", "cursor", "end", "header", "records", "size", "unpacking")

    def __init__(self, view: memoryview | None, header: BatchHeader | None, end: int, check_crc: bool) -> None:
        self._view = view
        self._check = check_crc
        self._payload: Buffer | None = None
        self.header = header
        self.end = end
        self.size = header.size if header is not None else 0
        self.records: list[ConsumerRecord] | None = None
        self.cursor = 0
        self.broken: BadBytes | Malformed | None = None
        self.unpacking = False  # a thread is at it; look again later

    @property
    def large(self) -> bool:
        """Whether unpacking it would hold up the loop."""
        header = self.header
        return header is not None and bool(header.attributes & CODEC_MASK) and header.size >= LARGE_BATCH_BYTES

    def unpack(self) -> Buffer:
        """The encoded records; the first call checks and decompresses. May run in a thread, before anybody decodes."""
        if self.broken is not None:
            raise self.broken
        if self._payload is None:
            assert self._view is not None, "a batch without a header shows nothing"
            assert self.header is not None, "a batch without a header shows nothing"
            try:
                if self._check:
                    _check_crc(self._view, self.header)
                self._payload = payload_of(self._view, self.header)
            except (BadBytes, Malformed) as broken:
                self.broken = broken
                raise
            self.size = len(self._payload) + HEADER_BYTES
            if self.header.attributes & CODEC_MASK:
                # What arrived is not needed any more, and it holds on to the whole reply.
                self._view = None
        return self._payload

    def prepare(self) -> None:
        """Unpacks ahead of time; what is wrong is kept for whoever gets here."""
        with suppress(BadBytes, Malformed):
            self.unpack()

    def decode(self, topic: str, partition: int, first_offset: int) -> list[ConsumerRecord]:
        """Its records from `first_offset` on. BadBytes or Malformed when they do not decode."""
        header = self.header
        assert header is not None, "a batch without a header shows nothing"
        payload = self.unpack()
        append_time = header.max_timestamp if header.attributes & LOG_APPEND_TIME else None
        try:
            return decode_consumer_records(
                payload,
                header.record_count,
                header.base_offset,
                header.base_timestamp,
                append_time,
                topic,
                partition,
                header.leader_epoch,
                first_offset,
            )
        except BadBytes as broken:
            self.broken = broken
            raise

    def pour(self, sink: ColumnSink, first_offset: int, limit: int) -> int:
        """Adds up to `limit` records from `first_offset` on to `sink`; returns how many."""
        header = self.header
        assert header is not None, "a batch without a header shows nothing"
        payload = self.unpack()
        append_time = header.max_timestamp if header.attributes & LOG_APPEND_TIME else None
        try:
            return sink.take(
                payload,
                header.record_count,
                header.base_offset,
                header.base_timestamp,
                append_time,
                first_offset,
                limit,
            )
        except BadBytes as broken:
            self.broken = broken
            raise


def _check_crc(batch: memoryview, header: BatchHeader) -> None:
    computed = crc32c(batch[21 : header.size])
    if computed != header.crc:
        raise BadCrc(header.crc, computed)


def open_fetched(
    records: Buffer,
    fetch_offset: int,
    *,
    aborted: Sequence[Aborted] | None = None,
    check_crcs: bool = True,
) -> list[Batch]:
    """The batches of one partition's part of a fetch reply, from `fetch_offset` on, in order.

    `aborted` is None for readers that see uncommitted records too. A batch that is cut off at the end is left out: the
    next fetch brings it whole. What cannot be read becomes the last batch, with `broken` set.
    """
    whole = memoryview(records)
    found: list[Batch] = []
    transactions = _AbortedTransactions(aborted) if aborted is not None else None
    headers, broken = _headers(whole)
    for position, header in headers:
        end = header.base_offset + header.last_offset_delta + 1
        if end <= fetch_offset:
            continue
        shown = not header.attributes & CONTROL
        if transactions is not None and header.attributes & TRANSACTIONAL:
            try:
                shown = transactions.shows(whole[position : position + header.size], header, check_crcs) and shown
            except (BadBytes, Malformed) as cause:
                broken = cause
                break
        if shown and header.record_count > 0:
            found.append(Batch(whole[position : position + header.size], header, end, check_crcs))
        elif found:
            found[-1].end = end
        else:
            found.append(Batch(None, None, end, check_crcs))
    if broken is not None:
        last = Batch(None, None, found[-1].end if found else fetch_offset, check_crcs)
        last.broken = broken
        found.append(last)
    return found


def _headers(whole: memoryview) -> tuple[list[tuple[int, BatchHeader]], BadBytes | Malformed | None]:
    """The headers up to the end or the first bad one, and what is wrong with that."""
    try:
        return scan_batches(whole), None
    except BadBatch as broken:
        cause = broken
    found: list[tuple[int, BatchHeader]] = []
    position = 0
    while True:
        header = read_header(whole, position)
        if header.magic != 2 or not HEADER_BYTES <= header.size <= len(whole) - position:
            return found, cause
        found.append((position, header))
        position += header.size


class _AbortedTransactions:
    """Which producers are inside a transaction that ended in an abort, as batches go by."""

    def __init__(self, aborted: Sequence[Aborted]) -> None:
        self._coming = sorted(aborted, key=attrgetter("first_offset"), reverse=True)
        self._inside: set[int] = set()

    def shows(self, batch: memoryview, header: BatchHeader, check_crcs: bool) -> bool:
        """Whether a transactional batch is data of a transaction that was not aborted. Batches come in order."""
        while self._coming and self._coming[-1].first_offset <= header.last_offset:
            self._inside.add(self._coming.pop().producer_id)
        if header.attributes & CONTROL:
            if header.producer_id in self._inside and _aborts(batch, check_crcs):
                self._inside.discard(header.producer_id)
            return False
        return header.producer_id not in self._inside


def _aborts(batch: memoryview, check_crcs: bool) -> bool:
    header = check_batch(batch)[0] if check_crcs else read_header(batch)
    if not header.record_count:
        return False
    payload = payload_of(batch, header)
    (first, *_) = decode_records(payload, header.record_count, header.base_offset, header.base_timestamp)
    return control_type(first.key) == ABORT
