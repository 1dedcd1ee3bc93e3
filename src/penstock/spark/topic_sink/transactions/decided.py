"""Whether a batch may be decided: a compare-and-set on the offsets of its input. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto

from penstock.spark.errors import CommitRefused
from penstock.spark.lake.ranges import AlreadyThere, Apply, Conflict, TableRange, decide
from penstock.spark.topic_sink.transactions.records import Standing


class Verdict(Enum):
    NEW = auto()
    REPLAY = auto()
    """The last decision is of this very batch: nothing of it is to be written again."""


def judge(standing: Standing, batch: int, ranges: Sequence[TableRange]) -> Verdict:
    """What a batch is to a query that stands there; `CommitRefused` when it would double rows or skip some.

    A batch is known by what it has read, and by its number only when it has read nothing of ours.
    """
    last = standing.decision
    assert last is None or last.ended, "what was decided is settled first"
    if last is not None and last.batch == batch and _read(last.ranges) == _read(ranges):
        return Verdict.REPLAY
    if not ranges:
        if last is not None and batch <= last.batch:
            raise CommitRefused(_refusal(batch, (f"batch {last.batch} came after it, with other input",)))
        return Verdict.NEW
    match decide(ranges, standing.positions):
        case Apply():
            return Verdict.NEW
        case AlreadyThere():
            raise CommitRefused(_refusal(batch, ("all that it has read was written before, by another batch",)))
        case Conflict(reasons):
            raise CommitRefused(_refusal(batch, reasons))


def _read(ranges: Sequence[TableRange]) -> set[tuple[object, int, int]]:
    return {(each.key, each.start, each.end) for each in ranges}


def _refusal(batch: int, reasons: Sequence[str]) -> str:
    shown = "; ".join(reasons[:20]) + (f"; and {len(reasons) - 20} more" if len(reasons) > 20 else "")
    return (
        f"batch {batch} does not begin where this query has written to in its topics: {shown}. Nothing of it is shown "
        "to readers of committed records. Bring back the checkpoint that belongs to these topics, or begin with a new "
        "checkpoint at the offsets that you choose with startingOffsets"
    )
