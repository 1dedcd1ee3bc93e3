"""Holding a transaction index against its segment, and making it again from the batches.

An index has no checksum. An entry that is not the log's would make readers of committed records leave out records that
were committed, so the entries of a file are looked at when they are first asked for: each names the marker that aborted
its transaction. A file that is gone, or has lost whole entries at its end, tells nothing: most segments have none.

The same look at the batches says which transactions ended behind the high watermark, which no file tells.
"""

from __future__ import annotations

from contextlib import suppress

from penstock.kernels import BadBytes
from penstock.model.errors import Corrupt
from penstock.model.ids import Millis, Offset
from penstock.storage.batch_walk import Found, walk_batches
from penstock.storage.producers import CONTROL, Producers, read_marker
from penstock.storage.recovery import batch_bytes, replay
from penstock.storage.segment import Segment
from penstock.storage.segments import Segments
from penstock.storage.snapshot_files import SnapshotFiles
from penstock.storage.transaction_index import AbortedTransaction

_FOR_EVER_MS = 1 << 62


def confirm_aborted(segment: Segment, segments: Segments, snapshots: SnapshotFiles) -> None:
    """Afterwards the index of the segment has transactions that the log says were aborted, and no others."""
    if segment.aborted.confirmed:
        return
    try:
        sound = not segment.aborted.doubtful() and all(
            _has_its_marker(segment, each) and _has_its_beginning(segments, each) for each in segment.aborted.entries()
        )
    except (Corrupt, BadBytes):
        sound = False
    if not sound:
        _make_again(segment, segments, snapshots)
    segment.aborted.confirmed = True


def _has_its_marker(segment: Segment, aborted: AbortedTransaction) -> bool:
    """Whether the batch that an entry names as the last aborts a transaction of its producer."""
    if not 0 <= aborted.first < aborted.last or aborted.last_stable > aborted.last + 1:
        return False
    found = _batch_with(segment, aborted.last)
    if found is None or not found.header.attributes & CONTROL or found.header.producer_id != aborted.producer_id:
        return False
    if not found.header.record_count:
        return True  # a cleaning has emptied it, and before it the records of its transaction
    marker = read_marker(found.header, batch_bytes(segment, found))
    return marker is not None and marker.aborts


def _has_its_beginning(segments: Segments, aborted: AbortedTransaction) -> bool:
    """Whether the batch that an entry names as the first is of its producer; it may have been cleaned or deleted."""
    if aborted.first < segments[0].base:
        return True
    found = _batch_with(segments.holding(aborted.first), aborted.first)
    if found is None or found.header.base_offset > aborted.first:
        return True
    return found.header.base_offset == aborted.first and found.header.producer_id == aborted.producer_id


def _batch_with(segment: Segment, offset: int) -> Found | None:
    glance = segment.find(offset)
    if glance is None:
        return None
    return next(walk_batches(segment.file, glance.position, glance.position + glance.size), None)


def ended_since(segments: Segments, snapshots: SnapshotFiles, since: int, until: int) -> dict[int, int]:
    """First offset and marker of the transactions whose marker lies in [since, until).

    Damage hides what lies behind it; whoever reads there is told.
    """
    producers = Producers(_FOR_EVER_MS)
    snapshots.look(producers, start=segments[0].base, end=since, now=Millis(0))
    with suppress(Corrupt, BadBytes):
        replay(producers, segments, until)
    return {first: marker for first, marker in producers.unreplicated.items() if marker >= since}


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
