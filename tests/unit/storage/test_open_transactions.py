"""Open transactions through restarts, crashes, cuts and copies: what is known of them is what the batches say."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.kernels import BatchHeader, scan_batches
from penstock.model.ids import Epoch, Millis, Offset, TopicPartition, Uuid
from penstock.protocol.batch import read_records
from penstock.storage.batch_walk import walk_batches
from penstock.storage.log import Log
from penstock.storage.producers import CONTROL, read_marker
from penstock.storage.recovery import batch_bytes
from penstock.storage.settings import PlainLogSettings
from penstock.storage.transaction_index import AbortedTransaction
from penstock.testing.memory_files import MemoryFiles
from tests.properties import examples

from .batches import TRANSACTIONAL, batch, header_of, marker

NAME = TopicPartition("t", 0)
TOPIC_ID = Uuid(b"\x07" * 16)
DIRECTORY = "/data/t-0"
NOW = Millis(2_000)
SETTINGS = PlainLogSettings(segment_bytes=400)
PRODUCERS = (1, 2, 3)


class Known(NamedTuple):
    """What a log knows of its producers and their transactions."""

    producers: dict[int, tuple[int, int, int, int, int, int]]
    aborted: list[AbortedTransaction]
    last_stable: int


def known_by(log: Log) -> Known:
    producers = {
        each.producer_id: (
            each.epoch, each.last_sequence, each.last_offset, each.coordinator_epoch, each.timestamp,
            each.transaction_first,
        )
        for each in log.producers.records()
    }  # fmt: skip
    log.aborted(0, log.next)  # whoever asks has the indexes held against the log first
    aborted = [each for segment in log.segments for each in segment.aborted.entries()]
    return Known(producers, aborted, log.last_stable)


def batches_of(log: Log) -> list[tuple[BatchHeader, bytes]]:
    found = []
    for segment in log.segments:
        for each in walk_batches(segment.file, 0, segment.size):
            found.append((each.header, segment.file.pread(each.header.size, each.position)))
            assert batch_bytes(segment, each) == (found[-1][1] if each.header.attributes & CONTROL else b"")
    return found


def known_from_batches(log: Log) -> Known:
    """The same, worked out from nothing but the batches, as plainly as can be."""
    producers: dict[int, tuple[int, int, int, int, int, int]] = {}
    aborted: list[AbortedTransaction] = []
    unstable: list[int] = []
    for header, data in batches_of(log):
        producer_id, epoch = header.producer_id, header.producer_epoch
        if producer_id < 0:
            continue
        before = producers.get(producer_id, (epoch, -1, -1, -1, -1, -1))
        if before[0] != epoch:
            before = (epoch, -1, -1, *before[3:])
        first = before[5]
        if header.attributes & CONTROL:
            said = read_marker(header, data)
            assert said is not None
            others = [each[5] for pid, each in producers.items() if pid != producer_id and each[5] >= 0]
            if first >= 0 and said.aborts:
                last_stable = min(others, default=header.base_offset + 1)
                aborted.append(AbortedTransaction(producer_id, first, header.base_offset, last_stable))
            if first >= 0 and header.base_offset >= log.committed:
                unstable.append(first)
            producers[producer_id] = (*before[:3], said.coordinator_epoch, said.timestamp, -1)
            continue
        if header.attributes & TRANSACTIONAL and first < 0:
            first = header.base_offset
        last_sequence = header.base_sequence + header.last_offset_delta
        producers[producer_id] = (
            epoch, last_sequence, header.last_offset, before[3], header.max_timestamp, first,
        )  # fmt: skip
    unstable += [each[5] for each in producers.values() if each[5] >= 0]
    return Known(producers, aborted, min([*unstable, log.committed]))


class Writer:
    """A leader's log, and producers that begin and end transactions in it."""

    def __init__(self, files: MemoryFiles) -> None:
        self.log = Log.create(files, DIRECTORY, NAME, TOPIC_ID, SETTINGS, now=NOW)
        self.sequences = dict.fromkeys(PRODUCERS, 0)
        self.epochs = dict.fromkeys(PRODUCERS, 0)
        self.coordinator_epoch = 0

    def write(self, producer: int, what: str) -> None:
        is_open = self.log.producers.is_open(producer, self.epochs[producer])
        if what == "plain" and not is_open:
            self._append(batch(producer=(producer, self.epochs[producer], self.sequences[producer])), producer)
        elif what == "data":
            data = batch(2, producer=(producer, self.epochs[producer], self.sequences[producer]), attributes=0x10)
            self._append(data, producer)
        elif what in ("commit", "abort"):
            self._end(producer, aborts=what == "abort", next_epoch=False)
        elif what in ("commit and go on", "abort and go on"):
            self._end(producer, aborts=what.startswith("abort"), next_epoch=True)
        elif what == "another coordinator":
            self.coordinator_epoch += 1

    def _append(self, data: bytearray, producer: int) -> None:
        header = header_of(data)
        self.log.append(data, header, epoch=Epoch(0), now=NOW)
        self.sequences[producer] += header.record_count

    def _end(self, producer: int, *, aborts: bool, next_epoch: bool) -> None:
        if next_epoch:
            self.epochs[producer] += 1
            self.sequences[producer] = 0
        data = marker(producer, self.epochs[producer], aborts=aborts, coordinator_epoch=self.coordinator_epoch)
        self.log.append(data, header_of(data), epoch=Epoch(0), now=NOW)


