"""What workers said, what watchers were shown, and what the logs hold, held against each other. Pure.

Nothing here asks a broker. A log is read from the files of a replica: which record is there, in which transaction, and
how that ended. Workers say what they are about to do, so a value in a log is found in what somebody said. Anomalies of
readings and of transactions are decided by `penstock.testing.sim.transactions.readings`; here are those beside them:

| anomaly | what it is |
|---|---|
| phantom | a log has a committed record that no worker ever announced |
| hanging transaction | at rest, a record is in a transaction without an end |
| copied otherwise | of a source and its copy: something twice, never, though it was aborted, or out of order |
| offset behind, offset ahead | a group stands before a record that was there to be copied, or behind the end |

One thing that Kafka allows is not charged (`early_ends`): in the classic protocol a transaction has no epoch of its
own, so an EndTxn that its client has given up and sent again may arrive a second time, later, and end the next
transaction early. The witness is the log: a marker that is older than its own transaction's wish to be ended, and a
request of the transaction before that took longer than the client waits for one answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

from penstock.kernels import read_header
from penstock.protocol.batch import read_records
from penstock.storage.producers import CONTROL, TRANSACTIONAL, read_marker
from penstock.testing.sim.transactions.ledger import Attempt, Told
from penstock.testing.sim.transactions.readings import Reading, check_attempts, check_reading

EXAMPLES = 3

Place = tuple[str, int]
"""A topic and a partition."""


class Line:
    """A record in a log; `committed` is None while its transaction is open. Times are those of the marker's broker."""

    __slots__ = ("committed", "decided_s", "epoch", "producer_id", "value")

    def __init__(self, value: bytes | None, producer_id: int, epoch: int, committed: bool | None, at_s: float) -> None:
        self.value, self.producer_id, self.epoch = value, producer_id, epoch
        self.committed, self.decided_s = committed, at_s


class Log:
    """One partition, as its batches tell it."""

    def __init__(self) -> None:
        self.lines: dict[int, Line] = {}
        self.end = 0
        self._open: dict[int, list[Line]] = {}

    def add(self, batch: bytes) -> None:
        header = read_header(batch)
        self.end = header.last_offset + 1
        if header.attributes & CONTROL:
            marker = read_marker(header, batch)
            for line in () if marker is None else self._open.pop(header.producer_id, ()):
                line.committed, line.decided_s = not marker.aborts, marker.timestamp / 1000
            return
        opened = bool(header.attributes & TRANSACTIONAL)
        for record in read_records(batch):
            at_s = record.timestamp / 1000
            line = Line(record.value, header.producer_id, header.producer_epoch, None if opened else True, at_s)
            self.lines[record.offset] = line
            if opened:
                self._open.setdefault(header.producer_id, []).append(line)

    @property
    def committed(self) -> dict[int, Line]:
        return {offset: line for offset, line in self.lines.items() if line.committed}


class Transaction(Attempt):
    """What a worker said of one."""

    __slots__ = ("asked_s", "classic", "told_s")

    def __init__(self, number: int, transactional_id: str, client: str, *, classic: bool) -> None:
        super().__init__(number, transactional_id, client)
        self.classic = classic
        self.asked_s = self.told_s = float("inf")


class Origin(NamedTuple):
    """Where a copied record was read."""

    partition: int
    offset: int


class Transcript:
    """Everything that one worker process has said."""

    def __init__(self, client: str, transactional_id: str, *, classic: bool) -> None:
        self.client, self.transactional_id, self.classic = client, transactional_id, classic
        self.transactions: dict[int, Transaction] = {}
        self.origins: dict[bytes, Origin] = {}
        self.committed = 0
        self.last_words = ""
        self.ready = False

    def hear(self, line: str) -> None:
        """A line; what libraries print is none of ours."""
        at, _, rest = line.partition(" ")
        verb, _, words = rest.partition(" ")
        hear = self._VERBS.get(verb)
        if hear is not None and at.replace(".", "", 1).isdigit():
            hear(self, float(at), words)

    def _begin(self, _at_s: float, words: str) -> None:
        number = int(words)
        made = Transaction(number, self.transactional_id, self.client, classic=self.classic)
        self.transactions[number] = made

    def _send(self, _at_s: float, words: str) -> None:
        number, partition, origin, value = words.split(" ", 3)
        self.transactions[int(number)].values.append(value.encode())
        if int(origin) >= 0:
            self.origins[value.encode()] = Origin(int(partition), int(origin))

    def _commit(self, at_s: float, words: str) -> None:
        asked = self.transactions[int(words)]
        asked.commit_asked, asked.asked_s = True, at_s

    def _committed(self, at_s: float, words: str) -> None:
        self._tell(int(words), Told.COMMITTED, at_s)
        self.committed += 1

    def _aborted(self, at_s: float, words: str) -> None:
        self._tell(int(words), Told.ABORTED, at_s)

    def _tell(self, number: int, told: Told, at_s: float) -> None:
        ended = self.transactions[number]
        ended.told, ended.told_s = told, at_s

    def _ended(self, _at_s: float, words: str) -> None:
        self.last_words = words

    def _ready(self, _at_s: float, _words: str) -> None:
        self.ready = True

    _VERBS: Mapping[str, Callable[[Transcript, float, str], None]] = {
        "begin": _begin, "send": _send, "commit": _commit, "committed": _committed, "aborted": _aborted,
        "ended": _ended, "ready": _ready,
    }  # fmt: skip


