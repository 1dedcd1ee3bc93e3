"""Cleaning passes over hand-made logs: keys, tombstones, producers, transactions, files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from penstock.kernels import BatchHeader, Record, retime, scan_batches
from penstock.model.errors import Corrupt
from penstock.model.ids import Millis
from penstock.protocol.batch import (
    CODECS,
    DELETE_HORIZON,
    LOG_APPEND_TIME,
    build_batch,
    delete_horizon_of,
    read_records,
)
from penstock.protocol.control import Marker, marker_batch
from penstock.storage.compaction import CleanedSegment, CleanJob, CleanResult, LastOfProducer, SegmentFacts, clean
from penstock.storage.names import CLEANED, SEGMENT_SUFFIXES, segment_file
from penstock.storage.segment import Segment
from penstock.storage.transaction_index import AbortedTransaction
from penstock.testing.memory_files import MemoryFiles

DIRECTORY = "/data/t-0"
NOW = 1_000_000
RETENTION_MS = 5_000

Pair = tuple[str, str | None]


class World:
    """A log of hand-made sealed segments, with passes that swap their result in as the log would."""

    def __init__(self) -> None:
        self.files = MemoryFiles()
        self.files.makedirs(DIRECTORY)
        self.segments: list[SegmentFacts] = []
        self.next = 0
        self.aborted: list[AbortedTransaction] = []

    def batch(self, *pairs: Pair, **more: Any) -> bytes:
        """A batch at the end of the log; its records are one millisecond apart."""
        records = [
            Record(
                self.next + i, 1_000 + self.next + i, key.encode() or None, None if value is None else value.encode()
            )
            for i, (key, value) in enumerate(pairs)
        ]
        made = build_batch(records, base_offset=self.next, leader_epoch=3, **more)
        self.next += len(pairs)
        return made

    def marker(self, producer_id: int, committed: bool, first: int = 0) -> bytes:
        made = marker_batch(
            Marker(committed, 0),
            base_offset=self.next,
            leader_epoch=3,
            timestamp=1_000 + self.next,
            producer_id=producer_id,
            producer_epoch=0,
        )
        if not committed:
            self.aborted.append(AbortedTransaction(producer_id, first, self.next, self.next))
        self.next += 1
        return made

    def segment(self, *batches: bytes, base: int | None = None, mtime_ms: int = 77_000) -> None:
        first = scan_batches(batches[0])[0][1].base_offset if base is None else base
        segment = Segment.create(self.files, DIRECTORY, first, now=0)
        for batch in batches:
            ((_, header),) = scan_batches(batch)
            segment.append(batch, header.last_offset, header.max_timestamp, 0)
            for aborted in self.aborted:
                if aborted.last == header.last_offset:
                    segment.aborted.append(aborted)
        segment.seal()
        segment.close()
        for suffix in SEGMENT_SUFFIXES[:3]:
            self.files.set_mtime_ms(f"{DIRECTORY}/{segment_file(first, suffix)}", Millis(mtime_ms))
        self.segments.append(SegmentFacts(first, segment.size))

    def job(self, **changes: Any) -> CleanJob:
        settings: dict[str, Any] = {
            "segments": self.segments,
            "first_dirty": 0,
            "clean_end": self.next,
            "now_ms": NOW,
            "delete_retention_ms": RETENTION_MS,
            "segment_bytes": 1 << 20,
            "segment_index_bytes": 1 << 20,
            "index_interval_bytes": 0,
            "aborted": self.aborted,
        }
        return CleanJob(**{**settings, **changes})

    def clean(self, **changes: Any) -> CleanResult:
        """One pass, through JSON like in the helper process, and the swap."""
        job = CleanJob.from_json(json.loads(json.dumps(self.job(**changes).to_json())))
        result = clean(self.files, DIRECTORY, job)
        assert CleanResult.from_json(json.loads(json.dumps(result.to_json()))) == result
        self.swap(result)
        return result

    def swap(self, result: CleanResult) -> None:
        gone = {base for made in result.segments for base in made.replaces}
        for base in gone:
            for suffix in SEGMENT_SUFFIXES:
                if self.files.exists(path := f"{DIRECTORY}/{segment_file(base, suffix)}"):
                    self.files.remove(path)
        for made in result.segments:
            for suffix in SEGMENT_SUFFIXES:
                path = f"{DIRECTORY}/{segment_file(made.base, suffix)}"
                if self.files.exists(path + CLEANED):
                    self.files.rename(path + CLEANED, path)
        new = [SegmentFacts(made.base, made.size) for made in result.segments]
        self.segments = new + [old for old in self.segments if old.base not in gone]
        self.aborted = [each for base, _ in self.segments for each in self.aborted_of(base)]

    def aborted_of(self, base: int) -> list[AbortedTransaction]:
        present = self.files.exists(f"{DIRECTORY}/{segment_file(base, '.txnindex')}")
        segment = Segment(self.files, DIRECTORY, base, size=0, created_ms=0, has_aborted=present)
        return segment.aborted.entries()

    def batches(self) -> list[tuple[BatchHeader, bytes]]:
        found = []
        for base, size in self.segments:
            data = self.files.read(f"{DIRECTORY}/{segment_file(base, '.log')}")
            assert len(data) == size
            found += [(header, data[at : at + header.size]) for at, header in scan_batches(data)]
        return found

    def headers(self) -> list[BatchHeader]:
        return [header for header, _ in self.batches()]

    def records(self) -> list[tuple[int, str, str | None]]:
        return [
            (record.offset, (record.key or b"").decode(), None if record.value is None else record.value.decode())
            for _, batch in self.batches()
            for record in read_records(batch)
        ]


@pytest.fixture
def world() -> World:
    return World()


# --- keys ---


@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
def test_the_latest_value_of_each_key_survives_at_its_offset(world: World, codec: int) -> None:
    world.segment(world.batch(("a", "1"), ("b", "1"), ("a", "2"), codec=codec), world.batch(("c", "1"), codec=codec))
    world.segment(world.batch(("b", "2"), ("d", "1"), codec=codec))
    result = world.clean()
    assert world.records() == [(2, "a", "2"), (3, "c", "1"), (4, "b", "2"), (5, "d", "1")]
    assert result.segments == [CleanedSegment(0, world.segments[0].size, [0, 4])]
    assert (result.first_dirty, result.full, result.keys) == (6, False, 4)
    assert (result.records_before, result.records_after) == (6, 4)
    assert result.bytes_after == world.segments[0].size < result.bytes_before
    assert {header.codec for header in world.headers()} == {codec}


def test_what_stays_of_a_batch_keeps_its_header(world: World) -> None:
    world.segment(
        world.batch(("a", "1"), ("b", "1"), ("a", "2"), producer_id=9, producer_epoch=4, base_sequence=17),
        world.batch(("b", "2")),
    )
    world.clean()
    first = world.headers()[0]
    assert (first.base_offset, first.last_offset, first.record_count, first.leader_epoch) == (0, 2, 1, 3)
    assert (first.producer_id, first.producer_epoch, first.base_sequence) == (9, 4, 17)
    assert (first.base_timestamp, first.max_timestamp) == (1_002, 1_002)
    assert read_records(world.batches()[0][1])[0].timestamp == 1_002


def test_a_batch_that_loses_nothing_stays_byte_for_byte(world: World) -> None:
    kept = world.batch(("a", "1"), ("b", "1"), codec=CODECS["lz4"])
    world.segment(kept, world.batch(("c", "1")), world.batch(("c", "2")))
    world.clean()
    assert world.batches()[0][1] == kept


def test_log_append_time_stays_the_time_of_every_record(world: World) -> None:
    world.segment(world.batch(("a", "1"), ("b", "1"), ("c", "1"), timestamp_type=1), world.batch(("a", "2")))
    world.clean()
    header, batch = world.batches()[0]
    assert header.attributes & LOG_APPEND_TIME
    assert [record.timestamp for record in read_records(batch)] == [1_002, 1_002]


def test_records_without_a_key_are_dropped_and_counted(world: World) -> None:
    world.segment(world.batch(("a", "1"), ("", "lost"), ("b", "1")))
    assert world.clean().keyless_dropped == 1
    assert world.records() == [(0, "a", "1"), (2, "b", "1")]


def test_a_second_pass_starts_where_the_first_one_ended(world: World) -> None:
    world.segment(world.batch(("a", "1"), ("b", "1")))
    first = world.clean()
    world.segment(world.batch(("a", "2")))
    second = world.clean(first_dirty=first.first_dirty)
    assert second.keys == 1
    assert world.records() == [(1, "b", "1"), (2, "a", "2")]


def test_nothing_at_or_above_the_clean_end_is_touched(world: World) -> None:
    world.segment(world.batch(("a", "1"), ("a", "2")))
    middle = world.batch(("a", "3"))
    above = [world.batch(("a", "4"), ("x", None)), world.batch(("a", "5"))]
    world.segment(middle, *above)
    result = world.clean(clean_end=3)
    assert world.records() == [(2, "a", "3"), (3, "a", "4"), (4, "x", None), (5, "a", "5")]
    assert result.first_dirty == 3
    assert [batch for _, batch in world.batches()][1:] == above


def test_a_full_map_ends_the_pass_early_and_passes_catch_up(world: World) -> None:
    for round_ in range(3):
        world.segment(*(world.batch((f"k{key}", str(round_))) for key in range(8)))
    first_dirty, passes = 0, 0
    while first_dirty < world.next:
        result = world.clean(first_dirty=first_dirty, dedupe_buffer_bytes=24 * 5, load_factor=0.9)
        assert result.first_dirty > first_dirty
        assert result.full is (result.first_dirty < world.next)
        first_dirty, passes = result.first_dirty, passes + 1
    assert passes > 3
    assert world.records() == [(16 + key, f"k{key}", "2") for key in range(8)]


def test_a_clean_log_is_left_alone(world: World) -> None:
    world.segment(world.batch(("a", "1")))
    result = world.clean(first_dirty=1)
    assert (result.segments, result.first_dirty, result.bytes_before) == ([], 1, 0)


# --- tombstones ---


def test_a_tombstone_gets_a_horizon_and_goes_after_it(world: World) -> None:
    world.segment(world.batch(("a", "1"), ("b", "1")), world.batch(("a", None), ("c", "1")))
    world.clean()
    assert world.records() == [(1, "b", "1"), (2, "a", None), (3, "c", "1")]
    marked = world.headers()[1]
    assert marked.attributes & DELETE_HORIZON
    assert delete_horizon_of(marked) == NOW + RETENTION_MS
    assert [record.timestamp for record in read_records(world.batches()[1][1])] == [1_002, 1_003]
    for later_ms, stays in ((RETENTION_MS - 1, True), (RETENTION_MS, False)):
        world.segment(world.batch(("z", str(later_ms))))
        world.clean(first_dirty=world.next - 1, now_ms=NOW + later_ms)
        assert ((2, "a", None) in world.records()) is stays
    rest = next(header for header in world.headers() if header.last_offset == 3)
    assert delete_horizon_of(rest) == NOW + RETENTION_MS  # it keeps the horizon that it was given first


def test_a_tombstone_is_as_good_as_a_value_against_older_records(world: World) -> None:
    world.segment(world.batch(("a", "1")), world.batch(("a", None)), world.batch(("a", "2")))
    world.clean()
    assert world.records() == [(2, "a", "2")]


# --- producers ---


def test_the_last_batch_of_an_active_producer_stays_as_a_header(world: World) -> None:
    world.segment(
        world.batch(("a", "1"), ("a", "2"), producer_id=7, producer_epoch=1, base_sequence=4, codec=CODECS["gzip"]),
        world.batch(("a", "3"), producer_id=8, producer_epoch=0, base_sequence=0),
        world.batch(("a", "4")),
    )
    world.clean(producers=[LastOfProducer(7, 1, 1), LastOfProducer(8, 55, 0)])
    empty, last = world.headers()
    assert (empty.base_offset, empty.last_offset, empty.size, empty.record_count, empty.codec) == (0, 1, 61, 0, 0)
    assert (empty.producer_id, empty.producer_epoch, empty.base_sequence) == (7, 1, 4)
    assert (empty.base_timestamp, empty.max_timestamp) == (-1, 1_001)
    assert last.base_offset == 3
    world.segment(world.batch(("b", "1")))
    world.clean(first_dirty=4, producers=[])
    assert [header.base_offset for header in world.headers()] == [3, 4]


def test_the_last_batch_of_a_pass_stays_as_a_header_until_something_follows_it(world: World) -> None:
    world.segment(world.batch(("a", "1")), world.batch(("b", None)))
    for now_ms in (NOW, NOW + RETENTION_MS):
        world.clean(now_ms=now_ms)
    assert [(header.base_offset, header.record_count) for header in world.headers()] == [(0, 1), (1, 0)]
    world.segment(world.batch(("c", "1")))
    world.clean(now_ms=NOW + RETENTION_MS)
    assert [(header.base_offset, header.record_count) for header in world.headers()] == [(0, 1), (2, 1)]


# --- transactions ---


def transactional(producer_id: int, sequence: int = 0) -> dict[str, Any]:
    return {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": sequence, "transactional": True}


def test_aborted_records_go_at_once_and_replace_nothing(world: World) -> None:
    world.segment(
        world.batch(("a", "good")),
        world.batch(("a", "void"), ("b", "void"), **transactional(5)),
        world.marker(5, committed=False, first=1),
    )
    world.clean()
    assert [entry for entry in world.records() if entry[1] in "ab"] == [(0, "a", "good")]
    assert world.headers()[-1].last_offset == 3, "the marker stays while its transaction was just there"


def test_an_abort_marker_goes_after_its_data_and_its_horizon(world: World) -> None:
    world.segment(
        world.batch(("a", "void"), **transactional(5)),
        world.marker(5, committed=False, first=0),
        world.batch(("x", "1")),
    )
    world.clean()
    assert world.aborted == [AbortedTransaction(5, 0, 1, 1)], "readers must still be told of it"
    for now_ms, marker_stays in ((NOW + 1, True), (NOW + RETENTION_MS, True), (NOW + 1 + RETENTION_MS, False)):
        world.segment(world.batch(("z", str(now_ms))))
        world.clean(first_dirty=world.next - 1, now_ms=now_ms)
        assert (1 in {header.base_offset for header in world.headers()}) is marker_stays
        assert world.aborted == []


def test_a_commit_marker_stays_as_long_as_records_of_its_transaction(world: World) -> None:
    world.segment(world.batch(("a", "1"), **transactional(5)), world.marker(5, committed=True))
    world.clean()
    assert [header.base_offset for header in world.headers()] == [0, 1]
    world.segment(world.batch(("a", "2")))
    world.clean(first_dirty=2)
    assert [header.base_offset for header in world.headers()] == [1, 2]
    for now_ms, bases in ((NOW + 1, [1, 2, 3]), (NOW + 1 + RETENTION_MS, [2, 3, 4])):
        world.segment(world.batch((f"z{now_ms}", "")))
        world.clean(first_dirty=world.next - 1, now_ms=now_ms)
        assert [header.base_offset for header in world.headers()] == bases


def test_the_marker_that_holds_a_producers_epoch_stays(world: World) -> None:
    world.segment(world.marker(5, committed=True), world.batch(("x", "1")))
    last_marker = [LastOfProducer(5, -1, 0)]
    for now_ms in (NOW, NOW + RETENTION_MS, NOW + 2 * RETENTION_MS):
        world.clean(now_ms=now_ms, producers=last_marker)
    empty = world.headers()[0]
    assert (empty.base_offset, empty.producer_id, empty.record_count) == (0, 5, 0)
    world.clean(now_ms=NOW + 2 * RETENTION_MS, producers=[])
    assert [header.base_offset for header in world.headers()] == [1]


def test_an_aborted_transaction_whose_marker_lies_above_the_clean_end_stays_known(world: World) -> None:
    world.segment(world.batch(("a", "good")), world.batch(("a", "void"), **transactional(5)))
    world.segment(world.batch(("b", "1")), world.batch(("c", "1")), world.marker(5, committed=False, first=1))
    world.clean(clean_end=3)
    assert world.records()[:1] == [(0, "a", "good")]
    assert world.aborted == [AbortedTransaction(5, 1, 4, 4)]


def test_an_abort_marker_at_the_end_of_a_pass_stays_as_a_header(world: World) -> None:
    world.segment(world.batch(("a", "void"), **transactional(5)), world.marker(5, committed=False, first=0))
    for now_ms in (NOW, NOW + 1, NOW + 1 + RETENTION_MS):
        world.clean(now_ms=now_ms)
    (empty,) = world.headers()
    assert (empty.base_offset, empty.record_count, empty.producer_id) == (1, 0, 5)


def test_transactions_of_one_producer_are_told_apart_across_passes(world: World) -> None:
    world.segment(world.batch(("a", "void"), **transactional(5)), world.marker(5, committed=False, first=0))
    first = world.clean()
    world.segment(world.batch(("a", "1"), **transactional(5, 1)), world.marker(5, committed=True))
    world.clean(first_dirty=first.first_dirty)
    assert [entry for entry in world.records() if entry[1] == "a"] == [(2, "a", "1")]


# --- files ---


def test_small_segments_become_one_and_large_ones_stay_apart(world: World) -> None:
    for key in "abcd":
        world.segment(world.batch((key, "x" * 100)))
    size = world.segments[0].size
    result = world.clean(segment_bytes=2 * size)
    assert [made.replaces for made in result.segments] == [[0, 1], [2, 3]]


def test_offsets_that_do_not_fit_one_index_stay_apart(world: World) -> None:
    world.segment(world.batch(("a", "1")))
    world.next = 1 << 31
    world.segment(world.batch(("b", "1")))
    result = world.clean()
    assert [made.replaces for made in result.segments] == [[0], [1 << 31]]


def test_a_segment_that_loses_everything_becomes_an_empty_one(world: World) -> None:
    world.segment(world.batch(("a", "1")))
    world.segment(world.batch(("a", "2" * 50)))
    result = world.clean(segment_bytes=120)
    assert (result.segments[0].base, result.segments[0].size) == (0, 0)
    assert world.records() == [(1, "a", "2" * 50)]


def test_the_age_of_the_last_segment_is_kept(world: World) -> None:
    world.segment(world.batch(("a", "1")), mtime_ms=50_000)
    world.segment(world.batch(("b", "1")), mtime_ms=60_000)
    world.clean()
    for suffix in SEGMENT_SUFFIXES[:3]:
        assert world.files.mtime_ms(f"{DIRECTORY}/{segment_file(0, suffix)}") == 60_000


def test_the_indexes_are_those_of_the_new_batches(world: World) -> None:
    for key in "abc":
        world.segment(world.batch((key, "1" * 50)), world.batch(("same", "1")))
    world.clean(index_interval_bytes=10)
    segment = Segment(world.files, DIRECTORY, 0, size=world.segments[0].size, created_ms=0, has_aborted=False)
    assert not segment.indexes_doubtful()
    positions = {}
    at = 0
    for header in world.headers():
        positions[header.last_offset] = at
        at += header.size
    assert len(segment.offsets) == len(positions) - 1
    for offset, position in list(positions.items())[1:]:
        assert segment.offsets.lookup(offset) == (offset, position)
    assert segment.latest() == (1_005, 5)
    assert segment.end() == 6


def test_cleaned_files_survive_a_power_cut(world: World) -> None:
    world.segment(world.batch(("a", "1")), world.batch(("a", "2"), **transactional(5)))
    world.segment(world.marker(5, committed=False, first=1))
    for base, _ in world.segments:
        for suffix in SEGMENT_SUFFIXES:
            if world.files.exists(path := f"{DIRECTORY}/{segment_file(base, suffix)}"):
                world.files.open(path).sync()
    for path in ("/", "/data", DIRECTORY):
        world.files.sync_dir(path)
    result = clean(world.files, DIRECTORY, world.job())
    before = {name: world.files.read(f"{DIRECTORY}/{name}") for name in world.files.listdir(DIRECTORY)}
    world.files.crash()
    assert {name: world.files.read(f"{DIRECTORY}/{name}") for name in world.files.listdir(DIRECTORY)} == before
    world.swap(result)
    assert world.aborted == [AbortedTransaction(5, 1, 2, 2)]


def names_of(files: MemoryFiles) -> list[str]:
    return [name for name in files.listdir(DIRECTORY) if name.endswith(CLEANED)]


def test_a_flipped_bit_stops_the_pass_and_leaves_nothing_behind(world: World) -> None:
    world.segment(world.batch(("a", "1" * 100)))
    world.segment(world.batch(("b", "1" * 100)))
    path = f"{DIRECTORY}/{segment_file(1, '.log')}"
    world.files.open(path).pwritev((b"\xff",), 120)
    with pytest.raises(Corrupt, match="checksum") as stopped:
        clean(world.files, DIRECTORY, world.job(segment_bytes=200))
    assert stopped.value.path == path
    assert names_of(world.files) == []


def test_records_that_do_not_parse_stop_the_pass(world: World) -> None:
    good = world.batch(("a", "1"), codec=CODECS["zstd"])
    broken = bytearray(good)
    broken[61:65] = b"\0\0\0\0"
    retime(broken, 0, len(broken), CODECS["zstd"], 1_000)
    world.segment(bytes(broken))
    with pytest.raises(Corrupt, match="zstd"):
        clean(world.files, DIRECTORY, world.job())


def test_a_torn_segment_stops_the_pass(world: World) -> None:
    world.segment(world.batch(("a", "1")))
    base, size = world.segments[0]
    world.files.open(f"{DIRECTORY}/{segment_file(base, '.log')}").pwritev((b"abc",), size)
    with pytest.raises(Corrupt, match="no whole batch"):
        clean(world.files, DIRECTORY, world.job(segments=[SegmentFacts(base, size + 3)]))


def test_leftovers_of_a_killed_pass_are_overwritten(world: World) -> None:
    world.segment(world.batch(("a", "1")), world.batch(("a", "2")))
    for suffix in SEGMENT_SUFFIXES:
        world.files.open(f"{DIRECTORY}/{segment_file(0, suffix)}{CLEANED}", create=True).pwritev((b"x" * 999,), 0)
    world.clean()
    assert world.records() == [(1, "a", "2")]
    assert world.aborted == []


def test_batches_larger_than_a_chunk_are_cleaned(world: World) -> None:
    world.segment(world.batch(("a", "1" * 1_500_000), ("b", "2" * 1_500_000)), world.batch(("a", "3")))
    world.clean()
    assert [(offset, key, value and len(value)) for offset, key, value in world.records()] == [
        (1, "b", 1_500_000),
        (2, "a", 1),
    ]


def test_a_pass_reads_no_more_segments_than_it_was_told(world: World) -> None:
    world.segment(world.batch(("a", "1")))
    world.segment(world.batch(("a", "2")))
    told: Sequence[SegmentFacts] = world.segments[:1]
    result = clean(world.files, DIRECTORY, world.job(segments=list(told), clean_end=1))
    assert result.first_dirty == 1
    assert [made.replaces for made in result.segments] == [[0]]


@pytest.mark.parametrize("timestamp", [-1, 0, -5, 2_000_000_000_000, (1 << 62) - 1, -(1 << 62)])
def test_tombstones_that_stay_for_ever_are_kept_whatever_the_times_of_their_batch(world: World, timestamp: int) -> None:
    rows = [
        Record(world.next + 0, timestamp, b"a", b"1"),
        Record(world.next + 1, timestamp, b"a", None),
        Record(world.next + 2, timestamp + 1, b"b", b"2"),
    ]
    world.next += len(rows)
    world.segment(bytes(build_batch(rows, base_offset=0, leader_epoch=3)))
    world.clean(delete_retention_ms=(1 << 63) - 1)
    assert world.records() == [(1, "a", None), (2, "b", "2")]
    [(header, batch)] = world.batches()
    assert delete_horizon_of(header) == (1 << 63) - 1
    assert [record.timestamp for record in read_records(batch)] == [timestamp, timestamp + 1]
    world.clean(delete_retention_ms=(1 << 63) - 1)
    assert world.records() == [(1, "a", None), (2, "b", "2")]
