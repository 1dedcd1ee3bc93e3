"""InitProducerId, in the order of its checks."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.coordinators.transactions.transaction import NEVER_TIMES_OUT_MS
from penstock.protocol.messages.init_producer_id import InitProducerIdRequest
from tests.unit.coordinators.transactions.scene import ID, P0, TIMEOUT_MS, Scene

PID = 1_000
OTHER = 999
REFUSED = (-1, -1)


@pytest.mark.parametrize(
    ("request_of", "error"),
    [
        ({"producer_id": 7}, 42),
        ({"producer_epoch": 0}, 42),
        ({"transactional_id": ""}, 42),
        ({"transactional_id": "", "transaction_timeout_ms": 0}, 42),
        ({"enable_2pc": True}, 53),
        ({"enable_2pc": True, "keep_prepared_txn": True}, 53),
        ({"keep_prepared_txn": True, "transaction_timeout_ms": 0}, 35),
        ({"transaction_timeout_ms": 0}, 50),
        ({"transaction_timeout_ms": -1}, 50),
        ({"transaction_timeout_ms": 900_001}, 50),
        ({"transaction_timeout_ms": 900_000}, 0),
        ({"transaction_timeout_ms": 1}, 0),
    ],
)
def test_what_is_wrong_with_the_request_itself_comes_first(request_of: dict[str, Any], error: int) -> None:
    scene = Scene()
    scene.init()
    scene.held = True
    scene.add(PID, 0)  # it settles: 51 would be next
    request = InitProducerIdRequest(**{"transactional_id": ID, "transaction_timeout_ms": TIMEOUT_MS, **request_of})
    reply = scene.ask(request, 6)
    assert reply.error_code == (error or 51)
    assert (reply.producer_id, reply.producer_epoch) == REFUSED


def test_two_phase_commit_never_times_out() -> None:
    scene = Scene(transaction_two_phase_commit_enable=True)
    assert scene.init(timeout_ms=0, enable_2pc=True) == (0, PID, 0)
    assert scene.state().timeout_ms == NEVER_TIMES_OUT_MS
    scene.add(PID, 0)
    scene.wait(NEVER_TIMES_OUT_MS // 1_000)
    assert scene.stands() == ("Ongoing", PID, 0)
    scene.fail_over()
    scene.wait(60_000)
    assert scene.stands() == ("Ongoing", PID, 0)


@pytest.mark.parametrize("named", [(-1, -1), (OTHER, 5)])
def test_an_unknown_id_gets_a_new_producer_id_whatever_it_names(named: tuple[int, int]) -> None:
    scene = Scene()
    assert scene.init(*named) == (0, PID, 0)
    assert scene.stands() == ("Empty", PID, 0)
    assert scene.state().timeout_ms == TIMEOUT_MS


def test_without_a_producer_id_at_hand_the_coordinator_is_not_ready() -> None:
    scene = Scene()
    scene.producer_ids = [None]
    assert scene.init() == (14, *REFUSED)
    assert not scene.log
    assert scene.init() == (0, PID, 0)


def test_an_id_whose_record_is_not_committed_settles() -> None:
    scene = Scene()
    scene.held = True
    assert scene.init() == (0, PID, 0)
    assert scene.init() == (51, *REFUSED)
    assert len(scene.log) == 1


@pytest.mark.parametrize("status", ["PrepareCommit", "PrepareAbort"])
def test_an_id_whose_outcome_is_decided_settles(status: str) -> None:
    scene = Scene()
    scene.at(status, 5)
    for named in ((-1, -1), (PID, 5), (OTHER, 5)):
        assert scene.init(*named) == (51, *REFUSED)


@pytest.mark.parametrize("status", ["Empty", "Ongoing", "CompleteCommit", "CompleteAbort"])
def test_another_producer_id_is_fenced(status: str) -> None:
    scene = Scene()
    scene.at(status, 5)
    written = len(scene.log)
    assert scene.init(OTHER, 5) == (90, *REFUSED)
    assert len(scene.log) == written


@pytest.mark.parametrize(
    ("level", "epoch", "client_version", "again"),
    [(2, 6, 2, (0, PID, 7)), (1, 6, 1, (0, PID, 7)), (0, 6, 0, (0, PID, 7))],
)
@pytest.mark.parametrize("named", [(-1, -1), (PID, 5), (PID, 3)])
def test_an_ongoing_transaction_is_aborted_first(
    level: int, epoch: int, client_version: int, again: tuple[int, int, int], named: tuple[int, int]
) -> None:
    """The epoch that is named is not compared here."""
    scene = Scene(level)
    scene.at("Ongoing", 5, version=0)
    assert scene.init(*named) == (51, *REFUSED)
    assert scene.stands() == ("PrepareAbort", PID, 6)
    assert scene.init() == (51, *REFUSED)
    (effect,) = scene.mark_all()
    assert (effect.producer_epoch, effect.commits, effect.transaction_version) == (6, False, level)
    assert scene.init() == (0, PID, 7)
    assert scene.stands() == ("Empty", PID, 7)


def test_the_producer_is_told_to_wait_only_when_the_abort_is_committed() -> None:
    scene = Scene()
    scene.at("Ongoing", 5)
    scene.held = True
    assert scene.init() == (51, *REFUSED)
    assert not scene.effects
    scene.commit()
    assert [effect.partitions for effect in scene.effects] == [(P0,)]


def test_after_an_abort_by_the_coordinator_the_epoch_before_is_known_at_version_2_alone() -> None:
    for level, answer in ((2, (0, PID, 6)), (1, (90, *REFUSED))):
        scene = Scene(level)
        scene.at("Ongoing", 5, version=0)
        scene.init()
        scene.mark_all()
        assert scene.init(PID, 5) == answer


@pytest.mark.parametrize("status", ["Empty", "CompleteCommit", "CompleteAbort"])
@pytest.mark.parametrize("version", [0, 2])
class TestAtRest:
    def test_whoever_names_nothing_gets_the_next_epoch_and_fences_all_others(self, status: str, version: int) -> None:
        scene = Scene()
        scene.at(status, 5, version=version)
        assert scene.init() == (0, PID, 6)
        assert scene.stands() == ("Empty", PID, 6)
        for late in (4, 5):
            assert scene.init(PID, late) == (90, *REFUSED)

    def test_whoever_names_our_epoch_gets_the_next_one(self, status: str, version: int) -> None:
        scene = Scene()
        scene.at(status, 5, version=version)
        assert scene.init(PID, 5) == (0, PID, 6)

    def test_and_may_ask_again_as_often_as_it_likes(self, status: str, version: int) -> None:
        scene = Scene()
        scene.at(status, 5, version=version)
        scene.init(PID, 5)
        written = len(scene.log)
        for asked in (1, 2, 3):
            assert scene.init(PID, 5) == (0, PID, 6)
            assert len(scene.log) == written + asked  # a record is written all the same

    def test_any_other_epoch_is_fenced(self, status: str, version: int) -> None:
        scene = Scene()
        scene.at(status, 5, version=version)
        for named in (0, 3, 6, 32_766):
            assert scene.init(PID, named) == (90, *REFUSED)

    def test_timeout_is_that_of_the_last_request(self, status: str, version: int) -> None:
        scene = Scene()
        scene.at(status, 5, version=version)
        scene.init(timeout_ms=5)
        assert scene.state().timeout_ms == 5
        assert scene.state().started_ms == -1


# With an epoch per transaction the end of the last one rotates by itself.
AT_THE_LAST_EPOCH = [("Empty", 0), ("Empty", 2), ("CompleteCommit", 0), ("CompleteAbort", 0)]


@pytest.mark.parametrize("named", [(-1, -1), (PID, 32_766)])
@pytest.mark.parametrize(("status", "version"), AT_THE_LAST_EPOCH)
def test_the_last_epoch_makes_room_for_another_producer_id(status: str, version: int, named: tuple[int, int]) -> None:
    scene = Scene()
    scene.at(status, 32_766, version=version)
    assert scene.init(*named) == (0, PID + 1, 0)
    assert scene.state().previous_producer_id == PID


@pytest.mark.parametrize(("status", "version"), AT_THE_LAST_EPOCH)
def test_at_the_last_epoch_others_are_told_as_at_any(status: str, version: int) -> None:
    """A hole in Kafka: UNKNOWN_SERVER_ERROR."""
    scene = Scene()
    scene.at(status, 32_766, version=version)
    assert scene.init(PID, 32_764) == (90, *REFUSED)


def test_at_the_last_epoch_without_a_producer_id_at_hand() -> None:
    scene = Scene()
    scene.at("Empty", 32_766)
    scene.producer_ids = [None]
    assert scene.init() == (14, *REFUSED)
    assert scene.stands() == ("Empty", PID, 32_766)


def test_a_producer_that_was_fenced_at_the_last_epoch_is_never_told_the_one_behind_it() -> None:
    """Below transaction.version 2 nothing rotates when the coordinator aborts; the next InitProducerId does."""
    scene = Scene(1)
    scene.at("Ongoing", 32_766, version=0)
    assert scene.init() == (51, *REFUSED)
    scene.mark_all()
    assert scene.stands() == ("CompleteAbort", PID, 32_767)
    assert scene.init(PID, 32_766) == (90, *REFUSED)
    assert scene.init() == (0, PID + 1, 0)


def test_a_log_that_ends_at_the_epoch_behind_the_last_is_mended() -> None:
    """Kafka before KAFKA-20090 could leave such a record; its producer only repeats itself."""
    scene = Scene()
    scene.plant(PID, 32_766)
    scene.add(PID, 32_766)
    scene.end(PID, 32_766, commit=False)
    value: Any = scene.log[-1].value
    value.next_producer_id = -1
    scene.fail_over()
    scene.mark_all()
    assert scene.stands() == ("CompleteAbort", PID, 32_767)
    answer = scene.init(PID, 32_766)
    assert answer[0] == 0
    assert answer[2] == 0
    assert answer[1] != PID
