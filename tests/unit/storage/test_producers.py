"""Idempotence and transactions, with hand-made batches."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.model.errors import (
    INVALID_PRODUCER_EPOCH,
    INVALID_TXN_STATE,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    TRANSACTION_COORDINATOR_FENCED,
    ErrorCode,
    Refused,
)
from penstock.model.ids import Epoch, Millis, Offset, TopicPartition, Uuid
from penstock.storage.log import Log
from penstock.storage.producers import advance_sequence, retreat_sequence
from penstock.storage.settings import PlainLogSettings
from penstock.storage.tickets import Ticket
from penstock.testing.memory_files import MemoryFiles
from tests.properties import examples

from .batches import TRANSACTIONAL, batch, header_of, marker

NAME = TopicPartition("orders", 0)
TOPIC_ID = Uuid(b"\x07" * 16)
DIRECTORY = "/data/orders-0"
NOW = Millis(2_000)
SETTINGS = PlainLogSettings(segment_bytes=1_000)
MAX = (1 << 31) - 1


def new_log(files: MemoryFiles | None = None) -> Log:
    return Log.create(files or MemoryFiles(), DIRECTORY, NAME, TOPIC_ID, SETTINGS, now=NOW)


def append(log: Log, data: bytearray) -> Ticket:
    return log.append(data, header_of(data), epoch=Epoch(0), now=NOW)


def produce(
    log: Log, sequence: int, count: int = 1, *, producer: int = 7, epoch: int = 0, attributes: int = 0
) -> Ticket:
    """As a leader does: check, and append unless it is a duplicate."""
    data = batch(count, producer=(producer, epoch, sequence), attributes=attributes)
    header = header_of(data)
    if attributes & TRANSACTIONAL:
        return log.producers.check_transactional(header, None, verifies=False) or append(log, data)
    return log.producers.check(header) or append(log, data)


def refused(error: ErrorCode, log: Log, sequence: int, **how: int) -> None:
    with pytest.raises(Refused) as refusal:
        produce(log, sequence, **how)
    assert refusal.value.error is error


def test_sequences_go_up_by_the_number_of_records() -> None:
    log = new_log()
    assert produce(log, 0, 3).base == 0
    assert produce(log, 3, 2).base == 3
    refused(OUT_OF_ORDER_SEQUENCE_NUMBER, log, 6)
    refused(OUT_OF_ORDER_SEQUENCE_NUMBER, log, 4)
    assert produce(log, 5).base == 5


def test_a_retry_within_the_last_five_batches_gets_its_first_offset_again() -> None:
    log = new_log()
    tickets = [produce(log, 2 * i, 2) for i in range(7)]
    end = log.next
    for i in (2, 3, 4, 5, 6):
        assert produce(log, 2 * i, 2) == tickets[i]
    assert log.next == end
    refused(OUT_OF_ORDER_SEQUENCE_NUMBER, log, 2, count=2)
    refused(OUT_OF_ORDER_SEQUENCE_NUMBER, log, 12, count=1)


def test_sequences_wrap() -> None:
    log = new_log()
    produce(log, MAX - 1, 2)
    assert produce(log, 0).base == 2
    produce(log, 1)
    log = new_log()
    first = produce(log, MAX, 3)
    assert produce(log, MAX, 3) == first
    assert produce(log, 2).base == 3
    assert (advance_sequence(MAX, 1), retreat_sequence(0, 1)) == (0, MAX)


def test_an_old_epoch_is_fenced_and_a_new_one_begins_at_zero() -> None:
    log = new_log()
    produce(log, 0, epoch=3)
    refused(INVALID_PRODUCER_EPOCH, log, 1, epoch=2)
    refused(OUT_OF_ORDER_SEQUENCE_NUMBER, log, 1, epoch=4)
    produce(log, 0, epoch=4)
    refused(INVALID_PRODUCER_EPOCH, log, 1, epoch=3)


def test_an_unknown_producer_may_begin_anywhere() -> None:
    assert produce(new_log(), 1_234).base == 0


def test_a_silent_producer_is_forgotten_but_not_one_with_an_open_transaction() -> None:
    log = new_log()
    produce(log, 0)
    produce(log, 0, producer=8, attributes=TRANSACTIONAL)
    day_later = Millis(1_000 + 86_400_000)
    assert log.producers.expire(Millis(day_later - 1)) == 0
    assert log.producers.expire(day_later) == 1
    assert [producer.producer_id for producer in log.producers.states()] == [8]


def test_a_plain_batch_amid_a_transaction_is_refused() -> None:
    log = new_log()
    produce(log, 0, attributes=TRANSACTIONAL)
    refused(INVALID_TXN_STATE, log, 1)
    produce(log, 1, attributes=TRANSACTIONAL)


def test_the_last_stable_offset_waits_for_the_first_open_transaction() -> None:
    log = new_log()
    produce(log, 0, producer=1)
    produce(log, 0, producer=7, attributes=TRANSACTIONAL)
    produce(log, 0, producer=8, attributes=TRANSACTIONAL)
    assert log.last_stable == 0, "nothing is committed yet"
    log.commit_to(log.next)
    assert (log.committed, log.last_stable) == (3, 1)
    append(log, marker(7, 0, aborts=False))
    assert log.last_stable == 1, "the marker is not replicated yet"
    log.commit_to(log.next)
    assert log.last_stable == 2
    append(log, marker(8, 0, aborts=True))
    log.commit_to(log.next)
    assert log.last_stable == log.committed == 5


def test_aborted_transactions_are_found_by_the_offsets_they_touch() -> None:
    log = new_log()
    for producer in (7, 8, 9):
        produce(log, 0, 2, producer=producer, attributes=TRANSACTIONAL)  # offsets 0-1, 2-3, 4-5
    append(log, marker(8, 0, aborts=True))  # 6
    append(log, marker(7, 0, aborts=False))  # 7
    append(log, marker(9, 0, aborts=True))  # 8
    assert log.aborted(0, 9) == [(8, 2), (9, 4)]
    assert log.aborted(0, 2) == []
    assert log.aborted(0, 3) == [(8, 2)]
    assert log.aborted(7, 9) == [(9, 4)]


def test_aborted_transactions_are_found_across_segments() -> None:
    log = new_log()
    produce(log, 0, producer=8, attributes=TRANSACTIONAL)
    for _ in range(20):
        append(log, batch(value=b"v" * 100))
    append(log, marker(8, 0, aborts=True))
    assert len(log.segments) > 2
    assert log.segments[-1].aborted.present
    assert log.aborted(0, 5) == [(8, 0)]


def test_a_marker_from_an_old_coordinator_is_fenced() -> None:
    log = new_log()
    produce(log, 0, epoch=1, attributes=TRANSACTIONAL)
    append(log, marker(7, 1, aborts=False, coordinator_epoch=5))
    with pytest.raises(Refused) as refusal:
        log.producers.check_marker(7, 1, 4)
    assert refusal.value.error is TRANSACTION_COORDINATOR_FENCED
    with pytest.raises(Refused) as refusal:
        log.producers.check_marker(7, 0, 5)
    assert refusal.value.error is INVALID_PRODUCER_EPOCH
    log.producers.check_marker(7, 1, 5)
    log.producers.check_marker(1_000, 0, 0)


def test_a_marker_with_a_higher_epoch_lets_the_producer_go_on_from_zero() -> None:
    log = new_log()
    produce(log, 0, epoch=1, attributes=TRANSACTIONAL)
    append(log, marker(7, 2, aborts=False))
    refused(INVALID_PRODUCER_EPOCH, log, 1, epoch=1, attributes=TRANSACTIONAL)
    refused(OUT_OF_ORDER_SEQUENCE_NUMBER, log, 1, epoch=2, attributes=TRANSACTIONAL)
    produce(log, 0, epoch=2, attributes=TRANSACTIONAL)


State = tuple[list[tuple[int, int, int, int, int]], int | None]


def state_of(log: Log) -> State:
    """What a snapshot would hold, and the first unstable offset."""
    states = sorted(log.producers.records())
    return [(s.producer_id, s.epoch, s.last_sequence, s.last_offset, s.transaction_first) for s in states], (
        log.last_stable if log.last_stable < log.committed else None
    )


def reopen(files: MemoryFiles, *, clean: bool, recovery_point: int = 0) -> Log:
    log = Log.open(
        files, DIRECTORY, NAME, TOPIC_ID, SETTINGS,
        now=NOW, clean=clean, recovery_point=recovery_point, high_watermark=1 << 40,
    )  # fmt: skip
    log.commit_to(log.next)
    return log


@settings(max_examples=examples(40), deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(1, 3), st.sampled_from(["data", "txn", "commit", "abort"]), st.booleans()), max_size=40
    ),
    st.integers(0, 40),
)
def test_producer_state_and_aborted_lists_are_the_same_after_every_kind_of_start(
    steps: list[tuple[int, str, bool]], cut: int
) -> None:
    files = MemoryFiles()
    log = new_log(files)
    sequences = dict.fromkeys((1, 2, 3), 0)
    in_transaction: set[int] = set()
    for producer, what, flush in steps:
        if what == "data" and producer not in in_transaction:
            produce(log, sequences[producer], producer=producer)
            sequences[producer] += 1
        elif what == "txn":
            produce(log, sequences[producer], producer=producer, attributes=TRANSACTIONAL)
            sequences[producer] += 1
            in_transaction.add(producer)
        elif what in ("commit", "abort") and producer in in_transaction:
            append(log, marker(producer, 0, aborts=what == "abort"))
            in_transaction.discard(producer)
        if flush:
            log.flush()
    log.commit_to(log.next)
    whole, aborted = state_of(log), log.aborted(0, log.next)

    recovery_point = log.recovery_point
    files.kill()
    log = reopen(files, clean=False, recovery_point=recovery_point)
    assert (state_of(log), log.aborted(0, log.next)) == (whole, aborted)
    log.close()
    log = reopen(files, clean=True)
    assert (state_of(log), log.aborted(0, log.next)) == (whole, aborted)

    log.truncate(Offset(min(cut, log.next)), now=NOW)
    after_cut, aborted = state_of(log), log.aborted(0, log.next)
    files.kill()
    log = reopen(files, clean=False, recovery_point=min(recovery_point, cut))
    assert (state_of(log), log.aborted(0, log.next)) == (after_cut, aborted)


@pytest.mark.parametrize("clean", [False, True])
def test_a_producer_is_known_by_a_batch_of_which_only_the_end_is_left(clean: bool) -> None:
    files = MemoryFiles()
    log = new_log(files)
    produce(log, 0, 4)
    log.commit_to(log.next)
    log.advance_start(Offset(2))
    log.close()
    for snapshot in [name for name in files.listdir(DIRECTORY) if name.endswith(".snapshot")]:
        files.remove(f"{DIRECTORY}/{snapshot}")
    log = Log.open(files, DIRECTORY, NAME, TOPIC_ID, SETTINGS, now=NOW, clean=clean, log_start=2)
    assert produce(log, 0, 4).base == 0, "the same batch again"
    assert log.next == 4


def test_a_broken_snapshot_is_replaced_by_an_older_one_and_a_replay() -> None:
    files = MemoryFiles()
    log = new_log(files)
    for sequence in range(40):
        produce(log, sequence)
    whole = state_of(log)
    log.close()
    files.write_atomic(f"{DIRECTORY}/{40:020d}.snapshot", b"broken")
    log = reopen(files, clean=True)
    assert state_of(log) == (whole[0], None)


def test_snapshots_of_segments_that_are_gone_go_too() -> None:
    files = MemoryFiles()
    log = new_log(files)
    for sequence in range(100):
        produce(log, sequence)
    log.commit_to(log.next)
    bases = [segment.base for segment in log.segments]
    assert snapshots(files) == bases[1:]
    log.advance_start(Offset(bases[3]))
    log.retain(NOW)
    assert snapshots(files) == bases[3:]
    log.truncate(Offset(bases[5] + 1), now=NOW)
    assert snapshots(files) == bases[4:6], "the one at the start of the log tells nothing"


def snapshots(files: MemoryFiles) -> list[int]:
    return [int(name[:20]) for name in files.listdir(DIRECTORY) if name.endswith(".snapshot")]
