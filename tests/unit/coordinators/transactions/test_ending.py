"""EndTxn of both protocols, by their tables."""

from __future__ import annotations

import pytest

from penstock.coordinators.transactions.requests import AddPartitions
from tests.unit.coordinators.transactions.scene import P0, Scene

PID = 1_000
OTHER = 999
NOTHING = (-1, -1)

CLASSIC = [
    # state, commit, abort
    ("Ongoing", 0, 0),
    ("CompleteCommit", 0, 48),
    ("CompleteAbort", 48, 0),
    ("Empty", 48, 48),
    ("PrepareCommit", 51, 51),
    ("PrepareAbort", 51, 51),
]


@pytest.mark.parametrize(("status", "commit", "abort"), CLASSIC)
@pytest.mark.parametrize("version", [0, 1, 2, 3, 4])
def test_classic(status: str, commit: int, abort: int, version: int) -> None:
    for committed, error in ((True, commit), (False, abort)):
        scene = Scene()
        scene.at(status, 5, version=0)
        written = len(scene.log)
        assert scene.end(PID, 5, commit=committed, version=version) == (error, *NOTHING)
        if status == "Ongoing":
            assert scene.stands() == ("PrepareCommit" if committed else "PrepareAbort", PID, 5)
            (effect,) = scene.effects
            assert (effect.producer_epoch, effect.transaction_version) == (5, 0)
        else:
            assert len(scene.log) == written


@pytest.mark.parametrize("status", [row[0] for row in CLASSIC])
def test_classic_looks_at_producer_and_epoch_first(status: str) -> None:
    scene = Scene()
    scene.at(status, 5, version=0)
    for committed in (True, False):
        assert scene.end(OTHER, 5, commit=committed, version=4)[0] == 49
        assert scene.end(OTHER, 4, commit=committed, version=4)[0] == 49
        assert scene.end(PID, 4, commit=committed, version=4)[0] == 90
        assert scene.end(PID, 6, commit=committed, version=4)[0] == 90


RAISING = [
    # state, commit current, commit repeated, abort current, abort repeated
    ("Ongoing", 0, 90, 0, 90),
    ("Empty", 48, 90, 0, 90),
    ("CompleteCommit", 48, 0, 0, 48),
    ("CompleteAbort", 48, 48, 0, 0),
    ("PrepareCommit", 51, 51, 51, 51),
    ("PrepareAbort", 51, 51, 51, 51),
]


@pytest.mark.parametrize(("status", "commit", "commit_again", "abort", "abort_again"), RAISING)
def test_with_an_epoch_per_transaction(
    status: str, commit: int, commit_again: int, abort: int, abort_again: int
) -> None:
    for committed, current, repeated in ((True, commit, commit_again), (False, abort, abort_again)):
        scene = Scene()
        scene.at(status, 5)
        written = len(scene.log)
        answer = scene.end(PID, 4, commit=committed)
        assert answer == (repeated, *((PID, 5) if repeated == 0 else NOTHING))
        assert len(scene.log) == written
        answer = scene.end(PID, 5, commit=committed)
        assert answer == (current, *((PID, 6) if current == 0 else NOTHING))
        assert (len(scene.log) > written) == (current == 0)


@pytest.mark.parametrize("status", ["CompleteCommit", "CompleteAbort"])
@pytest.mark.parametrize("commit", [True, False])
def test_a_fenced_producer_is_not_handed_the_epoch_of_whoever_fenced_it(status: str, commit: bool) -> None:
    """Another producer has begun and ended a classic transaction: its epoch is the next one, and nobody else's."""
    scene = Scene()
    scene.at("Empty", 4)
    assert scene.init() == (0, PID, 5)
    scene.add(PID, 5, version=0)
    scene.end(PID, 5, commit=status == "CompleteCommit", version=4)
    scene.mark_all()
    assert scene.stands() == (status, PID, 5)
    assert scene.end(PID, 4, commit=commit) == (90, *NOTHING)
    scene.fail_over()
    assert scene.end(PID, 4, commit=commit) == (90, *NOTHING)


@pytest.mark.parametrize("status", ["Ongoing", "Empty", "CompleteCommit", "CompleteAbort"])
def test_others_are_refused(status: str) -> None:
    scene = Scene()
    scene.at(status, 5)
    for committed in (True, False):
        assert scene.end(OTHER, 5, commit=committed)[0] == 49
        for epoch in (3, 6, 32_766):
            assert scene.end(PID, epoch, commit=committed)[0] == 90


@pytest.mark.parametrize("status", ["PrepareCommit", "PrepareAbort"])
def test_what_settles_is_told_before_anything_else(status: str) -> None:
    scene = Scene()
    scene.at(status, 5)
    for pid, epoch in ((OTHER, 5), (PID, 3), (PID, 4), (PID, 5)):
        assert scene.end(pid, epoch, commit=True)[0] == 51


def test_an_unknown_id_and_one_without_a_name() -> None:
    scene = Scene()
    for version in (4, 5):
        assert scene.end(PID, 0, commit=True, version=version)[0] == 49
        assert scene.end(PID, 0, commit=True, version=version, name="")[0] == 42


