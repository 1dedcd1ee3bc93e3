"""Transactions that are out of time, and ids that nobody uses."""

from __future__ import annotations

import pytest

from penstock.coordinators.transactions.expiry import IDS_PER_STEP
from penstock.model.ids import Millis
from tests.unit.coordinators.transactions.scene import ID, P0, TIMEOUT_MS, Scene

PID = 1_000
INTERVAL_MS = 10_000
WEEK_MS = 604_800_000
HOUR_MS = 3_600_000


def test_a_transaction_that_is_out_of_time_is_aborted_at_the_next_look() -> None:
    scene = Scene()
    scene.at("Ongoing", 4)
    scene.wait(TIMEOUT_MS)
    assert scene.stands() == ("Ongoing", PID, 4)
    scene.wait(INTERVAL_MS)
    assert scene.stands() == ("PrepareAbort", PID, 5)
    (effect,) = scene.mark_all()
    assert (effect.producer_epoch, effect.commits, effect.partitions) == (5, False, (P0,))
    assert scene.stands() == ("CompleteAbort", PID, 5)


def test_with_an_epoch_per_transaction_the_producer_may_go_on() -> None:
    scene = Scene()
    scene.at("Ongoing", 4)
    scene.wait(TIMEOUT_MS + INTERVAL_MS)
    assert scene.end(PID, 4, commit=True)[0] == 51
    scene.mark_all()
    assert scene.end(PID, 4, commit=True)[0] == 48
    assert scene.end(PID, 4, commit=False) == (0, PID, 5)
    assert scene.add(PID, 5) == 0


@pytest.mark.parametrize("level", [0, 1])
def test_below_it_is_fenced_for_good(level: int) -> None:
    scene = Scene(level)
    scene.at("Ongoing", 4, version=0)
    scene.wait(TIMEOUT_MS + INTERVAL_MS)
    scene.mark_all()
    assert scene.end(PID, 4, commit=False, version=4)[0] == 90
    assert scene.end(PID, 4, commit=True, version=4)[0] == 90
    assert scene.add(PID, 4, version=0) == 90
    assert scene.init(PID, 4)[0] == 90
    assert scene.init() == (0, PID, 6)


def test_time_runs_from_the_first_partition_on() -> None:
    scene = Scene()
    scene.at("Empty", 4)
    scene.wait(TIMEOUT_MS * 2)
    scene.add(PID, 4)
    scene.wait(TIMEOUT_MS - 1_000)
    scene.add(PID, 4, ("out", 7))
    scene.wait(INTERVAL_MS + 1_000)
    assert scene.stands() == ("PrepareAbort", PID, 5)


def test_the_next_transaction_has_time_of_its_own() -> None:
    scene = Scene()
    scene.at("Ongoing", 4)
    scene.wait(TIMEOUT_MS - 1_000)
    scene.end(PID, 4, commit=True)
    scene.mark_all()
    scene.add(PID, 5)
    scene.wait(TIMEOUT_MS - 1_000)
    assert scene.stands() == ("Ongoing", PID, 5)


def test_what_settles_is_left_for_the_next_look() -> None:
    scene = Scene()
    scene.at("Empty", 4)
    scene.held = True
    scene.add(PID, 4)
    scene.wait(TIMEOUT_MS + INTERVAL_MS)
    assert scene.stands() == ("Ongoing", PID, 4)
    scene.commit()
    scene.wait(INTERVAL_MS)
    assert scene.stands() == ("PrepareAbort", PID, 5)


def test_so_is_what_needs_a_producer_id_that_is_not_at_hand() -> None:
    scene = Scene()
    scene.at("Ongoing", 32_766)
    scene.producer_ids = [None]
    scene.wait(TIMEOUT_MS + INTERVAL_MS)
    assert scene.stands() == ("Ongoing", PID, 32_766)
    scene.wait(INTERVAL_MS)
    assert scene.stands() == ("PrepareAbort", PID, 32_767)


@pytest.mark.parametrize("set_by_ms", [-WEEK_MS, WEEK_MS])
def test_whoever_sets_the_clock_ends_no_transaction(set_by_ms: int) -> None:
    scene = Scene()
    scene.at("Ongoing", 4)
    scene.wall += set_by_ms
    scene.wait(TIMEOUT_MS)
    assert scene.stands() == ("Ongoing", PID, 4)
    scene.wait(INTERVAL_MS)
    assert scene.stands() == ("PrepareAbort", PID, 5)


