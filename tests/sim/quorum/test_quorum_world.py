"""The quorum alone, under seeds: the real machine on a model of log and disk. `PENSTOCK_SEED=N` replays one."""

from __future__ import annotations

import os

import pytest

from penstock.model.ids import Offset
from penstock.quorum.leading import Leadership
from penstock.quorum.voters import VoterSet
from tests.faults.counts import MINUTES, SOAKING, time_s
from tests.sim.quorum.faults import SOUND, Planted
from tests.sim.quorum.world import simulate

FAST_S = 15.0
SEEDS = 100_000
FOUND_WITHIN = 1_000


def broken_by(seed: int, planted: Planted = SOUND) -> str | None:
    """What a seed breaks, with its story; None when it keeps every promise."""
    try:
        simulate(seed, planted=planted)
    except AssertionError:
        pass
    else:
        return None
    with pytest.raises(AssertionError) as again:
        simulate(seed, planted=planted, telling=True)
    return "\n".join(map(str, again.value.args))


def check(seed: int) -> None:
    story = broken_by(seed)
    if story is not None:
        pytest.fail(f"rerun: PENSTOCK_SEED={seed} python -m pytest {__file__}\n{story}", pytrace=False)


@pytest.mark.timeout(7_200)
def test_no_seed_breaks_the_quorum() -> None:
    chosen = os.environ.get("PENSTOCK_SEED")
    if chosen:
        check(int(chosen))
        return
    began, limit_s = time_s(), MINUTES * 60 if SOAKING else FAST_S
    seed = 0
    while seed < SEEDS and time_s() - began < limit_s:
        check(seed)
        seed += 1
    spent_s = time_s() - began
    print(f"{seed} seeds of the quorum in {spent_s:.0f} s, {seed / spent_s:.0f} a second")
    assert not SOAKING or seed == SEEDS, f"only {seed} of {SEEDS} seeds fitted into {MINUTES:.0f} minutes"


def test_a_seed_is_always_the_same_world() -> None:
    stories = [simulate(7, telling=True).story for _ in range(2)]
    assert stories[0]
    assert stories[0] == stories[1]


def first_broken(planted: Planted) -> str:
    for seed in range(FOUND_WITHIN):
        story = broken_by(seed, planted)
        if story is not None:
            return story
    pytest.fail(f"not found within {FOUND_WITHIN} seeds")


def test_a_vote_that_is_not_remembered_is_found() -> None:
    assert "seed" in first_broken(Planted(votes_forgotten=True))


def test_a_fetch_before_the_sync_is_found() -> None:
    assert "seed" in first_broken(Planted(fetches_unsynced=True))


def test_counting_a_record_of_an_older_epoch_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def advance(self: Leadership, voters: VoterSet, own_flushed: Offset) -> Offset | None:
        ends = sorted((self.voter_end(voter, own_flushed) for voter in voters), reverse=True)
        reached = ends[voters.majority - 1]
        if reached <= max(self.high_watermark or 0, 0):
            return None
        self.high_watermark = reached
        return reached

    monkeypatch.setattr(Leadership, "advance", advance)
    assert "R4" in first_broken(SOUND)
