"""Bugs that are planted in the product, and that the simulator has to find: each within a thousand seeds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from penstock.replication.fetching_session import FetchingSession
from penstock.replication.following import Position
from penstock.replication.partition import Partition
from penstock.server.drivers import fetch_reading
from penstock.server.drivers.follower_driver import FollowerDriver
from penstock.server.drivers.quorum_driver import QuorumDriver
from penstock.testing.sim import run
from tests.sim.cluster.seeds import BUG_SEEDS, SECONDS

Plant = Callable[[pytest.MonkeyPatch], None]


def high_watermark_ahead_of_the_in_sync_set(patch: pytest.MonkeyPatch) -> None:
    """A leader calls committed what only itself has."""
    patch.setattr(Partition, "_held_back", lambda _self, end, _now: end)


def vote_not_persisted(patch: pytest.MonkeyPatch) -> None:
    """What a voter must remember goes where it never looks."""
    patch.setattr(QuorumDriver, "_state_file", lambda self, _effect: (f"{self.directory}/elsewhere", b""))


def truncation_to_the_high_watermark(patch: pytest.MonkeyPatch) -> None:
    """Followers cut to what they know to be committed when a new epoch begins, and nobody compares histories."""
    follow = FollowerDriver.follow
    epochs: dict[Any, int] = {}

    def cut_and_follow(self: FollowerDriver, hosted: Any) -> None:
        log, state = hosted.log, hosted.state
        if log is not None and log.failure is None and epochs.get(log) != state.epoch:
            epochs[log] = state.epoch
            if state.high_watermark < log.written:
                log.truncate(state.high_watermark)
        follow(self, hosted)

    patch.setattr(FollowerDriver, "follow", cut_and_follow)
    patch.setattr(fetch_reading, "_divergence", lambda _log, _interest: None)


def retention_that_nobody_hears_of(patch: pytest.MonkeyPatch) -> None:
    """A follower deletes, tells nobody, and takes answers for stale because its log begins elsewhere."""
    patch.setattr(FollowerDriver, "start_moved", lambda _self, _hosted: None)
    patch.setattr(Position, "reads_as", Position.__eq__)
    patch.setattr(FetchingSession, "dropped", lambda _self, _question, _key: None)


@pytest.mark.timeout(3_600)
@pytest.mark.parametrize(
    ("plant", "found_last"),
    [
        (high_watermark_ahead_of_the_in_sync_set, 5),
        (vote_not_persisted, 2),
        (truncation_to_the_high_watermark, 5),
        (retention_that_nobody_hears_of, 1),
    ],
)
def test_a_planted_bug_is_found(plant: Plant, found_last: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The seed that found it last comes first: with another product it may be another one."""
    plant(monkeypatch)
    for seed in (found_last, *range(1, BUG_SEEDS)):
        story = run(seed, nodes=3, seconds=SECONDS)
        if not story.ok:
            print(f"\nseed {seed}: {story.violations[0]}")
            return
    pytest.fail(f"{plant.__name__} was not found within {BUG_SEEDS} seeds")
