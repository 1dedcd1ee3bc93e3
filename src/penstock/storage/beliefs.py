"""What is believed of the offset checkpoints when a log is opened.

They speak of a partition by its name, which may have been another topic's when they were written: a release before this
one forgot a deleted topic in memory only, and a crash may come between any two files. So an entry has to agree with the
log's own files. In doubt records are kept: to read a log again, or to show again what was trimmed, is better than to
lose what was acknowledged.

| checkpoint     | is not believed when                                     | and then                                |
|----------------|----------------------------------------------------------|-----------------------------------------|
| any            | the file is older than the log's `partition.metadata`    | as if it had no entry                   |
| recovery point | it lies behind the log's end                             | the whole log is read again             |
| log start      | it lies behind the log's end                             | the log starts with its first segment   |
| log start      | after a clean stop the log's epochs begin before it      | the log starts where they begin         |
| high watermark | it lies behind the log's end, or before its start        | the start, until replication tells      |
| cleaner offset | it lies behind the active segment's base, or too early    | cleaning begins at the start            |

An entry's age: `partition.metadata` is written once, when a log is made, and an entry of that log can only be younger.
After a clean stop the first three were written at the end, of living logs only, so that their age says nothing about a
directory that was copied without its times. A future log has a recovery point alone: the rest is the current log's.
"""

from __future__ import annotations

from typing import NamedTuple

from penstock.model.ids import Millis, Offset, TopicPartition
from penstock.storage.checkpoints import CLEANER_OFFSETS, HIGH_WATERMARKS, LOG_STARTS, RECOVERY_POINTS
from penstock.storage.log import Log
from penstock.storage.log_directory import LogDirectory
from penstock.storage.names import Kind

_START = Offset(0)


class Beliefs(NamedTuple):
    """`cleaned_to` is None for a log that was never cleaned."""

    recovery_point: Offset
    log_start: Offset
    high_watermark: Offset
    cleaned_to: Offset | None


def beliefs_about(directory: LogDirectory, name: TopicPartition, kind: Kind, made_at: Millis) -> Beliefs:
    """What the entries of a log are worth before it is opened; `made_at` is the time of its `partition.metadata`."""

    def told(checkpoint: str, *, dated: bool) -> Offset | None:
        said = directory.said[checkpoint]
        offset = said.offsets.get(name)
        if offset is not None and dated and said.at < made_at:
            directory.outdated.add(checkpoint)
            return None
        return offset

    dated = not directory.clean
    recovery_point = told(RECOVERY_POINTS, dated=dated) or _START
    if kind is Kind.FUTURE:
        return Beliefs(recovery_point, _START, _START, None)
    return Beliefs(
        recovery_point,
        told(LOG_STARTS, dated=dated) or _START,
        told(HIGH_WATERMARKS, dated=dated) or _START,
        told(CLEANER_OFFSETS, dated=True),
    )


def note_outdated(directory: LogDirectory, live: list[Log], future: list[Log]) -> None:
    """Looks which checkpoints say something that no log here says of itself; these are to be written anew."""
    logs = {log.name: log for log in live}
    for checkpoint, said in directory.said.items():
        known = logs | {log.name: log for log in future} if checkpoint == RECOVERY_POINTS else logs
        for name, offset in said.offsets.items():
            log = known.get(name)
            if log is None or offset > log.next or (checkpoint == CLEANER_OFFSETS and log.cleaned_to != offset):
                directory.outdated.add(checkpoint)
    directory.said = {}


def cleaned_to(told: Offset | None, log: Log) -> Offset | None:
    """Where the last cleaning of a log ended, of what its checkpoint told."""
    if told is None or log.log_start <= told <= log.segments[-1].base:
        return told
    return log.log_start
