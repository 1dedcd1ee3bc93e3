"""Ids at rest are small, and cost nothing as time passes."""

from __future__ import annotations

import tracemalloc

from penstock.coordinators.transactions.records import state_record
from penstock.coordinators.transactions.transaction import Status
from penstock.coordinators.transactions.transitions import first
from penstock.model.ids import Millis, Offset
from tests.unit.coordinators.transactions.scene import TIMEOUT_MS, Scene, round_trip

IDS = 3_000
BYTES_MAX = 1_024


def load(scene: Scene, count: int) -> None:
    for number in range(count):
        state = first(10_000_000 + number, TIMEOUT_MS, Millis(scene.wall + number))
        state = state._replace(status=Status.COMPLETE_COMMIT, started_ms=Millis(scene.wall - number), client_version=2)
        scene.shard.apply(round_trip(state_record(f"orders-pipeline-{number:07d}", state, 1)), Offset(number))


def bytes_per_id(count: int) -> float:
    scene = Scene()
    load(scene, 10)  # code is compiled by now
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        load(scene, count)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return (after - before) / (count - 10)


def test_an_idle_id_is_small() -> None:
    assert bytes_per_id(IDS) <= BYTES_MAX


def test_idle_ids_wake_nobody() -> None:
    scene = Scene()
    load(scene, 1_000)
    table = scene.shard.table
    assert not table.deadlines
    assert not table.prepared
    assert table.next_check is None
    assert scene.shard.led(scene.coordinator_epoch, scene.now) == ()
    assert scene.shard.next_deadline() == scene.tick + 3_600_000
