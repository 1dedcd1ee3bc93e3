"""Holding a transaction index against its segment, and making it again from the batches.

An index has no checksum. An entry that is not the log's would make readers of committed records leave out records that
were committed, so the entries of a file are looked at when they are first asked for: each names the marker that aborted
its transaction. A file that is gone, or has lost whole entries at its end, tells nothing: most segments have none.

The same look at the batches says which transactions ended behind the high watermark, which no file tells.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from penstock.kernels import BadBytes, BatchHeader
from penstock.model.errors import Corrupt
from penstock.model.ids import Millis, Offset
from penstock.storage.batch_walk import Found, walk_batches
from penstock.storage.producers import CONTROL, Producers, read_marker
from penstock.storage.recovery import batch_bytes, replay
from penstock.storage.segment import Segment
from penstock.storage.segments import Segments
from penstock.storage.snapshot_files import SnapshotFiles
from penstock.storage.transaction_index import AbortedTransaction, Scan

_FOR_EVER_MS = 1 << 62
_WALKED_MIN: Final = 4
_WALKED_BYTES_EACH: Final = 16 << 10
"""It is cheaper to walk over so much of a segment than to look one offset up."""


def confirm_aborted(segment: Segment, segments: Segments, snapshots: SnapshotFiles) -> None:
    """Afterwards the index of the segment has transactions that the log says were aborted, and no others."""
    index = segment.aborted
    if index.confirmed:
        return
    if not index.is_in_order(segment.base) or not _holds(segment, segments, index.entries()):
        _make_again(segment, segments, snapshots)
    index.confirmed = True


def confirm_scan(segments: Segments, snapshots: SnapshotFiles, segment: Segment, scan: Scan) -> bool:
    """The same for what was found in the index. False when the index was made again, so that other things are found.

    A segment may have very many entries, and readers wait. So only the order of all is looked at, once, and of the
    others those that are told, with the one before them: a changed offset would hide it behind that.
    """
    index = segment.aborted
    indexes = range(scan.begin, scan.begin + len(scan.entries))
    doubtful = [entry for number, entry in zip(indexes, scan.entries, strict=True) if number not in index.vouched]
    index.in_order = index.in_order or index.is_in_order(segment.base)
    if index.in_order and _holds(segment, segments, doubtful):
        index.vouch(indexes)
        return True
    _make_again(segment, segments, snapshots)
    index.confirmed = True
    return False


def _holds(segment: Segment, segments: Segments, entries: Sequence[AbortedTransaction]) -> bool:
    """Whether each entry names a marker that aborts a transaction of its producer, and a beginning that may be its."""
    if not entries:
        return True
    try:
        markers = _batches_with(segment, [each.last for each in entries])
        begun: dict[int, BatchHeader] = {}
        by_segment: dict[int, list[int]] = {}
        for each in entries:
            if each.first >= segments[0].base:
                by_segment.setdefault(segments.holding(each.first).base, []).append(each.first)
        for offsets in by_segment.values():
            found = _batches_with(segments.holding(offsets[0]), offsets)
            begun.update((offset, batch.header) for offset, batch in found.items())
        return all(
            _is_abort(segment, markers.get(each.last), each) and _may_begin(begun.get(each.first), each)
            for each in entries
        )
    except (Corrupt, BadBytes):
        return False


def _is_abort(segment: Segment, found: Found | None, aborted: AbortedTransaction) -> bool:
    if found is None or not found.header.attributes & CONTROL or found.header.producer_id != aborted.producer_id:
        return False
    if not found.header.record_count:
        return True  # a cleaning has emptied it, and before it the records of its transaction
    marker = read_marker(found.header, batch_bytes(segment, found))
    return marker is not None and marker.aborts


def _may_begin(header: BatchHeader | None, aborted: AbortedTransaction) -> bool:
    """Whether the batch where a transaction began is of its producer; it may have been cleaned or deleted."""
    if header is None:
        return True
    return header.base_offset == aborted.first and header.producer_id == aborted.producer_id


def _batches_with(segment: Segment, offsets: list[int]) -> dict[int, Found]:
    """The batches that hold these offsets. Near each other they are found in one walk, else each by the index."""
    if len(offsets) >= _WALKED_MIN:
        wanted = set(offsets)
        first, last = segment.find(min(wanted)), segment.find(max(wanted))
        begin = 0 if first is None else first.position
        end = segment.size if last is None else last.position + last.size
        if end - begin <= _WALKED_BYTES_EACH * len(offsets):
            found = {}
            for batch in walk_batches(segment.file, begin, end):
                # A marker is alone in its batch, and a transaction begins with a batch.
                header = batch.header
                if header.base_offset in wanted:
                    found[header.base_offset] = batch
                elif header.last_offset_delta:
                    inside = wanted.intersection(range(header.base_offset + 1, header.last_offset + 1))
                    found.update(dict.fromkeys(inside, batch))
            return found
    by_index = ((offset, _batch_with(segment, offset)) for offset in offsets)
    return {offset: batch for offset, batch in by_index if batch is not None and batch.header.base_offset <= offset}


def _batch_with(segment: Segment, offset: int) -> Found | None:
    glance = segment.find(offset)
    if glance is None:
        return None
    return next(walk_batches(segment.file, glance.position, glance.position + glance.size), None)


def ended_since(segments: Segments, snapshots: SnapshotFiles, since: int, until: int) -> dict[int, int]:
    """First offset and marker of the transactions whose marker lies in [since, until).

    Where they began is known from a snapshot before that, which may be a whole segment away: it is looked at only when
    there are markers. Damage hides what lies behind it; whoever reads there is told.
    """
    producers = Producers(_FOR_EVER_MS)
    with suppress(Corrupt, BadBytes):
        if _has_markers(segments, since, until):
            snapshots.look(producers, start=segments[0].base, end=since, now=Millis(0))
            replay(producers, segments, until)
    return {first: marker for first, marker in producers.unreplicated.items() if marker >= since}


def _has_markers(segments: Segments, since: int, until: int) -> bool:
    for segment in segments.since(since):
        first = segment.find(since) if segment.size and segment.base < until else None
        if first is None:
            continue
        for batch in walk_batches(segment.file, first.position, segment.size):
            if batch.header.attributes & CONTROL and batch.header.producer_id >= 0:
                return True
            if batch.header.last_offset >= until:
                break
    return False


def _make_again(segment: Segment, segments: Segments, snapshots: SnapshotFiles) -> None:
    """What each marker ends is known from a producer snapshot before the segment, and the batches since."""
    producers = Producers(_FOR_EVER_MS)
    snapshots.look(producers, start=segments[0].base, end=segment.base, now=Millis(0))
    replay(producers, segments, segment.base)
    segment.aborted.start_over()
    for found in walk_batches(segment.file, 0, segment.size):
        header = found.header
        if header.producer_id >= 0 and header.last_offset >= producers.end:
            aborted = producers.apply(header, header.base_offset, batch_bytes(segment, found))
            if aborted is not None:
                segment.aborted.append(aborted)
            producers.end = Offset(header.last_offset + 1)
