"""What readers were shown, held against what the logs say: the checks of Jepsen's workload for Kafka.

| anomaly | what it is |
|---|---|
| aborted read (G1a) | a reader of committed records was shown one whose transaction was aborted |
| precommitted read | it was shown one whose transaction was open |
| skipped poll | from one record to the next it passed over one that it should have been shown |
| non-monotonic poll | it went back without having begun anew |
| lost write | a commit was told, and a record of it is nowhere, or not committed |
| duplicate | a value is committed twice |
| torn transaction | at rest, a part of a transaction is committed and a part is not |
| wrong outcome | an abort was told, or a commit was never asked for, and something of it is committed |

Records of two transactions among each other, and a part of a transaction in one poll, are what Kafka allows.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

from penstock.testing.sim.transactions.ledger import Attempt, Told

EXAMPLES = 3


class Fate(Protocol):
    """What a log says of a record. `committed` is None while its transaction is open."""

    committed: bool | None
    decided_s: float

    @property
    def value(self) -> bytes | None: ...


class Shown(NamedTuple):
    """A record that a reader was given."""

    offset: int
    value: bytes | None
    at_s: float


class Reading:
    """What one reader was shown of one partition, from where it began until it began anew."""

    __slots__ = ("committed_only", "complete", "partition", "reader", "shown", "start")

    def __init__(self, reader: str, partition: str, *, committed_only: bool, complete: bool, start: int = 0) -> None:
        """`complete` says that nothing of the partition ever goes, so that a reader is shown all of it."""
        self.reader, self.partition, self.start = reader, partition, start
        self.committed_only, self.complete = committed_only, complete
        self.shown: list[Shown] = []


def check_reading(reading: Reading, lines: Mapping[int, Fate]) -> list[str]:
    """What was wrong with what a reader was shown, when the whole log is known."""
    found: list[str] = []
    visible = sorted(offset for offset, line in lines.items() if not reading.committed_only or line.committed is True)
    position = reading.start
    for shown in reading.shown:
        where = f"{reading.reader} was shown {shown.value!r} at {reading.partition}@{shown.offset}"
        if shown.offset < position:
            found.append(f"non-monotonic poll: {where}, after {position - 1}")
            continue
        line = lines.get(shown.offset)
        if line is not None and line.value != shown.value:
            found.append(f"another record: {where}, which is {line.value!r}")
        elif line is not None and reading.committed_only:
            found += _untimely(line, shown, where)
        if reading.complete:
            skipped = visible[bisect_right(visible, position - 1) : bisect_right(visible, shown.offset - 1)]
            found += [f"skipped poll: {where}, and not {lines[offset].value!r} at {offset}" for offset in skipped[:1]]
        position = shown.offset + 1
    return found[:EXAMPLES]


def _untimely(line: Fate, shown: Shown, where: str) -> list[str]:
    if line.committed is False:
        return [f"aborted read (G1a): {where}, and its transaction was aborted"]
    if line.committed is None or line.decided_s > shown.at_s:
        return [f"precommitted read: {where}, and its transaction was open"]
    return []


def check_attempts(
    attempts: Iterable[Attempt], fates: Mapping[bytes, list[bool | None]], *, lasting: set[bytes]
) -> list[str]:
    """What transactions came to. `fates` has every copy of every value in every log; `lasting` are the values that were
    written where nothing ever goes, so that what is not there was never written, or is lost."""
    found: list[str] = []
    for attempt in attempts:
        outcomes = {value: fates.get(value, []) for value in attempt.values}
        committed = [value for value, copies in outcomes.items() if True in copies]
        # One that is open for ever lies in a topic that went before its marker came.
        void = [
            value
            for value, copies in outcomes.items()
            if copies and True not in copies and (False in copies or value in lasting)
        ]
        missing = [value for value, copies in outcomes.items() if not copies and value in lasting]
        doubled = [value for value, copies in outcomes.items() if copies.count(True) > 1]
        found += [f"duplicate: {value!r} of {attempt} is committed twice" for value in doubled[:1]]
        if attempt.told is Told.COMMITTED:
            lost = [*void, *missing]
            found += [f"lost write: {attempt} was committed, and {value!r} is not there" for value in lost[:1]]
        elif attempt.told is Told.ABORTED or not attempt.commit_asked:
            why = "was aborted" if attempt.told is Told.ABORTED else "was never to be committed"
            found += [f"wrong outcome: {attempt} {why}, and {value!r} is committed" for value in committed[:1]]
        elif committed and (void or missing):
            torn = [*void, *missing][0]
            found.append(f"torn transaction: {committed[0]!r} of {attempt} is committed, and {torn!r} is not")
    return found[:EXAMPLES]