@pytest.mark.parametrize("status", ["Empty", "CompleteCommit", "CompleteAbort"])
def test_an_abort_of_nothing_raises_the_epoch_at_once(status: str) -> None:
    scene = Scene()
    scene.at(status, 5)
    scene.wait(1)
    assert scene.end(PID, 5, commit=False) == (0, PID, 6)
    assert scene.story()[-2:] == [("PrepareAbort", 6), ("CompleteAbort", 6)]
    assert not scene.effects
    assert scene.state().started_ms == scene.wall
    assert scene.end(PID, 5, commit=False) == (0, PID, 6)
    assert scene.add(PID, 6) == 0


@pytest.mark.parametrize("commits", [True, False])
def test_the_markers_of_an_end_leave_when_it_is_committed(commits: bool) -> None:
    scene = Scene()
    scene.at("Ongoing", 5)
    scene.held = True
    assert scene.end(PID, 5, commit=commits) == (0, PID, 6)
    assert not scene.effects
    scene.commit()
    (effect,) = scene.effects
    assert (effect.transactional_id, effect.producer_id, effect.producer_epoch) == ("copy", PID, 6)
    assert (effect.coordinator_epoch, effect.commits, effect.transaction_version) == (7, commits, 2)
    assert effect.partitions == (P0,)


@pytest.mark.parametrize("commits", [True, False])
def test_the_last_epoch_is_followed_by_another_producer_id(commits: bool) -> None:
    scene = Scene()
    scene.at("Ongoing", 32_766)
    assert scene.end(PID, 32_766, commit=commits) == (0, PID + 1, 0)
    state = scene.state()
    assert (state.producer_id, state.epoch, state.next_producer_id) == (PID, 32_767, PID + 1)
    (effect,) = scene.mark_all()
    assert (effect.producer_id, effect.producer_epoch) == (PID, 32_767)
    state = scene.state()
    assert (state.producer_id, state.epoch, state.next_producer_id) == (PID + 1, 0, -1)
    assert state.previous_producer_id == PID
    assert scene.end(PID, 32_766, commit=commits) == (0, PID + 1, 0)
    assert scene.end(PID, 32_766, commit=not commits)[0] == 48
    assert scene.end(PID, 32_765, commit=commits)[0] == 49
    assert scene.add(PID + 1, 0) == 0
    assert scene.end(PID, 32_766, commit=commits)[0] == 49


def test_nothing_is_aborted_at_the_last_epoch() -> None:
    scene = Scene()
    scene.at("Empty", 32_766)
    assert scene.end(PID, 32_766, commit=False) == (0, PID + 1, 0)
    assert scene.story()[-2:] == [("PrepareAbort", 32_767), ("CompleteAbort", 0)]
    assert scene.stands() == ("CompleteAbort", PID + 1, 0)


def test_the_last_epoch_without_a_producer_id_at_hand() -> None:
    scene = Scene()
    scene.at("Ongoing", 32_766)
    scene.producer_ids = [None]
    assert scene.end(PID, 32_766, commit=True) == (14, *NOTHING)
    assert scene.stands() == ("Ongoing", PID, 32_766)
    assert scene.end(PID, 32_766, commit=True)[0] == 0


def test_classic_stays_at_the_last_epoch() -> None:
    scene = Scene()
    scene.at("Ongoing", 32_766, version=0)
    assert scene.end(PID, 32_766, commit=True, version=4)[0] == 0
    scene.mark_all()
    assert scene.stands() == ("CompleteCommit", PID, 32_766)


def test_records_of_version_0_cannot_hold_the_next_producer_id_so_the_producer_begins_anew() -> None:
    scene = Scene(0)
    scene.at("Ongoing", 32_766)
    assert scene.end(PID, 32_766, commit=True) == (90, *NOTHING)
    assert scene.stands() == ("Ongoing", PID, 32_766)
    assert scene.init()[0] == 51
    scene.mark_all()
    assert scene.init() == (0, PID + 1, 0)


@pytest.mark.parametrize("commits", [True, False])
def test_below_the_last_epoch_records_of_version_0_do(commits: bool) -> None:
    scene = Scene(0)
    scene.at("Ongoing", 5)
    assert scene.end(PID, 5, commit=commits) == (0, PID, 6)
    scene.mark_all()
    assert scene.end(PID, 5, commit=commits) == (0, PID, 6)
    scene.fail_over()
    assert scene.end(PID, 5, commit=commits)[0] == 90  # no record says who raised the epoch


def test_an_empty_set_of_partitions_ends_without_markers() -> None:
    scene = Scene()
    scene.at("Empty", 5)
    scene.ask(AddPartitions("copy", PID, 5, (), client_version=2))
    assert scene.stands() == ("Ongoing", PID, 5)
    assert scene.end(PID, 5, commit=True) == (0, PID, 6)
    assert scene.stands() == ("CompleteCommit", PID, 6)
