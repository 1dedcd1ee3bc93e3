"""Bugs of others that a coordinator can have, each by its name."""

from __future__ import annotations

import pytest

from tests.unit.coordinators.transactions.scene import ID, P0, P1, Scene

PID = 1_000
NEXT = PID + 1


def test_kafka_18464_an_abort_right_behind_a_commit_does_not_fence_itself() -> None:
    """Its epoch is looked at only when nothing settles any more."""
    scene = Scene()
    scene.at("Ongoing", 4)
    assert scene.end(PID, 4, commit=True) == (0, PID, 5)
    assert scene.end(PID, 5, commit=False)[0] == 51
    scene.mark_all()
    assert scene.end(PID, 5, commit=False) == (0, PID, 6)


def test_kafka_18660_a_producer_that_was_just_given_the_next_id_is_told_to_wait() -> None:
    scene = Scene()
    scene.at("Ongoing", 32_766)
    assert scene.end(PID, 32_766, commit=True) == (0, NEXT, 0)
    assert scene.add(NEXT, 0) == 51
    scene.mark_all()
    assert scene.add(NEXT, 0) == 0


def test_kafka_19367_fencing_raises_the_epoch_once() -> None:
    scene = Scene()
    scene.at("Ongoing", 4)
    assert scene.init()[0] == 51
    assert scene.stands() == ("PrepareAbort", PID, 5)
    scene.mark_all()
    assert scene.init() == (0, PID, 6)


@pytest.mark.parametrize("by", ["time", "another producer"])
def test_kafka_20090_the_coordinator_rotates_too_when_epochs_are_used_up(by: str) -> None:
    scene = Scene()
    scene.at("Ongoing", 32_766)
    if by == "time":
        scene.wait(70_001)
    else:
        assert scene.init()[0] == 51
    assert scene.stands() == ("PrepareAbort", PID, 32_767)
    assert scene.end(PID, 32_766, commit=False)[0] == 51
    scene.mark_all()
    assert scene.stands() == ("CompleteAbort", NEXT, 0)
    assert scene.end(PID, 32_766, commit=False) == (0, NEXT, 0)


def test_kafka_20310_a_rotation_can_be_asked_for_again() -> None:
    scene = Scene()
    scene.at("Empty", 32_766)
    for _ in range(3):
        assert scene.init(PID, 32_766) == (0, NEXT, 0)
    assert scene.init(PID, 32_765)[0] == 90


@pytest.mark.parametrize("compacted", [False, True])
@pytest.mark.parametrize("status", ["CompleteCommit", "CompleteAbort"])
def test_kafka_20357_a_failover_does_not_fence_whoever_repeats_itself(status: str, compacted: bool) -> None:
    scene = Scene()
    scene.at(status, 5)
    scene.fail_over(compacted=compacted)
    assert scene.init(PID, 4) == (0, PID, 5)


def test_kafka_20357_nor_at_the_last_epoch() -> None:
    scene = Scene()
    scene.at("Ongoing", 32_766)
    scene.end(PID, 32_766, commit=True)
    scene.fail_over()
    scene.mark_all()
    scene.fail_over()
    assert scene.init(PID, 32_766) == (0, NEXT, 0)


@pytest.mark.parametrize("status", ["Empty", "CompleteCommit", "CompleteAbort"])
def test_kafka_20357_but_what_cannot_be_derived_stays_fenced(status: str) -> None:
    """Of a classic transaction, or of an id that another producer has taken, no epoch before is known."""
    scene = Scene()
    scene.at(status, 5, version=0)
    scene.fail_over()
    assert scene.init(PID, 4)[0] == 90


def test_kafka_14904_verification_is_not_held_up_by_what_settles() -> None:
    scene = Scene()
    scene.at("Ongoing", 4)
    scene.held = True
    scene.add(PID, 4, P1)
    assert {error.code for error in scene.verify(PID, 4, P0, P1).values()} == {0}


def test_kafka_9666_a_fence_that_could_not_be_written_is_not_counted() -> None:
    scene = Scene()
    scene.at("Ongoing", 4)
    scene.held = True
    scene.init()
    scene.fail_over(lose=True)
    assert scene.stands() == ("Ongoing", PID, 4)
    scene.init()
    assert scene.stands() == ("PrepareAbort", PID, 5)


def test_kafka_17754_a_late_end_does_not_end_the_next_transaction() -> None:
    scene = Scene()
    scene.at("Ongoing", 4)
    scene.end(PID, 4, commit=True)
    scene.mark_all()
    scene.add(PID, 5)
    for commit in (True, False):
        assert scene.end(PID, 4, commit=commit)[0] == 90
    assert scene.stands() == ("Ongoing", PID, 5)


def test_kafka_17754_of_a_classic_client_it_does_and_nobody_can_help() -> None:
    """Both transactions have the same epoch: that is what the epoch per transaction is for."""
    scene = Scene()
    scene.at("Ongoing", 4, version=0)
    scene.end(PID, 4, commit=True, version=4)
    scene.mark_all()
    scene.add(PID, 4, version=0)
    assert scene.end(PID, 4, commit=True, version=4)[0] == 0
    assert scene.stands() == ("PrepareCommit", PID, 4)


def test_redpanda_6018_a_partition_that_was_added_outlives_its_coordinator() -> None:
    scene = Scene()
    scene.at("Ongoing", 4)
    assert scene.add(PID, 4, P1) == 0
    scene.fail_over(lose=True)
    assert scene.end(PID, 4, commit=True)[0] == 0
    (effect,) = scene.effects
    assert effect.partitions == (P0, P1)


def test_redpanda_9571_a_commit_whose_reply_was_lost_is_told_again() -> None:
    for version, epoch in ((4, 4), (5, 5)):
        scene = Scene()
        scene.at("Ongoing", 4, version=2 if version == 5 else 0)
        assert scene.end(PID, 4, commit=True, version=version)[0] == 0
        scene.fail_over()
        assert scene.end(PID, 4, commit=True, version=version)[0] == 51
        scene.mark_all()
        assert scene.end(PID, 4, commit=True, version=version)[0] == 0
        assert scene.stands() == ("CompleteCommit", PID, epoch)


def test_redpanda_7975_where_nothing_began_nothing_ends_and_the_producer_goes_on() -> None:
    scene = Scene()
    scene.at("Empty", 4)
    assert scene.end(PID, 4, commit=True, version=4)[0] == 48
    assert scene.end(PID, 4, commit=True)[0] == 48
    assert scene.end(PID, 4, commit=False) == (0, PID, 5)
    assert scene.add(PID, 5) == 0
    assert scene.stands(ID) == ("Ongoing", PID, 5)
