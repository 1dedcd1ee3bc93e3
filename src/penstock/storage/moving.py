"""A log and its copy in the making, in another directory: where the copy must give way, and where it begins.

A future log follows the current one as a follower follows its leader. Between two steps the current log may have been
cut and written anew, or lost its head to retention; leader epochs tell where the two part.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.model.ids import Millis, Offset
from penstock.storage.log import Log
from penstock.storage.reading import Read

_NO_BOUND = 1 << 62


def align(source: Log, future: Log, *, now: Millis) -> None:
    """Makes `future` a copy of the beginning of `source` again; what `source` has beyond it is left to copy."""
    if future.next > source.next:
        future.truncate(source.next, now=now)
    _part_with_lost_epochs(source, future, now)
    if future.next < source.log_start or not future.size_bytes:
        # Nothing of the copy is left in the source, or there is no copy yet.
        start = _start_of(source)
        if future.next != start:
            future.truncate_fully(start, now=now)
    future.commit_to(Offset(min(source.committed, future.next)))
    if future.log_start < source.log_start <= future.committed:
        future.advance_start(source.log_start)


def read_on(source: Log, future: Log, max_bytes: int) -> Read:
    """What is to be copied next. The first batch of all may begin before the source's first offset."""
    start = max(future.next, source.log_start)
    return source.read(start, max_bytes=max_bytes, limit=source.written, at_least_one=True)


def begin_anew(source: Log, future: Log, *, now: Millis) -> None:
    """Throws the copy away."""
    future.truncate_fully(_start_of(source), now=now)


def missing_bytes(source: Log, future: Log) -> Iterator[int]:
    """How many bytes the copy lacks before its end, segment by segment: add them up; 0 when it lacks nothing.

    After a power cut a synced segment may stand behind one that was lost. A gap between offsets proves nothing, because
    compaction leaves some; but a copy holds the very bytes of its source.
    """
    start = max(source.log_start, future.log_start)
    for size in _sizes(source, start, future.next):
        yield size
    for size in _sizes(future, start, future.next):
        yield -size


def _sizes(log: Log, start: int, end: int) -> Iterator[int]:
    while start < end:
        read = log.read(start, max_bytes=_NO_BOUND, limit=end, at_least_one=True)
        if not read.spans:
            return
        yield read.size
        start = read.end


def _start_of(source: Log) -> Offset:
    """Where a copy begins: at the batch that holds the source's first offset, which may begin before it."""
    read = source.read(source.log_start, max_bytes=1, limit=source.written, at_least_one=True)
    if not read.spans:
        return source.log_start
    return Offset(min(source.log_start, int.from_bytes(read.spans[0].read(0, 8), "big")))


def _part_with_lost_epochs(source: Log, future: Log, now: Millis) -> None:
    """Cuts what was written in epochs that the source knows to have ended earlier, or does not know at all."""
    while (epoch := future.epochs.latest) >= 0:
        known, end = source.epochs.end_of(epoch)
        if known == epoch:
            if end < future.next:
                future.truncate(end, now=now)
            return
        begin = future.epochs.entries()[-1].start
        future.truncate(Offset(min(begin, end) if known >= 0 else begin), now=now)
