"""Ids at rest are small, are loaded in small steps, and cost nothing as time passes."""

from __future__ import annotations

import logging
import tracemalloc

from penstock.coordinators.decision import StateRecord
from penstock.coordinators.transactions.records import state_record
from penstock.coordinators.transactions.transaction import Status
from penstock.coordinators.transactions.transitions import first
from penstock.kernels import read_header
from penstock.model.ids import ZERO_UUID, Epoch, Millis, Offset, TopicPartition
from penstock.server.coordinating.loading import READ_BYTES, Replay
from penstock.server.coordinating.records import encode_batch
from penstock.server.coordinating.transactions import TRANSACTION_READER, UNCOMPRESSED
from penstock.storage.log import Log
from penstock.storage.settings import PlainLogSettings
from penstock.testing.memory_files import MemoryFiles
from tests.faults.counts import SOAKING
from tests.unit.coordinators.transactions.scene import TIMEOUT_MS, Scene, round_trip

IDS = 100_000 if SOAKING else 3_000
BYTES_MAX = 1_024


def at_rest(scene: Scene, number: int) -> StateRecord:
    """An id whose last transaction was committed, as a pipeline would call it."""
    state = first(10_000_000 + number, TIMEOUT_MS, Millis(scene.wall + number))
    state = state._replace(status=Status.COMPLETE_COMMIT, started_ms=Millis(scene.wall - number), client_version=2)
    return state_record(f"orders-pipeline-{number:07d}", state, 1)


def load(scene: Scene, count: int) -> None:
    for number in range(count):
        scene.shard.apply(round_trip(at_rest(scene, number)), Offset(number))


def log_of(scene: Scene, count: int) -> Log:
    """One record a batch, as coordinators write."""
    now, place = Millis(scene.wall), TopicPartition("__transaction_state", 0)
    log = Log.create(MemoryFiles(), "/d", place, ZERO_UUID, PlainLogSettings(), now=now)
    for number in range(count):
        batch = encode_batch([at_rest(scene, number)], now, UNCOMPRESSED)
        log.append(batch, read_header(batch), epoch=Epoch(0), now=now)
    return log


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


def test_a_load_pauses_after_each_of_them_and_after_each_small_read() -> None:
    """So the slices of whoever runs it end when their few milliseconds are over."""
    scene = Scene()
    log = log_of(scene, IDS)
    loaded = scene.shard.table.transactions
    before, pauses = 0, 0
    for _ in Replay(log, TRANSACTION_READER, scene.shard, logging.getLogger("tests")).steps():
        assert len(loaded) - before <= 1
        before, pauses = len(loaded), pauses + 1
    assert len(loaded) == IDS
    reads = pauses - IDS
    assert 0 < reads <= log.size_bytes // (READ_BYTES // 2) + 1


def test_idle_ids_wake_nobody() -> None:
    scene = Scene()
    load(scene, 1_000)
    table = scene.shard.table
    assert not table.deadlines
    assert not table.prepared
    assert table.next_check is None
    assert scene.shard.led(scene.coordinator_epoch, scene.now) == ()
    assert scene.shard.next_deadline() == scene.tick + 3_600_000
