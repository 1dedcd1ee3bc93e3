"""Rare questions to a log: what was written when, which transactions were aborted. These look into records."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from penstock.kernels import BadBytes, Record, read_header
from penstock.model.errors import Corrupt
from penstock.model.ids import Offset
from penstock.storage.batch_walk import Glance
from penstock.storage.segment import Segment
from penstock.storage.segments import Segments
from penstock.storage.time_index import NO_TIMESTAMP
from penstock.storage.transaction_index import Scan


def offset_for_time(
    segments: Segments, timestamp: int, log_start: int, limit: int, log_end: int, *, gapless: bool = False
) -> tuple[int, Offset] | None:
    """The first record in [log_start, limit) that is not older than `timestamp`.

    Corrupt when it may be one of those that a segment of a `gapless` log has lost.
    """
    for index, segment in enumerate(segments):
        if gapless and not segment.whole and segment is not segments.active:
            segment.check_end(segments.end_of(index, log_end))
        if segments.end_of(index, log_end) <= log_start or segment.largest_timestamp() < timestamp:
            continue
        for batch in segment.batches_newer(timestamp, log_start):
            if batch.base >= limit:
                return None
            if batch.max_timestamp < timestamp or batch.last < log_start:
                continue
            for record in _records(segment, batch):
                if record.timestamp >= timestamp and record.offset >= log_start:
                    return (record.timestamp, Offset(record.offset)) if record.offset < limit else None
    return None


def max_timestamp(segments: Segments) -> tuple[int, Offset] | None:
    """The first record that has the largest timestamp of the log."""
    newest = max(segments, key=lambda segment: segment.latest().timestamp)
    latest = newest.latest()
    if latest.timestamp == NO_TIMESTAMP:
        return None
    for batch in newest.batches_at(latest.offset):
        if batch.max_timestamp == latest.timestamp:
            for record in _records(newest, batch):
                if record.timestamp == latest.timestamp:
                    return record.timestamp, Offset(record.offset)
    return None


def aborted(
    segments: Segments, first: int, end: int, confirm: Callable[[Segment, Scan], bool]
) -> list[tuple[int, int]]:
    """(producer id, first offset) of aborted transactions with records in [first, end).

    `confirm` holds what an index says against the log, and is False when it had to make the index again.
    """
    found: list[tuple[int, int]] = []
    for segment in segments.since(first):
        index = segment.aborted
        if not index.present:
            continue
        scan = index.scan(first, end)
        if not index.confirmed and not confirm(segment, scan):
            scan = index.scan(first, end)
        found += [(each.producer_id, each.first) for each in scan.entries if each.last >= first and each.first < end]
        if scan.complete:
            break
    return found


def _records(segment: Segment, batch: Glance) -> Sequence[Record]:
    # Only these questions need the codecs; a broker that is never asked does not load them.
    from penstock.protocol.batch import read_records

    data = segment.file.pread(batch.size, batch.position)
    try:
        return read_records(data) if read_header(data).record_count else ()
    except (BadBytes, ValueError) as broken:
        raise Corrupt(segment.file.path, batch.position, f"a batch that cannot be read: {broken}") from broken