WHAT = (
    "plain", "data", "data", "data", "commit", "abort", "commit and go on", "abort and go on", "another coordinator",
)  # fmt: skip
STEPS = st.lists(st.tuples(st.sampled_from(PRODUCERS), st.sampled_from(WHAT)), min_size=3, max_size=40)
MIXED = st.lists(
    st.tuples(st.sampled_from(PRODUCERS), st.sampled_from(("data", "data", "abort", "abort", "commit and go on"))),
    min_size=6,
    max_size=40,
)
"""Transactions that overlap, and of which many are aborted."""
PERCENT = st.integers(0, 100)


def part_of(log: Log, percent: int) -> Offset:
    return Offset(log.next * percent // 100)


def written(files: MemoryFiles, steps: list[tuple[int, str]]) -> Log:
    writer = Writer(files)
    for producer, what in steps:
        writer.write(producer, what)
    return writer.log


def reopened(files: MemoryFiles, high_watermark: int, *, clean: bool, recovery_point: int = 0) -> Log:
    return Log.open(
        files, DIRECTORY, NAME, TOPIC_ID, SETTINGS,
        now=NOW, clean=clean, recovery_point=recovery_point, high_watermark=high_watermark,
    )  # fmt: skip


@settings(max_examples=examples(60), deadline=None)
@given(STEPS, PERCENT, st.booleans(), st.booleans())
def test_a_start_knows_of_transactions_what_the_batches_say(
    steps: list[tuple[int, str]], committed_percent: int, flushes: bool, clean: bool
) -> None:
    files = MemoryFiles()
    log = written(files, steps)
    log.commit_to(part_of(log, committed_percent))
    assert known_by(log) == known_from_batches(log)
    high_watermark = log.committed
    if flushes:
        log.flush()
    recovery_point = log.recovery_checkpoint
    log.close(clean=clean)
    if not clean:
        files.kill()
    log = reopened(files, high_watermark, clean=clean, recovery_point=recovery_point)
    assert known_by(log) == known_from_batches(log)
    log.commit_to(log.next)
    assert known_by(log) == known_from_batches(log)


@settings(max_examples=examples(60), deadline=None)
@given(STEPS, PERCENT, PERCENT)
def test_a_cut_leaves_what_the_batches_before_it_say(
    steps: list[tuple[int, str]], committed_percent: int, left_percent: int
) -> None:
    log = written(MemoryFiles(), steps)
    log.commit_to(part_of(log, committed_percent))
    log.truncate(part_of(log, left_percent), now=NOW)
    assert known_by(log) == known_from_batches(log)


@settings(max_examples=examples(60), deadline=None)
@given(STEPS, st.data())
def test_a_follower_knows_what_its_leader_knows(steps: list[tuple[int, str]], draw: st.DataObject) -> None:
    leader = written(MemoryFiles(), steps)
    files = MemoryFiles()
    follower = Log.create(files, DIRECTORY, NAME, TOPIC_ID, SETTINGS, now=NOW)
    data = [bytes(each) for _, each in batches_of(leader)]
    while data:
        some = draw.draw(st.integers(1, len(data)))
        follower.append_exact(b"".join(data[:some]), now=NOW)
        del data[:some]
        if draw.draw(st.integers(0, 3)) == 0:
            follower.roll(NOW)
    high_watermark = Offset(draw.draw(st.integers(0, leader.next)))
    for log in (leader, follower):
        log.commit_to(high_watermark)
    ours, theirs = known_by(follower), known_by(leader)
    assert ours == theirs


def test_a_transaction_whose_marker_is_not_committed_holds_readers_back_after_a_start() -> None:
    files = MemoryFiles()
    log = written(files, [(1, "data"), (1, "commit"), (2, "plain")])
    log.roll(NOW)
    log.commit_to(Offset(2))
    assert log.last_stable == 0
    log.close()
    log = reopened(files, 2, clean=True)
    assert log.last_stable == 0, "the snapshot at the end says that nothing is open"
    log.commit_to(Offset(3))
    assert log.last_stable == 3


def test_a_marker_that_is_cut_off_leaves_its_transaction_open() -> None:
    log = written(MemoryFiles(), [(1, "data"), (1, "abort"), (2, "plain")])
    log.commit_to(Offset(2))
    assert log.aborted(0, 3) == [(1, 0)]
    log.truncate(Offset(2), now=NOW)
    assert (log.producers.is_open(1, 0), log.last_stable, log.aborted(0, 2)) == (True, 0, [])


def read_from(log: Log, offset: int, max_bytes: int) -> list[tuple[int, bytes | None]]:
    """As a client does that reads committed records, fetch by fetch, from `offset` to the last stable one."""
    found: list[tuple[int, bytes | None]] = []
    while True:
        read = log.read(offset, max_bytes=max_bytes, limit=log.last_stable, at_least_one=True)
        if not read.size:
            return found
        data = b"".join(span.read() for span in read.spans)
        pending = sorted((first, producer_id) for producer_id, first in log.aborted(offset, read.end))
        aborted: set[int] = set()
        for at, header in scan_batches(data):
            while pending and pending[0][0] <= header.last_offset:
                aborted.add(pending.pop(0)[1])
            if header.attributes & CONTROL:
                aborted.discard(header.producer_id)
            elif not header.attributes & TRANSACTIONAL or header.producer_id not in aborted:
                records = read_records(data[at : at + header.size])
                found += [(record.offset, record.value) for record in records if record.offset >= offset]
        offset = read.end


def committed_in(log: Log) -> list[int]:
    """The offsets of records that are decided and not aborted, worked out from all batches."""
    kept: list[int] = []
    open_: dict[int, list[int]] = {}
    for header, data in batches_of(log):
        offsets = list(range(header.base_offset, header.last_offset + 1))
        if header.attributes & CONTROL:
            said = read_marker(header, data)
            assert said is not None
            decided = open_.pop(header.producer_id, [])
            kept += [] if said.aborts else decided
        elif header.attributes & TRANSACTIONAL:
            open_.setdefault(header.producer_id, []).extend(offsets)
        else:
            kept += offsets
    return sorted(offset for offset in kept if offset < log.last_stable)


@settings(max_examples=examples(80), deadline=None)
@given(MIXED, st.integers(50, 100), PERCENT, st.sampled_from([1, 200, 1_000]), st.booleans())
def test_a_reader_sees_exactly_the_committed_records_from_any_offset_and_with_any_fetch_size(
    steps: list[tuple[int, str]], committed_percent: int, start_percent: int, max_bytes: int, restarts: bool
) -> None:
    files = MemoryFiles()
    log = written(files, steps)
    log.commit_to(part_of(log, committed_percent))
    if restarts:
        high_watermark = log.committed
        log.close()
        log = reopened(files, high_watermark, clean=True)
    start = log.last_stable * start_percent // 100
    seen = [offset for offset, _ in read_from(log, start, max_bytes)]
    assert seen == [offset for offset in committed_in(log) if offset >= start]
    if restarts:
        assert log.aborted(0, log.next) == [(each.producer_id, each.first) for each in known_from_batches(log).aborted]
