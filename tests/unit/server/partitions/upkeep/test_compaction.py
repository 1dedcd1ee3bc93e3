"""Compaction beside everything else that happens to a log."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from penstock.model.ids import Offset
from penstock.server.partitions.upkeep.compaction import CompactionDriver
from penstock.storage.clean_job import CleanJob
from penstock.storage.compaction import clean
from penstock.storage.names import LOG, segment_file
from penstock.testing.memory_files import MemoryFiles
from tests.unit.server.partitions.replicas import A, Replicas, walk
from tests.walks.control_plane import LoopOffload


class SlowHelper(LoopOffload):
    """A helper process that opens the files of its log when it is let go."""

    def __init__(self, files: MemoryFiles) -> None:
        self.files, self.let = files, asyncio.Event()

    async def run(self, task: str, arguments: dict[str, Any]) -> dict[str, Any]:  # type: ignore[override]
        assert task == "clean"
        await self.let.wait()
        return clean(self.files, arguments["directory"], CleanJob.from_json(arguments["job"])).to_json()


@pytest.mark.parametrize("taker", ["retention", "truncation", "nobody"])
def test_a_pass_that_misses_what_the_log_gave_up_takes_no_directory_offline(taker: str) -> None:
    async def steps() -> None:
        files = MemoryFiles()
        helper = SlowHelper(files)
        world = Replicas(
            files, directories=(A,), segment_bytes=500, offload=helper,
            cleanup_policy="compact,delete", min_cleanable_dirty_ratio="0", retention_bytes="1",
        )  # fmt: skip
        compaction = CompactionDriver(world.settings, world.partitions, world.checkpoints, world.clock, helper)
        hosted = await world.create("orders", number=1)
        world.produce(hosted, 20)
        target = hosted.require_log()
        cleaning = asyncio.ensure_future(compaction.clean_dirtiest())
        await world.turns(5)
        assert compaction.cleaning is hosted
        match taker:
            case "retention":
                assert target.retain(world.clock.now_ms())
            case "truncation":
                assert target.truncate(Offset(1), now=world.clock.now_ms())
            case "nobody":
                files.remove(f"{A}/orders-0/{segment_file(target.segments[1].base, LOG)}")
        helper.let.set()
        assert await cleaning
        assert bool(world.lost) is (taker == "nobody"), "only a file that went by itself is the disk's"
        assert compaction.runs == 0

    walk(steps)
