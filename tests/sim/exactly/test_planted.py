"""Mistakes that are planted in drivers and tasks, and that the seeds have to find.

`make test` runs the seed that found a mistake last; when that finds it no more, the search goes on from the first one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from typing import Any

import pytest

from penstock.spark.topic_sink.transactions import machine
from penstock.spark.topic_sink.transactions.decided import Verdict
from penstock.spark.topic_sink.transactions.records import Standing
from tests.sim.exactly.driver import Attempt, Driver, _who
from tests.sim.exactly.life import live
from tests.sim.exactly.world import SinkWorld

SEEDS = 600
Plant = Callable[[pytest.MonkeyPatch], None]


def a_decision_is_lost(patch: pytest.MonkeyPatch) -> None:
    """The ledger forgets its last word now and then."""
    write = Driver._write

    def forgetful(self: Driver, standing: Standing, resume: Any) -> None:
        if standing.decision is not None and self.world.rng.random() < 0.1:
            standing = replace(standing, decision=None)
        write(self, standing, resume)

    patch.setattr(Driver, "_write", forgetful)


def a_task_commits(patch: pytest.MonkeyPatch) -> None:
    """An attempt that is done ends its transaction by itself."""
    put = Attempt._was_put

    def eager(self: Attempt, held: bool) -> None:
        if held and not self._left and self.world.rng.random() < 0.1:
            self.world.end(self._asker, _who(self._mine), True, lambda _: None)
        put(self, held)

    patch.setattr(Attempt, "_was_put", eager)


def batches_are_known_by_their_number_alone(patch: pytest.MonkeyPatch) -> None:
    def by_number(standing: Standing, batch: int, _: Any) -> Verdict:
        last = standing.decision
        return Verdict.REPLAY if last is not None and last.batch >= batch + 1 else Verdict.NEW

    patch.setattr(machine, "judge", by_number)


def the_pool_keeps_its_epochs(patch: pytest.MonkeyPatch) -> None:
    """Attempts of the next batch get what attempts of the last one may still have."""
    begin = Driver._begin

    def lazy(self: Driver, ids: list[str], resume: Any) -> None:
        kept = self.__dict__.setdefault("kept", {})
        if all(name in kept for name in ids):
            resume({name: kept[name] for name in ids})
        else:
            begin(self, ids, lambda found: (kept.update(found), resume(found)))

    patch.setattr(Driver, "_begin", lazy)


def aborts_know_transactions_by_name_alone(patch: pytest.MonkeyPatch) -> None:
    """Ids of the pool were in the last decision too, so what a failed batch wrote under them is left open."""
    patch.setattr(machine, "_epoch", lambda prepared: prepared.transactional_id)


def leftovers_are_left(patch: pytest.MonkeyPatch) -> None:
    """A driver that starts does not look for what others left open."""

    def blind(standing: Any, run: str) -> Any:
        return
        yield

    patch.setattr(machine, "_abort_leftovers", blind)


def a_ledger_that_vanished_is_begun_anew(patch: pytest.MonkeyPatch) -> None:
    """Nobody remembers that there was one."""
    patch.setattr(SinkWorld, "mark", property(lambda _: "", lambda *_: None), raising=False)


FOUND_BY: dict[Plant, int] = {
    a_decision_is_lost: 22,
    a_task_commits: 1,
    a_ledger_that_vanished_is_begun_anew: 2,
    batches_are_known_by_their_number_alone: 1,
    the_pool_keeps_its_epochs: 0,
    leftovers_are_left: 5,
    aborts_know_transactions_by_name_alone: 463,
}


@pytest.mark.parametrize("plant", FOUND_BY, ids=lambda plant: plant.__name__)
def test_a_planted_mistake_is_found(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    for seed in chain((FOUND_BY[plant],), range(SEEDS)):
        try:
            live(seed)
        except Exception:
            return
    pytest.fail(f"{plant.__name__} is not found in {SEEDS} seeds")
