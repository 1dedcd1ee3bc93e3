"""Bugs that are planted in the product, and that the simulator has to find: each within five hundred seeds.

`make test` runs the seed that found a bug last; when that finds it no more, because product or world are others now,
the search goes on from the first seed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from penstock.model.ids import Millis, Offset, TopicPartition, Uuid
from penstock.replication import reading as read_rules
from penstock.replication.fetching_session import FetchingSession
from penstock.replication.following import Position
from penstock.replication.partition import Partition
from penstock.server.controller.lifecycle import BrokerLifecycle
from penstock.server.partitions.fetching import reading
from penstock.server.partitions.following.driver import FollowerDriver
from penstock.server.quorum.core import QuorumCore
from penstock.server.quorum.driver import QuorumDriver
from penstock.storage import recovery, store
from penstock.storage.beliefs import Beliefs
from penstock.storage.checkpoints import CLEANER_OFFSETS, HIGH_WATERMARKS, LOG_STARTS, RECOVERY_POINTS
from penstock.storage.departures import Departures
from penstock.storage.log_directory import LogDirectory
from penstock.storage.names import Kind
from penstock.storage.producers import Producers
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
    patch.setattr(read_rules, "_divergence", lambda _log, _wanted: None)


def retention_that_nobody_hears_of(patch: pytest.MonkeyPatch) -> None:
    """A follower deletes, tells nobody, and takes answers for stale because its log begins elsewhere."""
    patch.setattr(FollowerDriver, "start_moved", lambda _self, _hosted: None)
    patch.setattr(Position, "reads_as", Position.__eq__)
    patch.setattr(FetchingSession, "dropped", lambda _self, _question, _key: None)


def checkpoints_of_a_former_topic(patch: pytest.MonkeyPatch) -> None:
    """What checkpoints say of a deleted topic stays in them, and the next topic of that name believes all of it."""

    def believed(directory: LogDirectory, name: TopicPartition, kind: Kind, _made_at: Millis) -> Beliefs:
        told = {checkpoint: said.offsets.get(name) for checkpoint, said in directory.said.items()}
        point = told[RECOVERY_POINTS] or Offset(0)
        if kind is Kind.FUTURE:
            return Beliefs(point, Offset(0), Offset(0), None)
        return Beliefs(point, told[LOG_STARTS] or Offset(0), told[HIGH_WATERMARKS] or Offset(0), told[CLEANER_OFFSETS])

    patch.setattr(store, "beliefs_about", believed)
    patch.setattr(Departures, "outdated", lambda _self, _directory: [])
    patch.setattr(LogDirectory, "speaks_of", lambda _self, _name: False)  # or an assertion would find it


def refusals_that_cannot_be_said(patch: pytest.MonkeyPatch) -> None:
    """A fetch below version 12 at a broker that does not lead is answered as if there were nothing new."""
    refused = reading.Reading._refused

    def unsaid(self: Any, ask: Any, interest: Any, error: Any) -> Any:
        said = refused(self, ask, interest, error)
        if ask.version < 12:
            said.error_code = 0
        return said

    patch.setattr(reading.Reading, "_refused", unsaid)


def zombie_controller(patch: pytest.MonkeyPatch) -> None:
    """An effect of the quorum fails in a way that nobody foresaw, and its node goes on without ever taking a step."""
    committed_to = QuorumCore._committed_to

    def fails_now_and_then(self: QuorumCore, offset: Offset) -> None:
        committed_to(self, offset)
        if offset % 59 == 58:
            raise ValueError("nobody foresaw this")

    patch.setattr(QuorumCore, "_committed_to", fails_now_and_then)
    patch.setattr(QuorumCore, "_broke", lambda _self, _doing, _broken: None)


def replay_skipped(patch: pytest.MonkeyPatch) -> None:
    """After a crash or a cut nobody looks which batches producers have written since the last snapshot of them."""

    def skipped(producers: Producers, _segments: object, end: int) -> None:
        producers.end = Offset(end)

    patch.setattr(recovery, "replay", skipped)


def failed_directory_not_told(patch: pytest.MonkeyPatch) -> None:
    """Nobody tells the controller of directories that failed."""

    async def untold(_self: BrokerLifecycle, _directory: Uuid) -> None:
        pass

    patch.setattr(BrokerLifecycle, "directory_failed", untold)


@pytest.mark.timeout(3_600)
@pytest.mark.parametrize(
    ("plant", "found_last"),
    [
        (high_watermark_ahead_of_the_in_sync_set, 1),
        (vote_not_persisted, 1),
        (truncation_to_the_high_watermark, 1),
        (retention_that_nobody_hears_of, 1),
        (checkpoints_of_a_former_topic, 2),
        (refusals_that_cannot_be_said, 1),
        (zombie_controller, 2),
        (replay_skipped, 1),
        (failed_directory_not_told, 35),
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