class Copy(NamedTuple):
    """A line of workers: from where to where, and by which group."""

    source: str
    target: str
    group: str


class History:
    """All of a run, when it is over."""

    def __init__(self) -> None:
        self.transcripts: list[Transcript] = []
        self.readings: list[tuple[Place, Reading]] = []
        self.logs: dict[Place, Log] = {}
        self.copies: list[Copy] = []
        self.offsets: dict[tuple[str, str, int], int] = {}
        """Where groups stand, by group, topic and partition."""

    @property
    def transactions(self) -> list[Transaction]:
        return [each for transcript in self.transcripts for each in transcript.transactions.values()]

    def check(self, *, notice_s: float) -> list[str]:
        """All anomalies in words. `notice_s` is how long classic clients wait for one answer."""
        return [
            *self._readings(),
            *self._outcomes(early_ends(self, notice_s)),
            *self._unannounced(),
            *self._hanging(),
            *self._copied(),
            *self._offsets(),
        ]

    def _readings(self) -> Iterator[str]:
        for place, reading in self.readings:
            yield from check_reading(reading, self.logs[place].lines)

    def _outcomes(self, excused: set[Attempt]) -> list[str]:
        fates: dict[bytes, list[bool | None]] = {}
        for log in self.logs.values():
            for line in log.lines.values():
                fates.setdefault(line.value or b"", []).append(line.committed)
        attempts = [each for each in self.transactions if each not in excused]
        return check_attempts(attempts, fates, lasting={value for each in attempts for value in each.values})

    def _unannounced(self) -> Iterator[str]:
        announced = {value for each in self.transactions for value in each.values}
        for (topic, partition), log in self.logs.items():
            found = [offset for offset, line in log.lines.items() if line.value not in announced]
            for offset in found[:EXAMPLES]:
                yield f"phantom: {topic}-{partition}@{offset} is {log.lines[offset].value!r}, which nobody announced"

    def _hanging(self) -> Iterator[str]:
        for (topic, partition), log in self.logs.items():
            hanging = [offset for offset, line in log.lines.items() if line.committed is None]
            if hanging:
                line = log.lines[hanging[0]]
                yield (
                    f"hanging transaction: {topic}-{partition}@{hanging[0]} is of producer {line.producer_id}, epoch "
                    f"{line.epoch}, and has no end"
                )

    def _copied(self) -> Iterator[str]:
        origins = {value: origin for each in self.transcripts for value, origin in each.origins.items()}
        for copy in self.copies:
            for (topic, partition), log in self.logs.items():
                if topic == copy.source:
                    yield from _compare(
                        f"{topic}-{partition} in {copy.target}", log, self.logs[copy.target, partition], origins
                    )

    def _offsets(self) -> Iterator[str]:
        for copy in self.copies:
            for (topic, partition), log in self.logs.items():
                if topic != copy.source:
                    continue
                at = self.offsets.get((copy.group, topic, partition), 0)
                behind = [offset for offset in log.committed if offset >= at]
                if behind:
                    yield f"offset behind: {copy.group} stands at {at} of {topic}-{partition}, {behind[0]} is committed"
                if at > log.end:
                    yield f"offset ahead: {copy.group} stands at {at} of {topic}-{partition}, which ends at {log.end}"


def _compare(name: str, source: Log, target: Log, origins: Mapping[bytes, Origin]) -> Iterator[str]:
    wanted = sorted(source.committed)
    lines = [line for _, line in sorted(target.committed.items())]
    copied = [origins[line.value].offset for line in lines if line.value in origins]
    if copied != wanted:
        twice = [offset for offset, times in Counter(copied).items() if times > 1]
        lost = sorted(set(wanted) - set(copied))
        other = sorted(set(copied) - set(wanted))
        yield (
            f"copied otherwise: of {name} twice {_few(twice)}, never {_few(lost)}, though not committed {_few(other)}, "
            f"in order: {copied == sorted(copied)}"
        )


def _few(offsets: list[int]) -> str:
    return f"{offsets[:EXAMPLES]} ({len(offsets)})"


def early_ends(history: History, notice_s: float) -> set[Attempt]:
    """Transactions of classic clients that a late EndTxn of the one before has ended, as Kafka allows."""
    lines = {line.value: line for log in history.logs.values() for line in log.lines.values()}
    found: set[Attempt] = set()
    for transcript in history.transcripts:
        ordered = [each for _, each in sorted(transcript.transactions.items())]
        for before, each in pairwise(ordered):
            repeated = before.told is Told.COMMITTED and before.told_s - before.asked_s >= notice_s
            if each.classic and repeated and _ended_early(each, before, lines):
                found.add(each)
    return found


def _ended_early(each: Transaction, before: Transaction, lines: Mapping[bytes | None, Line]) -> bool:
    """Whether a commit came before it was asked for, in the epoch of the transaction before."""
    epochs = {(lines[value].producer_id, lines[value].epoch) for value in before.values if value in lines}
    own = [lines[value] for value in each.values if value in lines]
    return any(
        line.committed and line.decided_s < each.asked_s and (line.producer_id, line.epoch) in epochs for line in own
    )


def few_of_each(anomalies: Iterable[str]) -> str:
    """Counted by kind, with an example or three."""
    by_kind: dict[str, list[str]] = {}
    for words in anomalies:
        by_kind.setdefault(words.partition(":")[0], []).append(words)
    return "\n".join(line for kind, found in by_kind.items() for line in (f"{kind}: {len(found)}", *found[:EXAMPLES]))
