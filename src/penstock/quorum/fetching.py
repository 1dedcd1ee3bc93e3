"""What to fetch of the metadata log, what a fetch deserves, and where two logs part: functions of facts about it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from penstock.model.ids import Epoch, NodeId, Offset

EndOf = Callable[[Epoch], tuple[Epoch, Offset]]
"""The largest epoch of a log not above the given one, and the offset after its last record; (-1, -1) for none."""


class LogPoint(NamedTuple):
    """The log up to `end`, whose last record has `epoch`."""

    end: Offset
    epoch: Epoch


class LogView(NamedTuple):
    """The facts of a log that a fetch is judged by."""

    start: Offset
    tip: LogPoint
    end_of: EndOf
    oldest_snapshot: LogPoint | None = None
    newest_snapshot: LogPoint | None = None


class Wish(NamedTuple):
    """What to fetch, and from whom: the end of the log as it is, in the epoch in which it is."""

    epoch: Epoch
    leader: NodeId
    offset: Offset
    last_epoch: Epoch
    high_watermark: Offset | None


class Serve(NamedTuple):
    """Both logs are the same up to there: go on from there."""


class Diverges(NamedTuple):
    """The leader's log has other records there: `point` is the last place where both may agree."""

    point: LogPoint


class NeedsSnapshot(NamedTuple):
    """The leader no longer has the log from there on."""

    snapshot: LogPoint


Verdict = Serve | Diverges | NeedsSnapshot


def judge_fetch(log: LogView, offset: Offset, last_epoch: Epoch) -> Verdict:
    """A replica whose log ends at `offset` with a record of `last_epoch` asks for what follows."""
    oldest, newest = log.oldest_snapshot, log.newest_snapshot
    if newest is not None and newest.end > 0:
        if offset == 0 or offset < log.start:
            return NeedsSnapshot(newest)
        if oldest is not None and (last_epoch < oldest.epoch or (offset == log.start and last_epoch != oldest.epoch)):
            # Of what lies before the oldest snapshot nobody can say any more who wrote it.
            return NeedsSnapshot(newest)
    if offset == 0 and log.start == 0:
        return Serve()
    epoch, end = log.end_of(last_epoch)
    if end < 0:
        return Diverges(log.tip)
    if epoch != last_epoch or end < offset:
        return Diverges(LogPoint(end, epoch))
    return Serve()


def truncation_point(own_end: Offset, own_end_of: EndOf, diverging: LogPoint) -> Offset:
    """Where to cut a log that the leader says is another's from `diverging` on."""
    epoch, end = own_end_of(diverging.epoch)
    if end < 0:
        return Offset(min(own_end, diverging.end))
    return Offset(min(end, diverging.end)) if epoch == diverging.epoch else Offset(min(end, own_end))
