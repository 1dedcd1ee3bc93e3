"""Markers: told once or twice, in parts, refused, and decided again in another epoch."""

from __future__ import annotations

import dataclasses

import pytest

from penstock.coordinators.transactions.markers import TRANSACTIONS_PER_STEP
from penstock.model.errors import INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED, ErrorCode
from penstock.protocol.disk.transaction_records import TransactionLogValue
from tests.unit.coordinators.transactions.scene import P0, P1, P2, Scene

PID = 1_000


def prepared(*, commits: bool = True, version: int = 2) -> Scene:
    scene = Scene()
    scene.at("Empty", 5)
    scene.add(PID, 5, P0, P1, P2, version=version)
    assert scene.end(PID, 5, commit=commits, version=5 if version == 2 else 4)[0] == 0
    return scene


@pytest.mark.parametrize("commits", [True, False])
def test_all_markers_complete_the_transaction(commits: bool) -> None:
    scene = prepared(commits=commits)
    scene.mark_all()
    assert scene.stands() == ("CompleteCommit" if commits else "CompleteAbort", PID, 6)
    assert scene.state().partitions == frozenset()


def test_telling_it_twice_changes_nothing() -> None:
    scene = prepared()
    (effect,) = scene.mark_all()
    written = len(scene.log)
    scene.effects = [effect]
    scene.mark_all()
    assert len(scene.log) == written


def test_the_markers_of_a_former_transaction_do_not_complete_the_next() -> None:
    """Of a classic client they are alike in everything but their number."""
    scene = prepared(version=0)
    (effect,) = scene.mark_all()
    scene.add(PID, 5, P0, P1, P2, version=0)
    scene.end(PID, 5, commit=True, version=4)
    assert scene.effects == [dataclasses.replace(effect, number=effect.number + 1)]
    scene.effects = [effect]
    scene.mark_all()
    assert scene.stands() == ("PrepareCommit", PID, 5)


@pytest.mark.parametrize("field", ["number", "coordinator_epoch"])
def test_markers_of_another_effect_complete_nothing(field: str) -> None:
    scene = prepared()
    (effect,) = scene.effects
    scene.effects = [dataclasses.replace(effect, **{field: getattr(effect, field) - 1})]
    scene.mark_all()
    assert scene.stands() == ("PrepareCommit", PID, 6)


def test_partitions_can_be_told_one_by_one() -> None:
    scene = prepared()
    (effect,) = scene.effects
    scene.mark(effect, [P1])
    assert [(topic.topic, topic.partitions) for topic in scene.shard.describe("copy").topics] == [("out", [0, 2])]
    scene.mark(effect, [P1, P0])
    assert scene.stands() == ("PrepareCommit", PID, 6)
    scene.mark(effect, [P2])
    assert scene.stands() == ("CompleteCommit", PID, 6)
    assert not scene.shard.table.unmarked


def test_progress_is_in_no_record_so_all_partitions_are_marked_again() -> None:
    scene = prepared()
    (effect,) = scene.effects
    scene.mark(effect, [P0, P1])
    scene.effects.clear()
    scene.lead(8)
    assert scene.effects == [dataclasses.replace(effect, coordinator_epoch=8, number=2)]
    assert [topic.partitions for topic in scene.shard.describe("copy").topics] == [[0, 1, 2]]
    scene.mark(effect, [P0, P1, P2])  # of the former epoch
    assert scene.stands() == ("PrepareCommit", PID, 6)
    scene.mark_all()
    assert scene.stands() == ("CompleteCommit", PID, 6)


@pytest.mark.parametrize("error", [INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED])
def test_markers_that_are_refused_wait_for_the_next_epoch(error: ErrorCode) -> None:
    scene = prepared()
    (effect,) = scene.effects
    written = len(scene.log)
    scene.carry_out(scene.shard.markers_refused(effect, error, scene.now))
    assert scene.shard.table.refused == {"copy": error}
    assert scene.stands() == ("PrepareCommit", PID, 6)
    assert len(scene.log) == written
    scene.effects.clear()
    scene.lead(8)
    assert not scene.shard.table.refused
    scene.mark_all()
    assert scene.stands() == ("CompleteCommit", PID, 6)


def test_nothing_follows_from_an_epoch_when_nothing_is_prepared() -> None:
    scene = Scene()
    scene.at("Ongoing", 5)
    assert scene.shard.led(scene.coordinator_epoch, scene.now) == ()


def test_the_epoch_counts_at_once_and_what_is_prepared_meanwhile_is_not_decided_twice() -> None:
    scene = prepared()
    scene.init(name="other")
    scene.add(PID + 1, 0, name="other")
    scene.effects.clear()
    scene.coordinator_epoch = type(scene.coordinator_epoch)(8)
    steps = scene.shard.led(scene.coordinator_epoch, scene.now)
    scene.end(PID + 1, 0, commit=True, name="other")
    for decision in steps:
        scene.carry_out(decision)
    assert [(effect.transactional_id, effect.coordinator_epoch) for effect in scene.effects] == [
        ("other", 8),
        ("copy", 8),
    ]


def test_many_are_decided_again_step_by_step() -> None:
    scene = Scene()
    names = [f"id-{number}" for number in range(TRANSACTIONS_PER_STEP + 5)]
    for number, name in enumerate(names):
        scene.init(name=name)
        scene.add(PID + number, 0, name=name)
        scene.end(PID + number, 0, commit=True, name=name)
    scene.effects.clear()
    steps = list(scene.shard.led(scene.coordinator_epoch, scene.now))
    assert [len(decision.effects) for decision in steps] == [TRANSACTIONS_PER_STEP, 5]


def test_what_is_loaded_without_partitions_is_completed_without_markers() -> None:
    """Kafka writes the abort of nothing in two batches; its coordinator may have died in between."""
    scene = Scene()
    scene.at("Empty", 5)
    scene.end(PID, 5, commit=False)
    dropped = scene.log.pop()
    assert isinstance(dropped.value, TransactionLogValue)
    scene.fail_over()
    assert scene.stands() == ("CompleteAbort", PID, 6)
    assert not scene.effects
