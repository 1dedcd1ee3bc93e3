"""Who may write into a transaction, and who may end it: guards, epochs and their order."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from penstock.model.errors import (
    INVALID_PRODUCER_EPOCH,
    INVALID_TXN_STATE,
    NONE,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    TRANSACTION_COORDINATOR_FENCED,
    ErrorCode,
    Refused,
)
from penstock.model.ids import Epoch, Millis, TopicPartition, Uuid
from penstock.storage.log import Log
from penstock.storage.settings import PlainLogSettings
from penstock.storage.tickets import Ticket
from penstock.storage.verification import Verification
from penstock.testing.memory_files import MemoryFiles

from .batches import TRANSACTIONAL, batch, header_of, marker

NOW = Millis(2_000)
PRODUCER = 7


class Leader:
    """A log as its leader writes to it."""

    def __init__(self) -> None:
        settings = PlainLogSettings(segment_bytes=100_000)
        self.log = Log.create(MemoryFiles(), "/data/t-0", TopicPartition("t", 0), Uuid(b"\x07" * 16), settings, now=NOW)

    def ask(self, epoch: int = 0, sequence: int = 0, *, bumps_epoch: bool = False) -> Verification | None:
        """Before the coordinator is asked about a batch."""
        return self.log.producers.begin_verification(PRODUCER, epoch, sequence, bumps_epoch=bumps_epoch, now=NOW)

    def write(
        self, sequence: int, guard: Verification | None = None, *, epoch: int = 0, verifies: bool = True
    ) -> Ticket:
        data = batch(producer=(PRODUCER, epoch, sequence), attributes=TRANSACTIONAL)
        known = self.log.known_in_transaction(header_of(data), guard, verifies=verifies)
        return known or self.log.append(data, header_of(data), epoch=Epoch(0), now=NOW)

    def write_offsets(self, guard: Verification | None, *, epoch: int = 0) -> Ticket:
        data = batch(producer=(PRODUCER, epoch, 0), attributes=TRANSACTIONAL)
        self.log.producers.check_coordinated(header_of(data), guard)
        return self.log.append(data, header_of(data), epoch=Epoch(0), now=NOW)

    def end(self, epoch: int = 0, *, version: int = 0, coordinator: int = 0, aborts: bool = False) -> Ticket:
        self.log.producers.check_marker(PRODUCER, epoch, coordinator, version)
        data = marker(PRODUCER, epoch, aborts=aborts, coordinator_epoch=coordinator)
        return self.log.append(data, header_of(data), epoch=Epoch(0), now=NOW)

    @property
    def is_open(self) -> bool:
        state = self.log.producers.get(PRODUCER)
        return state is not None and state.transaction_first >= 0


def error_of(act: Callable[[], object]) -> ErrorCode:
    try:
        act()
    except Refused as refusal:
        return refusal.error
    return NONE


# -- the guard


def test_a_transaction_begins_with_the_guard_and_goes_on_without_it() -> None:
    leader = Leader()
    assert error_of(lambda: leader.write(0)) is INVALID_TXN_STATE
    leader.write(0, leader.ask())
    leader.write(1)
    assert leader.ask(0, 2) is None, "nobody need be asked about a transaction that is open"
    assert len(leader.log.producers.verifications) == 0


def test_nobody_need_be_asked_when_verification_is_off() -> None:
    leader = Leader()
    leader.write(0, verifies=False)
    assert leader.is_open


def test_an_answer_about_a_transaction_that_ended_meanwhile_lets_nothing_in() -> None:
    leader = Leader()
    late = leader.ask()
    leader.end()
    assert error_of(lambda: leader.write(0, late)) is INVALID_TXN_STATE
    newer = leader.ask()
    assert newer is not late
    assert error_of(lambda: leader.write(0, late)) is INVALID_TXN_STATE
    leader.write(0, newer)


def test_two_batches_that_wait_together_share_one_guard_which_the_first_of_them_uses_up() -> None:
    leader = Leader()
    first, second = leader.ask(0, 0), leader.ask(0, 1)
    assert first is second
    leader.write(0, first)
    leader.write(1, second)
    leader.end()
    assert error_of(lambda: leader.write(2, second)) is INVALID_TXN_STATE


def test_the_first_batch_of_the_next_transaction_may_overtake_the_marker_of_the_last() -> None:
    leader = Leader()
    leader.write(0, leader.ask(4, bumps_epoch=True), epoch=4)
    ahead = leader.ask(5, bumps_epoch=True)
    assert ahead is not None, "what is open is the transaction of epoch 4"
    leader.end(5, version=2)
    leader.write(0, ahead, epoch=5)
    assert leader.is_open


def test_a_marker_of_another_epoch_takes_the_guard_away() -> None:
    leader = Leader()
    guard = leader.ask(5, bumps_epoch=True)
    leader.end(6, version=2)
    assert error_of(lambda: leader.write(0, guard, epoch=6)) is INVALID_TXN_STATE


def test_where_transactions_share_an_epoch_its_marker_takes_the_guard_away() -> None:
    leader = Leader()
    guard = leader.ask(5)
    leader.end(5)
    assert error_of(lambda: leader.write(0, guard, epoch=5)) is INVALID_TXN_STATE


def test_guards_that_nobody_came_back_for_are_forgotten() -> None:
    leader = Leader()
    guard = leader.ask()
    producers = leader.log.producers
    producers.expire(Millis(NOW + producers.expiration_ms - 1))
    assert producers.verifications.get(PRODUCER) is guard
    producers.expire(Millis(NOW + producers.expiration_ms))
    assert producers.verifications.get(PRODUCER) is None


# -- the order of checks


def test_a_producer_that_was_replaced_hears_of_its_epoch_and_not_of_its_guard() -> None:
    leader = Leader()
    leader.end(3)
    assert error_of(lambda: leader.write(0, epoch=2)) is INVALID_PRODUCER_EPOCH
    assert error_of(lambda: leader.ask(2)) is INVALID_PRODUCER_EPOCH
    assert error_of(lambda: leader.write_offsets(None, epoch=2)) is INVALID_PRODUCER_EPOCH
    assert error_of(lambda: leader.write(0, epoch=3)) is INVALID_TXN_STATE


def test_a_batch_that_is_there_already_needs_no_guard() -> None:
    leader = Leader()
    first = leader.write(0, leader.ask())
    leader.end()
    assert leader.write(0) == first


def test_a_later_batch_does_not_overtake_one_that_was_not_let_in() -> None:
    leader = Leader()
    guard = leader.ask(0, 0)
    leader.ask(0, 1)
    assert error_of(lambda: leader.write(1, guard)) is OUT_OF_ORDER_SEQUENCE_NUMBER
    leader.write(0, guard)
    leader.write(1, guard)


def test_the_sequence_that_is_waited_for_is_the_lowest_of_the_newest_epoch() -> None:
    leader = Leader()
    guard = leader.ask(0, 5)
    leader.ask(0, 3)
    leader.ask(0, 4)
    assert error_of(lambda: leader.write(4, guard)) is OUT_OF_ORDER_SEQUENCE_NUMBER
    leader.ask(1, 0)
    assert guard is not None
    assert (guard.epoch, guard.lowest_sequence) == (1, 0)
    leader.ask(0, 2)
    assert (guard.epoch, guard.lowest_sequence) == (1, 0), "an older epoch changes nothing"


@pytest.mark.parametrize(("bumps_epoch", "error"), [(False, NONE), (True, OUT_OF_ORDER_SEQUENCE_NUMBER)])
def test_a_producer_that_is_not_known_begins_at_0_where_each_transaction_has_its_epoch(
    bumps_epoch: bool, error: ErrorCode
) -> None:
    leader = Leader()
    guard = leader.ask(0, 5, bumps_epoch=bumps_epoch)
    assert error_of(lambda: leader.write(5, guard)) is error


def test_an_open_transaction_of_an_older_epoch_is_not_the_batch_s_own() -> None:
    leader = Leader()
    leader.write(0, leader.ask(0), epoch=0)
    assert error_of(lambda: leader.write(0, epoch=1)) is INVALID_TXN_STATE
    leader.write(0, leader.ask(1), epoch=1)


def test_a_coordinator_counts_no_sequences() -> None:
    leader = Leader()
    assert error_of(lambda: leader.write_offsets(None)) is INVALID_TXN_STATE
    assert leader.write_offsets(leader.ask(0, -1)).base == 0
    assert leader.write_offsets(None).base == 1, "the same sequence again is no duplicate"


# -- markers


@pytest.mark.parametrize(
    ("known", "is_open", "marker_epoch", "version", "error"),
    [
        (5, True, 4, 0, INVALID_PRODUCER_EPOCH),
        (5, True, 5, 0, NONE),
        (5, True, 5, 1, NONE),
        (5, True, 6, 1, NONE),
        (5, False, 5, 0, NONE),
        (5, True, 4, 2, INVALID_PRODUCER_EPOCH),
        (5, True, 5, 2, INVALID_PRODUCER_EPOCH),
        (5, False, 5, 2, NONE),
        (5, False, 4, 2, INVALID_PRODUCER_EPOCH),
        (5, True, 6, 2, NONE),
        (32_767, True, 32_767, 2, NONE),
    ],
)
def test_what_ends_a_transaction(known: int, is_open: bool, marker_epoch: int, version: int, error: ErrorCode) -> None:
    leader = Leader()
    leader.write(0, leader.ask(known), epoch=known)
    if not is_open:
        leader.end(known)
    assert error_of(lambda: leader.end(marker_epoch, version=version)) is error
    assert leader.is_open is (is_open and error is not NONE)


@pytest.mark.parametrize("version", [0, 2])
def test_a_coordinator_that_was_replaced_ends_nothing(version: int) -> None:
    leader = Leader()
    leader.end(1, coordinator=5)
    assert error_of(lambda: leader.end(2, coordinator=4, version=version)) is TRANSACTION_COORDINATOR_FENCED
    leader.end(2, coordinator=5, version=version)


def test_a_marker_that_ends_nothing_is_written_and_changes_no_end() -> None:
    leader = Leader()
    leader.end(aborts=True)
    leader.log.commit_to(leader.log.next)
    assert (leader.log.next, leader.log.last_stable, leader.log.aborted(0, 1)) == (1, 1, [])
