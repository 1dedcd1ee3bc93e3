"""The coordinator's part of the twelve scripts of the facts (`must hold` is the last assertion of each)."""

from __future__ import annotations

import dataclasses

import pytest

from tests.unit.coordinators.transactions.scene import P0, P1, P2, TIMEOUT_MS, Scene

PID = 1_000


def test_script_1_late_end() -> None:
    scene = Scene()
    scene.at("Ongoing", 4)
    assert scene.end(PID, 4, commit=True) == (0, PID, 5)
    scene.mark_all()
    assert scene.add(PID, 5, P1) == 0
    before = scene.state()
    assert scene.end(PID, 4, commit=True) == (90, -1, -1)
    assert scene.state() == before


def test_script_2_late_produce_of_a_classic_client() -> None:
    """Step 3b: the leader never saw the marker, and asks."""
    for level in (1, 2):
        scene = Scene(level)
        scene.at("Ongoing", 4, version=0)
        scene.wait(TIMEOUT_MS + 10_000)
        scene.mark_all()
        assert scene.stands() == ("CompleteAbort", PID, 5)
        assert scene.verify(PID, 4, P1)[P1].code == 90


def test_script_3_verification_says_no_to_a_partition_of_the_transaction_before() -> None:
    scene = Scene()
    scene.at("Ongoing", 4, version=0)
    assert scene.verify(PID, 4)[P0].code == 0
    scene.end(PID, 4, commit=False, version=4)
    scene.mark_all()
    assert scene.verify(PID, 4)[P0].code == 120
    scene.add(PID, 4, P1, version=0)
    assert scene.verify(PID, 4)[P0].code == 120


def test_script_4_overtaken_marker() -> None:
    scene = Scene()
    scene.at("Ongoing", 4)
    assert scene.end(PID, 4, commit=True) == (0, PID, 5)
    assert scene.add(PID, 5) == 51
    scene.mark_all()
    assert scene.add(PID, 5) == 0
    assert scene.stands() == ("Ongoing", PID, 5)


def test_script_5_the_coordinator_dies_behind_prepare() -> None:
    scene = Scene()
    scene.at("Empty", 4)
    scene.add(PID, 4, P0, P1)
    assert scene.end(PID, 4, commit=True) == (0, PID, 5)
    (first,) = scene.effects
    scene.mark(first, [P0])
    scene.effects.clear()
    scene.fail_over()
    assert scene.effects == [dataclasses.replace(first, coordinator_epoch=8)]
    assert scene.end(PID, 4, commit=True)[0] == 51
    scene.mark_all()
    assert scene.end(PID, 4, commit=True) == (0, PID, 5)


def test_script_5b_prepare_was_not_committed() -> None:
    scene = Scene()
    scene.at("Ongoing", 4)
    scene.held = True
    scene.end(PID, 4, commit=True)
    assert not scene.effects
    scene.fail_over(lose=True)
    assert not scene.effects
    assert scene.end(PID, 4, commit=False) == (0, PID, 5)
    assert scene.stands() == ("PrepareAbort", PID, 5)


def test_script_5c_prepare_was_kept_and_is_acted_on_only_when_it_is_committed() -> None:
    """Kafka does not wait here: what only one replica has could be acted on and then be lost with it."""
    scene = Scene()
    scene.at("Ongoing", 4)
    scene.held = True
    scene.end(PID, 4, commit=True)
    scene.shard = scene.replayed()
    scene._waiting.clear()
    scene.held = True
    list(map(scene.carry_out, scene.shard.loaded(scene.now)))
    scene.lead(8)
    assert not scene.effects
    scene.commit()
    assert [effect.coordinator_epoch for effect in scene.effects] == [8]


def test_script_6_zombie_coordinator() -> None:
    scene = Scene()
    scene.at("Ongoing", 4)
    scene.end(PID, 4, commit=True)
    (late,) = scene.effects
    scene.effects.clear()
    scene.fail_over()
    scene.mark_all()
    assert scene.add(PID, 5) == 0
    scene.carry_out(scene.shard.markers_written(late, scene.now))
    assert scene.stands() == ("Ongoing", PID, 5)


@pytest.mark.parametrize("by", ["end", "time"])
def test_script_7_overflow(by: str) -> None:
    scene = Scene()
    scene.at("Ongoing", 32_766)
    following = (PID + 1, 0)
    if by == "end":
        assert scene.end(PID, 32_766, commit=True) == (0, *following)
    else:
        scene.wait(TIMEOUT_MS + 10_000)
    assert scene.add(*following) == 51
    (effect,) = scene.mark_all()
    assert (effect.producer_id, effect.producer_epoch) == (PID, 32_767)
    assert scene.end(PID, 32_766, commit=by == "end") == (0, *following)
    assert scene.add(*following) == 0
    assert scene.end(PID, 32_766, commit=by == "end")[0] == 49


def test_script_8_commit_against_time() -> None:
    scene = Scene()
    scene.at("Ongoing", 4)
    scene.wait(TIMEOUT_MS + 10_000)
    assert scene.end(PID, 4, commit=True)[0] == 51
    scene.mark_all()
    assert scene.end(PID, 4, commit=True)[0] == 48


def test_script_8b_commit_comes_first() -> None:
    scene = Scene()
    scene.at("Ongoing", 4)
    scene.tick += TIMEOUT_MS + 10_000
    assert scene.end(PID, 4, commit=True) == (0, PID, 5)
    for decision in scene.shard.expire(scene.now):
        scene.carry_out(decision)
    assert scene.stands() == ("PrepareCommit", PID, 5)


def test_script_9_fencing() -> None:
    scene = Scene()
    scene.at("Ongoing", 4)
    assert scene.init()[0] == 51
    scene.mark_all()
    assert scene.end(PID, 4, commit=False) == (0, PID, 5)
    assert scene.init() == (0, PID, 6)
    assert scene.add(PID, 5) == 90
    assert scene.end(PID, 5, commit=False)[0] == 90
    assert scene.verify(PID, 5)[P0].code == 90
    assert scene.init(PID, 5)[0] == 90


def test_script_10_offsets_are_marked_like_any_partition() -> None:
    scene = Scene()
    scene.at("Empty", 4)
    assert scene.add_offsets(PID, 4, "g") == 0
    scene.end(PID, 4, commit=True, version=4)
    (effect,) = scene.effects
    ((topic, _index),) = effect.partitions
    assert topic == "__consumer_offsets"


def test_script_11_the_leader_of_a_partition_moves_and_the_coordinator_need_not_know() -> None:
    scene = Scene()
    scene.at("Ongoing", 4)
    scene.fail_over()
    assert scene.verify(PID, 4)[P0].code == 0
    assert scene.end(PID, 4, commit=False)[0] == 0
    (effect,) = scene.effects
    assert (effect.partitions, effect.commits) == ((P0,), False)


def test_script_12_forgotten_partition() -> None:
    scene = Scene()
    scene.at("Ongoing", 4)
    scene.held = True
    scene.add(PID, 4, P2)
    scene.fail_over(lose=True)
    assert scene.verify(PID, 4, P2)[P2].code == 120
    assert scene.add(PID, 4, P2) == 0
    scene.end(PID, 4, commit=True)
    (effect,) = scene.effects
    scene.mark(effect, [P0])
    assert scene.stands() == ("PrepareCommit", PID, 5)
    assert [(topic.topic, topic.partitions) for topic in scene.shard.describe("copy").topics] == [("out", [2])]
    scene.mark(effect, [P2])  # it has a leader again, or is deleted
    assert scene.stands() == ("CompleteCommit", PID, 5)