@pytest.mark.parametrize(
    ("wall_ms", "left_ms"),
    [(0, TIMEOUT_MS), (20_000, 40_000), (TIMEOUT_MS, 0), (WEEK_MS, 0), (-WEEK_MS, TIMEOUT_MS)],
)
def test_after_a_load_it_has_the_rest_of_its_time(wall_ms: int, left_ms: int) -> None:
    """By the wall clock of the record and of the node: never more than all of it."""
    scene = Scene()
    scene.at("Ongoing", 4)
    scene.wall += wall_ms
    scene.tick = 77_000_000
    scene.fail_over()
    assert scene.shard.table.deadlines == {ID: scene.tick + left_ms}
    scene.wait(left_ms + INTERVAL_MS + 1)
    assert scene.stands() == ("PrepareAbort", PID, 5)


def test_nothing_is_looked_at_while_nothing_goes_on() -> None:
    scene = Scene()
    scene.at("CompleteCommit", 4)
    scene.wait(INTERVAL_MS)
    assert scene.shard.table.next_check is None
    assert scene.shard.next_deadline() == 1_000 + HOUR_MS


def test_many_that_are_out_of_time_are_aborted_one_at_a_time() -> None:
    scene = Scene()
    for number in range(3):
        scene.init(name=f"id-{number}")
        scene.add(PID + number, 0, name=f"id-{number}")
    scene.tick += TIMEOUT_MS + INTERVAL_MS
    steps = scene.shard.expire(scene.now)
    scene.carry_out(next(steps))
    # Between two steps others come in.
    assert scene.end(PID + 1, 0, commit=True, name="id-1")[0] == 0
    for decision in steps:
        scene.carry_out(decision)
    assert [scene.stands(f"id-{number}")[0] for number in range(3)] == ["PrepareAbort", "PrepareCommit", "PrepareAbort"]


# Expiry


@pytest.mark.parametrize("status", ["Empty", "CompleteCommit", "CompleteAbort"])
def test_an_id_that_nobody_uses_is_forgotten(status: str) -> None:
    scene = Scene()
    scene.at(status, 4)
    scene.wait(WEEK_MS - HOUR_MS)
    assert scene.stands() == (status, PID, 4)
    scene.wait(2 * HOUR_MS)
    assert scene.story()[-1] == ("gone", -1)
    assert scene.add(PID, 4) == 49
    assert scene.end(PID, 4, commit=True)[0] == 49
    assert scene.init(PID, 4) == (0, PID + 1, 0)


def test_one_that_is_used_stays() -> None:
    scene = Scene()
    scene.at("Empty", 4)
    for _ in range(3):
        scene.wait(WEEK_MS - HOUR_MS)
        scene.init()
    assert scene.stands() == ("Empty", PID, 7)


@pytest.mark.parametrize("status", ["Ongoing", "PrepareCommit", "PrepareAbort"])
def test_one_that_is_busy_stays(status: str) -> None:
    scene = Scene(transaction_max_timeout_ms=2_000_000_000)
    scene.init(timeout_ms=2_000_000_000)
    scene.add(PID, 0)
    if status != "Ongoing":
        scene.end(PID, 0, commit=status == "PrepareCommit")
    scene.wait(WEEK_MS + 2 * HOUR_MS)
    assert scene.stands()[0] == status


def test_one_that_settles_stays() -> None:
    scene = Scene()
    scene.held = True
    scene.init()
    scene.wall = Millis(scene.wall + WEEK_MS)
    scene.wait(HOUR_MS)
    assert scene.story() == [("Empty", 0)]


def test_tombstones_share_batches() -> None:
    scene = Scene()
    for number in range(IDS_PER_STEP + 5):
        scene.init(name=f"id-{number}")
    scene.wall += WEEK_MS
    scene.tick += HOUR_MS
    batches = [len(decision.records) for decision in scene.shard.expire(scene.now)]
    assert batches == [IDS_PER_STEP, 5]


def test_an_id_that_comes_back_between_two_steps_stays() -> None:
    scene = Scene()
    for number in range(IDS_PER_STEP + 5):
        scene.init(name=f"id-{number}")
    scene.wall += WEEK_MS
    scene.tick += HOUR_MS
    steps = scene.shard.expire(scene.now)
    scene.carry_out(next(steps))
    assert scene.init(name=f"id-{IDS_PER_STEP}")[0] == 0
    for decision in steps:
        scene.carry_out(decision)
    assert list(scene.shard.table.transactions) == [f"id-{IDS_PER_STEP}"]
