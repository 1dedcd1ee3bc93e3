"""Logs depart: off the loop, many at a time, and never into the directory of the next log of their name."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any, TypeVar

import pytest

from penstock.model.errors import NOT_LEADER_OR_FOLLOWER, Refused
from penstock.model.ids import Epoch, Offset, TopicPartition
from penstock.server.partitions.upkeep import checkpoints
from penstock.server.partitions.upkeep.compaction import CompactionDriver
from penstock.server.partitions.upkeep.driver import UpkeepDriver
from penstock.storage.checkpoints import (
    HIGH_WATERMARKS,
    OFFSET_CHECKPOINTS,
    LeaderEpochCheckpoint,
    OffsetCheckpoint,
)
from tests.unit.server.partitions.replicas import A, Replicas, walk
from tests.walks.control_plane import LoopOffload
from tests.walks.data_plane import TurnsOffload

T = TypeVar("T")
MANY = 200


def spoken_of(world: Replicas) -> set[str]:
    """The topics that any checkpoint on disk has an entry of."""
    return {
        name.topic
        for directory in world.store.directories
        for checkpoint in OFFSET_CHECKPOINTS
        for name in OffsetCheckpoint(world.files, f"{directory.path}/{checkpoint}").read()
    }


def test_many_deletions_cost_a_few_writes_and_none_on_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    # However long they take: the second round begins when somebody asks for it.
    monkeypatch.setattr(checkpoints, "BETWEEN_ROUNDS_MS", 600_000)

    async def steps() -> None:
        world = Replicas()
        for number in range(1, MANY + 1):
            world.produce(await world.create(f"topic-{number}", number=number))
        await world.checkpoints.write(*OFFSET_CHECKPOINTS)
        assert len(spoken_of(world)) == MANY
        writes, syncs = world.checkpoints.writes, world.files.syncs
        world.delete(1)
        assert world.files.syncs == syncs, "the loop waited for no sync"
        for number in range(2, MANY + 1):
            world.delete(number)
            await asyncio.sleep(0)
        await world.settle()
        assert world.checkpoints.writes - writes <= 12
        assert spoken_of(world) == set()
        left = [name for directory in world.store.directories for name in world.files.listdir(directory.path)]
        assert [name for name in left if name.startswith("topic-") and not name.endswith("-delete")] == []

    walk(steps)


def test_a_topic_made_anew_is_refused_until_its_name_is_free_and_served_then() -> None:
    async def steps() -> None:
        offload = TurnsOffload(Random(1))
        world = Replicas(offload=offload)
        world.produce(await world.create("orders", number=1), 5)
        await world.checkpoints.write(*OFFSET_CHECKPOINTS)
        offload.hold()
        world.delete(1)
        making = asyncio.ensure_future(world.create("orders", number=2))
        await world.turns(20)
        assert not making.done()
        with pytest.raises(Refused) as refused:
            world.partitions.named("orders", 0)
        assert refused.value.error is NOT_LEADER_OR_FOLLOWER
        offload.release()
        hosted = await making
        assert hosted.require_log().next == 0
        assert spoken_of(world) == set()

    walk(steps)


def test_a_checkpoint_that_was_being_written_brings_no_entry_back() -> None:
    async def steps() -> None:
        offload = TurnsOffload(Random(1))
        world = Replicas(offload=offload)
        world.produce(await world.create("orders", number=1), 5)
        offload.hold()
        writing = asyncio.ensure_future(world.checkpoints.write(HIGH_WATERMARKS))
        await world.turns(5)
        world.delete(1)
        making = asyncio.ensure_future(world.create("orders", number=2))
        await world.turns(5)
        offload.release()
        await writing
        hosted = await making
        assert spoken_of(world) == set()
        assert hosted.require_log().committed == 0

    walk(steps)


def test_a_sync_that_was_under_way_writes_nothing_into_the_next_log_of_the_name() -> None:
    async def steps() -> None:
        offload = TurnsOffload(Random(1))
        world = Replicas(offload=offload, directories=(A,))
        hosted = await world.create("orders", number=1)
        hosted.require_log().epochs.assign(Epoch(7), Offset(0))
        world.produce(hosted, 5)
        offload.hold()
        hosted.want_sync()
        await world.turns(5)
        world.delete(1)
        making = asyncio.ensure_future(world.create("orders", number=2))
        await world.turns(20)
        offload.release()
        again = await making
        await world.flushes.drain()
        world.produce(again, 1)
        again.want_sync()
        await world.flushes.drain()
        epochs = LeaderEpochCheckpoint(world.files, f"{A}/orders-0/leader-epoch-checkpoint").read()
        assert [entry.epoch for entry in epochs] == [1]

    walk(steps)


class EndlessHelper(LoopOffload):
    """A helper process that would work for ever; it notes where, and that it was ended."""

    def __init__(self) -> None:
        self.directory = ""
        self.ended = False

    async def run(self, task: str, arguments: dict[str, Any]) -> dict[str, Any]:  # type: ignore[override]
        assert task == "clean"
        self.directory = arguments["directory"]
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            self.ended = True
            raise
        return {}


def test_a_helper_that_cleans_a_deleted_log_is_ended_before_the_name_is_free() -> None:
    async def steps() -> None:
        helper = EndlessHelper()
        world = Replicas(
            directories=(A,), segment_bytes=500, cleanup_policy="compact", min_cleanable_dirty_ratio="0", offload=helper
        )
        compaction = CompactionDriver(world.settings, world.partitions, world.checkpoints, world.clock, helper)

        async def at_rest(log: Any) -> None:
            await compaction.at_rest(log)
            await world.flushes.at_rest(log)

        world.checkpoints._at_rest = at_rest
        world.produce(await world.create("orders", number=1), 20)
        cleaning = asyncio.ensure_future(compaction.clean_dirtiest())
        await world.turns(5)
        assert helper.directory == f"{A}/orders-0"
        world.delete(1)
        hosted = await world.create("orders", number=2)
        assert helper.ended
        assert await cleaning
        assert compaction.cleaning is None
        assert hosted.require_log().next == 0

    walk(steps)


class OneAtATime(LoopOffload):
    """Removals wait until they are let go."""

    def __init__(self) -> None:
        self.let = asyncio.Event()

    def call(self, work: Callable[..., T], *args: Any) -> Awaitable[T]:
        async def later() -> T:
            if work.__name__ == "remove":
                await self.let.wait()
            await asyncio.sleep(0)
            return work(*args)

        return later()


def test_files_of_a_deleted_segment_are_not_looked_for_in_the_next_log_of_the_name() -> None:
    async def steps() -> None:
        offload = OneAtATime()
        world = Replicas(directories=(A,), segment_bytes=500, retention_bytes="1", file_delete_delay_ms="0")
        upkeep = UpkeepDriver(
            world.settings, world.partitions, world.store, world.flushes, world.checkpoints, world.clock,
            world.files, offload,
        )  # fmt: skip
        hosted = await world.create("orders", number=1)
        world.produce(hosted, 9)
        assert len(hosted.require_log().retain(world.clock.now_ms())) > 2
        purging = asyncio.ensure_future(upkeep.purge())
        await world.turns(5)
        world.delete(1)
        again = await world.create("orders", number=2)
        world.produce(again, 9)
        assert len(again.require_log().retain(world.clock.now_ms())) > 2
        mine = [name for name in world.files.listdir(f"{A}/orders-0") if name.endswith(".deleted")]
        offload.let.set()
        await purging
        left = [name for name in world.files.listdir(f"{A}/orders-0") if name.endswith(".deleted")]
        # The one removal that was under way may find a namesake; that one is done with too, and nobody reads it.
        assert len(mine) - len(left) <= 1

    walk(steps)


def test_a_cut_log_has_its_recovery_point_written_at_once() -> None:
    async def steps() -> None:
        world = Replicas(directories=(A,), segment_bytes=500, flush_messages="1")
        hosted = await world.create("orders")
        world.produce(hosted, 20)
        await world.flushes.drain()
        await world.checkpoints.write(*OFFSET_CHECKPOINTS)
        log = hosted.require_log()
        log.truncate(Offset(2))
        hosted.cut()
        await world.checkpoints.over()
        path = f"{A}/recovery-point-offset-checkpoint"
        assert OffsetCheckpoint(world.files, path).read() == {TopicPartition("orders", 0): log.recovery_checkpoint}

    walk(steps)


def test_a_log_that_is_cut_while_its_recovery_point_is_written_has_it_written_again() -> None:
    async def steps() -> None:
        offload = TurnsOffload(Random(1))
        world = Replicas(offload=offload, segment_bytes=500, flush_messages="1")
        await world.create("other", number=2)
        hosted = await world.create("orders", number=1)
        world.produce(hosted, 20)
        await world.flushes.drain()
        offload.hold()
        writing = asyncio.ensure_future(world.checkpoints.write(*OFFSET_CHECKPOINTS))
        await world.turns(5)
        log = hosted.require_log()
        log.truncate(Offset(2))
        hosted.cut()
        await world.turns(5)
        offload.release()
        await writing
        await world.checkpoints.over()
        path = f"{world.path_of(hosted)}/recovery-point-offset-checkpoint"
        assert OffsetCheckpoint(world.files, path).read()[hosted.name] == log.recovery_checkpoint

    walk(steps)
