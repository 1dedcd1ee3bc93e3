"""Logs after years: offsets beyond 31 and 53 bits, gaps that no segment spans, sequences at their end, odd times."""

from __future__ import annotations

import pytest

from penstock.kernels import scan_batches
from penstock.model.errors import OFFSET_OUT_OF_RANGE, OUT_OF_ORDER_SEQUENCE_NUMBER, Refused
from penstock.model.ids import Epoch, Millis, Offset, TopicPartition, Uuid
from penstock.storage.log import Log
from penstock.storage.settings import PlainLogSettings
from penstock.testing.memory_files import MemoryFiles
from tests.unit.storage.batches import batch, header_of

DIRECTORY = "/data/orders-0"
NOW = Millis(1_700_000_000_000)
SMALL = PlainLogSettings(segment_bytes=2_000, index_interval_bytes=100, file_delete_delay_ms=0)
SEQUENCE_END = 1 << 31
EPOCH = Epoch((1 << 31) - 2)
STARTS = [(1 << 31) - 1_000, (1 << 53) - 1_000, (1 << 63) - 20_000_000_000]


def new_log(files: MemoryFiles, start: int, settings: PlainLogSettings = SMALL) -> Log:
    log = Log.create(files, DIRECTORY, TopicPartition("orders", 0), Uuid(b"\x07" * 16), settings, now=NOW)
    log.truncate_fully(Offset(start), now=NOW)
    return log


def opened(files: MemoryFiles, log: Log, *, clean: bool, settings: PlainLogSettings = SMALL) -> Log:
    """The same log in the next life of its broker."""
    log.flush()
    log.close(clean)
    return Log.open(
        files, DIRECTORY, log.name, log.topic_id, settings, now=NOW, clean=clean, log_start=log.log_start,
        high_watermark=log.next,
    )  # fmt: skip


def produce(log: Log, data: bytearray) -> int:
    return log.append(data, header_of(data), epoch=EPOCH, now=NOW).base


def bases(log: Log, start: int) -> list[int]:
    """The base offsets of everything from `start` on, as a reader gets it."""
    found: list[int] = []
    while start < log.written:
        read = log.read(start, max_bytes=700, limit=log.written, at_least_one=True)
        found += [header.base_offset for span in read.spans for _, header in scan_batches(span.read())]
        start = read.end
    return found


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("start", STARTS)
def test_a_log_that_begins_late_is_written_read_and_opened_again(start: int, clean: bool) -> None:
    files = MemoryFiles()
    log = new_log(files, start)
    made = [produce(log, batch(3, timestamp=NOW + 10 * number)) for number in range(700)]
    assert made == list(range(start, start + 2_100, 3))
    assert len(log.segments) > 10
    for _ in range(2):
        log.commit_to(log.next)
        assert (log.log_start, log.next, log.epochs.end_of(EPOCH)) == (start, start + 2_100, (EPOCH, start + 2_100))
        assert bases(log, start) == made
        assert bases(log, start + 1_001) == made[333:]
        assert log.offset_for_time(NOW + 3_000, log.next) == (NOW + 3_000, start + 900)
        assert log.max_timestamp() == (NOW + 6_992, start + 2_099)
        log = opened(files, log, clean=clean)
    log.truncate(Offset(start + 1_050), now=NOW)
    assert produce(log, batch(1)) == start + 1_050
    with pytest.raises(Refused) as refused:
        log.advance_start(Offset((1 << 63) - 1))
    assert refused.value.error is OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("start", [0, *STARTS])
def test_gaps_that_no_segment_spans_begin_another_one(start: int, clean: bool) -> None:
    """What compaction leaves of a long log, as a follower copies it."""
    steps = (0, (1 << 31) - 1, 1 << 31, (1 << 31) + 1, (1 << 32) + 5)
    given, base = [], start
    for step in steps:
        base += step
        given.append(base)
    files = MemoryFiles()
    log = new_log(files, start)
    log.append_exact(b"".join(bytes(batch(1, base=base, epoch=EPOCH)) for base in given), now=NOW, verify=True)
    for _ in range(2):
        assert bases(log, start) == given
        assert [bases(log, base)[0] for base in given] == given
        assert [bases(log, base + 1)[0] for base in given[:-1]] == given[1:]
        assert all(segment.end() - segment.base <= 1 << 31 for segment in log.segments)
        log = opened(files, log, clean=clean)


@pytest.mark.parametrize("clean", [True, False])
def test_an_empty_segment_far_behind_its_first_batch_makes_way(clean: bool) -> None:
    files = MemoryFiles()
    log = new_log(files, 5)
    first = 5 + (1 << 33)
    log.append_exact(bytes(batch(1, base=first, epoch=EPOCH)), now=NOW)
    for _ in range(2):
        assert (bases(log, log.log_start), bases(log, first), log.next) == ([first], [first], first + 1)
        log = opened(files, log, clean=clean)


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("epoch", [0, 32_760, 32_767])
def test_sequences_go_from_their_end_to_zero_and_retries_are_known(clean: bool, epoch: int) -> None:
    files = MemoryFiles()
    log = new_log(files, STARTS[1])
    producer_id = (1 << 53) + 1
    sequence = SEQUENCE_END - 7
    sent = []
    for _ in range(6):
        data = batch(3, producer=(producer_id, epoch, sequence), timestamp=NOW)
        assert log.known_batch(header_of(data)) is None
        sent.append((data, produce(log, data)))
        sequence = (sequence + 3) % SEQUENCE_END
    log = opened(files, log, clean=clean)
    for data, base in sent[1:]:
        ticket = log.known_batch(header_of(data))
        assert ticket is not None, "the last five are remembered"
        assert (ticket.base, ticket.end) == (base, base + 3)
    follows = batch(1, producer=(producer_id, epoch, sequence))
    assert log.known_batch(header_of(follows)) is None
    skips = batch(1, producer=(producer_id, epoch, sequence + 1))
    with pytest.raises(Refused) as refused:
        log.known_batch(header_of(skips))
    assert refused.value.error is OUT_OF_ORDER_SEQUENCE_NUMBER


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize(
    ("timestamp", "expires"),
    [
        (-1, False),  # none: the file's own time counts
        (0, True),
        (NOW - 10 * 365 * 86_400_000, True),
        (NOW + 10 * 365 * 86_400_000, False),
        (9_223_372_036_855, False),  # the first that nanoseconds cannot count
        (253_402_300_800_000, False),
        ((1 << 63) - 1, False),
    ],
)
def test_times_of_any_century_are_indexed_found_and_kept_as_long_as_they_say(
    timestamp: int, expires: bool, clean: bool
) -> None:
    settings = PlainLogSettings(segment_bytes=300, index_interval_bytes=0, segment_ms=(1 << 63) - 1)
    files = MemoryFiles()
    files.clock = lambda: NOW
    log = new_log(files, STARTS[0], settings)
    for _ in range(8):
        data = batch(1, timestamp=timestamp)
        produce(log, data)
    log.commit_to(log.next)
    log = opened(files, log, clean=clean, settings=settings)
    if timestamp >= 0:
        assert log.offset_for_time(timestamp, log.next) == (timestamp, STARTS[0])
        assert log.max_timestamp() == (timestamp, STARTS[0])
        if timestamp < (1 << 63) - 1:
            assert log.offset_for_time(timestamp + 1, log.next) is None
    else:
        assert log.offset_for_time(0, log.next) is None
        assert log.max_timestamp() is None
    log.retain(NOW)
    assert (log.log_start == log.next) == expires
