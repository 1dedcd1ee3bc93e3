"""The checker finds what is planted, names it rightly, and is quiet about histories that are as they should be."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from penstock.kernels import Record
from penstock.protocol.batch import build_batch
from penstock.protocol.control import Marker, marker_batch
from penstock.testing.sim.transactions.ledger import Told
from penstock.testing.sim.transactions.readings import Reading, Shown
from tests.faults.transactions.history import Copy, History, Log, Transaction, Transcript, early_ends, few_of_each

IN, OUT, GROUP = "orders", "orders-out", "copiers"
PARTITIONS = 2
NOTICE_S = 15.0
STEP_MS = 1_000


class Stage:
    """Writes logs as brokers do, and transcripts as workers do, for a run in which nothing goes wrong."""

    def __init__(self, seed: int = 1, transactions: int = 30) -> None:
        self.chance = random.Random(seed)
        self.history = History()
        self.history.copies = [Copy(IN, OUT, GROUP)]
        self.now_ms = 1_700_000_000_000
        for topic in (IN, OUT):
            for partition in range(PARTITIONS):
                self.history.logs[topic, partition] = Log()
        self.feeder, self.copier = (
            Transcript("feeder-0", "feeder", classic=True),
            Transcript("copier-0", "c", classic=True),
        )
        self.history.transcripts = [self.feeder, self.copier]
        for number in range(1, transactions + 1):
            self.feed(number, commit=self.chance.random() < 0.7)
        self.copied = dict.fromkeys(range(PARTITIONS), 0)
        number = 0
        while self.left():
            number += 1
            self.copy(number, commit=self.chance.random() < 0.7)
        for partition in range(PARTITIONS):
            end = max(self.log(IN, partition).committed, default=-1) + 1
            self.history.offsets[GROUP, IN, partition] = end
        self.watch()

    # -- writing

    def log(self, topic: str, partition: int) -> Log:
        return self.history.logs[topic, partition]

    def tick(self) -> int:
        self.now_ms += STEP_MS
        return self.now_ms

    def say(self, who: Transcript, words: str) -> None:
        who.hear(f"{self.tick() / 1000:.6f} {words}")

    def write(self, topic: str, partition: int, values: list[str], producer_id: int, epoch: int = 0) -> None:
        log = self.log(topic, partition)
        at = self.tick()
        records = [Record(log.end + index, at, None, value.encode(), ()) for index, value in enumerate(values)]
        log.add(
            build_batch(
                records,
                base_offset=log.end,
                producer_id=producer_id,
                producer_epoch=epoch,
                base_sequence=0,
                transactional=True,
            )
        )

    def mark(self, topic: str, partition: int, producer_id: int, *, commit: bool, epoch: int = 0) -> None:
        log = self.log(topic, partition)
        log.add(
            marker_batch(
                Marker(commit, 3),
                base_offset=log.end,
                leader_epoch=0,
                timestamp=self.tick(),
                producer_id=producer_id,
                producer_epoch=epoch,
            )
        )

    def end(self, who: Transcript, number: int, topic: str, touched: list[int], pid: int, *, commit: bool) -> None:
        if commit:
            self.say(who, f"commit {number}")
        for partition in touched:
            self.mark(topic, partition, pid, commit=commit)
        self.say(who, f"{'committed' if commit else 'aborted'} {number}")

    def feed(self, number: int, *, commit: bool) -> None:
        self.say(self.feeder, f"begin {number}")
        for partition in range(PARTITIONS):
            values = [f"feeder-0.{number}.{partition}.{index}" for index in range(self.chance.randint(1, 3))]
            for value in values:
                self.say(self.feeder, f"send {number} {partition} -1 {value}")
            self.write(IN, partition, values, 1)
        self.end(self.feeder, number, IN, [*range(PARTITIONS)], 1, commit=commit)

    def left(self) -> list[tuple[int, int]]:
        return [
            (partition, offset)
            for partition in range(PARTITIONS)
            for offset in self.log(IN, partition).committed
            if offset >= self.copied[partition]
        ]

    def copy(self, number: int, *, commit: bool) -> None:
        self.say(self.copier, f"begin {number}")
        touched = {}
        for partition, offset in sorted(self.left(), key=lambda place: place[1])[:7]:
            source = self.log(IN, partition).lines[offset].value or b""
            value = f"{source.decode()}>copier-0.{number}"
            self.say(self.copier, f"send {number} {partition} {offset} {value}")
            self.write(OUT, partition, [value], 2)
            touched[partition] = offset + 1
        if commit:
            self.copied.update(touched)
        self.end(self.copier, number, OUT, [*touched], 2, commit=commit)

    def watch(self) -> None:
        """Somebody reads everything when all is over."""
        for (topic, partition), log in self.history.logs.items():
            reading = Reading("watcher", f"{topic}-{partition}", committed_only=True, complete=True)
            at_s = self.tick() / 1000
            reading.shown = [Shown(offset, line.value, at_s) for offset, line in sorted(log.committed.items())]
            self.history.readings.append(((topic, partition), reading))

    # -- what is planted into

    def reading(self, topic: str = OUT) -> Reading:
        return next(reading for (name, partition), reading in self.history.readings if (name, partition) == (topic, 0))

    def told(self, told: Told, partitions: int = 1) -> Transaction:
        """A transaction of the copier that ended so, and touched so many partitions at least."""
        for each in self.copier.transactions.values():
            where = {self.copier.origins[value].partition for value in each.values}
            if each.told is told and len(where) >= partitions:
                return each
        raise AssertionError("the seed draws one")

    def lines_of(self, each: Transaction, partition: int | None = None) -> list[tuple[Log, int]]:
        return [
            (log, offset)
            for (topic, number), log in self.history.logs.items()
            for offset, line in log.lines.items()
            if topic == OUT and line.value in each.values and partition in (None, number)
        ]

    def check(self) -> list[str]:
        return self.history.check(notice_s=NOTICE_S)


@pytest.mark.parametrize("seed", range(20))
def test_a_healthy_history_has_no_anomaly(seed: int) -> None:
    assert Stage(seed).check() == []


# -- what is planted


def show_an_aborted_record(stage: Stage) -> None:
    log, offset = stage.lines_of(stage.told(Told.ABORTED))[0]
    partition = next(number for (topic, number), each in stage.history.logs.items() if each is log and topic == OUT)
    reading = next(each for place, each in stage.history.readings if place == (OUT, partition))
    reading.shown = sorted([*reading.shown, Shown(offset, log.lines[offset].value, stage.tick() / 1000)])


def show_a_record_early(stage: Stage) -> None:
    """Its marker is written after somebody was shown it."""
    reading = stage.reading()
    first = reading.shown[0]
    line = stage.log(OUT, 0).lines[first.offset]
    reading.shown[0] = first._replace(at_s=line.decided_s - 0.5)


def skip_a_record(stage: Stage) -> None:
    del stage.reading().shown[2]


def go_back(stage: Stage) -> None:
    shown = stage.reading().shown
    shown.insert(4, shown[1])


def lose_what_was_committed(stage: Stage) -> None:
    each = stage.told(Told.COMMITTED)
    for log, offset in stage.lines_of(each)[:1]:
        del log.lines[offset]


def write_twice(stage: Stage) -> None:
    """A retry that nobody recognised."""
    log, offset = stage.lines_of(stage.told(Told.COMMITTED))[0]
    value = log.lines[offset].value or b""
    partition = next(number for (_, number), each in stage.history.logs.items() if each is log)
    stage.write(OUT, partition, [value.decode()], 2)
    stage.mark(OUT, partition, 2, commit=True)


def tear_apart(stage: Stage) -> None:
    """A commit in one partition and an abort in the other, of a client that died before it was told."""
    each = stage.told(Told.COMMITTED, partitions=2)
    each.told = Told.NOTHING
    for log, offset in stage.lines_of(each, 0):
        log.lines[offset].committed = False


def commit_what_was_aborted(stage: Stage) -> None:
    for log, offset in stage.lines_of(stage.told(Told.ABORTED)):
        log.lines[offset].committed = True


def commit_unasked(stage: Stage) -> None:
    each = stage.told(Told.COMMITTED)
    each.told, each.commit_asked = Told.NOTHING, False


def leave_open(stage: Stage) -> None:
    stage.say(stage.copier, "begin 999")
    stage.say(stage.copier, "send 999 0 0 left")
    stage.write(OUT, 0, ["left"], 9)


def copy_again(stage: Stage) -> None:
    """Another worker, which was told an old offset."""
    stage.copied[0] = 0
    stage.copy(998, commit=True)


def copy_what_was_aborted(stage: Stage) -> None:
    offset = next(offset for offset, line in stage.log(IN, 0).lines.items() if not line.committed)
    stage.say(stage.copier, "begin 997")
    stage.say(stage.copier, f"send 997 0 {offset} never")
    stage.write(OUT, 0, ["never"], 2)
    stage.end(stage.copier, 997, OUT, [0], 2, commit=True)


def forget_an_input(stage: Stage) -> None:
    stage.feed(996, commit=True)


def write_a_phantom(stage: Stage) -> None:
    stage.write(OUT, 0, ["nobody"], 2)
    stage.mark(OUT, 0, 2, commit=True)


def go_back_in_the_group(stage: Stage) -> None:
    stage.history.offsets[GROUP, IN, 0] -= 1


def run_ahead_in_the_group(stage: Stage) -> None:
    stage.history.offsets[GROUP, IN, 0] += 1_000


PLANTED: dict[Callable[[Stage], None], str] = {
    show_an_aborted_record: "aborted read (G1a)",
    show_a_record_early: "precommitted read",
    skip_a_record: "skipped poll",
    go_back: "non-monotonic poll",
    lose_what_was_committed: "lost write",
    write_twice: "duplicate",
    tear_apart: "torn transaction",
    commit_what_was_aborted: "wrong outcome",
    commit_unasked: "wrong outcome",
    leave_open: "hanging transaction",
    copy_again: "copied otherwise",
    copy_what_was_aborted: "copied otherwise",
    forget_an_input: "copied otherwise",
    write_a_phantom: "phantom",
    go_back_in_the_group: "offset behind",
    run_ahead_in_the_group: "offset ahead",
}


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
@pytest.mark.parametrize("seed", range(3))
def test_what_is_planted_is_found_and_named(plant: Callable[[Stage], None], seed: int) -> None:
    stage = Stage(seed)
    plant(stage)
    assert PLANTED[plant] in few_of_each(stage.check())


# -- what Kafka allows


def late_end(stage: Stage, *, waited_s: float, classic: bool = True, epoch: int = 0) -> Transaction:
    """Of two transactions in a row the first is committed by a repeated request; its first copy ends the second early,
    which was to be aborted."""
    stage.copier.classic = classic
    stage.say(stage.copier, "begin 990")
    stage.say(stage.copier, "send 990 0 -1 before")
    stage.write(OUT, 0, ["before"], 2)
    stage.say(stage.copier, "commit 990")
    stage.mark(OUT, 0, 2, commit=True)
    stage.now_ms += int(waited_s * 1000)
    stage.say(stage.copier, "committed 990")
    stage.say(stage.copier, "begin 991")
    stage.say(stage.copier, "send 991 0 -1 half of it")
    stage.write(OUT, 0, ["half of it"], 2, epoch)
    stage.mark(OUT, 0, 2, commit=True, epoch=epoch)
    stage.say(stage.copier, "send 991 0 -1 the rest")
    stage.write(OUT, 0, ["the rest"], 2, epoch)
    stage.mark(OUT, 0, 2, commit=False, epoch=epoch)
    stage.say(stage.copier, "aborted 991")
    return stage.copier.transactions[991]


def outcomes(stage: Stage) -> list[str]:
    return [words for words in stage.check() if words.startswith(("wrong outcome", "torn", "lost"))]


def test_a_late_end_of_a_classic_transaction_is_kafkas_own() -> None:
    stage = Stage()
    each = late_end(stage, waited_s=NOTICE_S + 1)
    assert early_ends(stage.history, NOTICE_S) == {each}
    assert outcomes(stage) == []


@pytest.mark.parametrize(
    ("waited_s", "classic", "epoch"), [(1.0, True, 0), (NOTICE_S + 1, False, 0), (NOTICE_S + 1, True, 1)]
)
def test_nothing_else_is_excused(waited_s: float, classic: bool, epoch: int) -> None:
    """Nobody repeated anything; the client's transactions have epochs of their own; this one had another epoch."""
    stage = Stage()
    late_end(stage, waited_s=waited_s, classic=classic, epoch=epoch)
    assert outcomes(stage) != []


def test_what_libraries_print_is_not_a_word_of_the_worker() -> None:
    heard = Transcript("w", "w", classic=True)
    for line in ("Traceback (most recent call last):", "DEBUG begin 1", "1700000000.5 ready", "1700000001.5 begin 1"):
        heard.hear(line)
    assert heard.ready
    assert [*heard.transactions] == [1]
