"""No schedule of fetches, failures and changes of the in-sync set loses what was committed."""

from __future__ import annotations

import pytest

from penstock.model.ids import NodeId
from penstock.replication.partition import Partition
from tests.unit.replication.replica_world import World

SEEDS, STEPS = 120, 500


def run(seed: int) -> World:
    world = World(seed)
    for _ in range(STEPS):
        world.step()
    return world


def test_what_is_committed_is_held_by_everybody_in_sync() -> None:
    worlds = [run(seed) for seed in range(SEEDS)]
    assert sum(len(world.committed) for world in worlds) > 10 * SEEDS, "the schedules commit something"
    assert sum(world.expansions for world in worlds) > SEEDS, "followers come back into sync"
    assert sum(world.elections for world in worlds) > SEEDS, "leaders change"


def fails(monkeypatch: pytest.MonkeyPatch, name: str, broken: object) -> bool:
    monkeypatch.setattr(Partition, name, broken)
    for seed in range(10 * SEEDS):
        try:
            run(seed)
        except AssertionError:
            return True
    return False


def test_the_oracle_notices_a_high_watermark_that_does_not_wait_for_a_joining_follower(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def only_committed(partition: Partition) -> frozenset[NodeId]:
        return partition.isr

    monkeypatch.setattr(Partition, "_is_awaited", lambda *_: False)
    assert fails(monkeypatch, "maximal_isr", property(only_committed))


def test_the_oracle_notices_a_follower_let_in_before_it_has_what_earlier_leaders_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def too_soon(partition: Partition, node: NodeId, state: object, now: object) -> bool:
        epoch = partition.followers[node].broker_epoch
        return epoch is not None and partition.eligible(node, epoch)

    assert fails(monkeypatch, "_could_join", too_soon)
