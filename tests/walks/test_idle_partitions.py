"""What a node does about partitions in which nothing happens: as little as can be."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from penstock.protocol.messages.list_offsets import ListOffsetsRequest
from penstock.server.partitions.upkeep import checkpoints
from penstock.server.partitions.upkeep.driver import UpkeepDriver
from penstock.storage.checkpoints import HIGH_WATERMARKS, OffsetCheckpoint
from tests.walks.data_plane import Client, Machine, walk

EARLIEST = -2


def test_only_partitions_with_a_flush_time_are_looked_at_for_it() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("plain", 3)
        await client.create("timed", 2, flush_ms="60000")
        await client.produce("plain", b"x")
        await client.produce("timed", b"x")
        timed = machine.node.partitions.tables.flushed_by_time
        await _until(lambda: len(timed) == 2)
        assert {hosted.name.topic for hosted in timed.values()} == {"timed"}
        await client.delete("timed")
        assert not timed

    walk(steps)


def test_only_partitions_with_deleted_segments_are_looked_at_for_them() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("quiet", 3)
        await client.create("expiring", retention_ms="1", file_delete_delay_ms="0")
        await client.produce("expiring", b"x")
        upkeep, partitions = machine.node.broker.upkeep, machine.node.partitions
        while not partitions.tables.doomed:
            await asyncio.sleep(0.002)
            await upkeep.retain()
        assert {hosted.name.topic for hosted in partitions.tables.doomed.values()} == {"expiring"}
        await _until(lambda: not partitions.tables.doomed, upkeep)
        log = partitions.named("expiring", 0).require_log()
        assert not log.has_doomed
        assert not [name for name in machine.files.listdir(log.directory) if name.endswith(".deleted")]

    walk(steps)


def test_a_log_that_went_while_a_checkpoint_was_made_is_not_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("stays")
        await client.create("goes")
        for topic in ("stays", "goes"):
            await client.produce(topic, b"x")
        broker = machine.node.broker
        directory = broker.store.directories[0]

        async def removed_halfway(_clock: object, things: Iterable[Any], visit: Callable[[Any], object]) -> None:
            for log in list(things):
                visit(log)
            monkeypatch.undo()
            await client.delete("goes")

        # The slices end where we want.
        monkeypatch.setattr(checkpoints, "in_slices", removed_halfway)
        await broker.upkeep.checkpoint_high_watermarks()
        written = OffsetCheckpoint(machine.files, f"{directory.path}/{HIGH_WATERMARKS}").read()
        assert {name.topic: offset for name, offset in written.items()} == {"stays": 1}

    walk(steps)


def test_offsets_of_a_topic_that_was_just_made_are_told_for_all_its_partitions() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        partitions = 300
        await client.create("wide", partitions)
        made = ListOffsetsRequest
        wanted = [made.ListOffsetsPartition(partition_index=index, timestamp=EARLIEST) for index in range(partitions)]
        asked = client.ask(made(replica_id=-1, topics=[made.ListOffsetsTopic(name="wide", partitions=wanted)]))
        (topic,) = (await asked).topics
        assert [(each.partition_index, each.error_code, each.offset) for each in topic.partitions] == [
            (index, 0, 0) for index in range(partitions)
        ]

    walk(steps)


async def _until(condition: Callable[[], bool], upkeep: UpkeepDriver | None = None) -> None:
    while not condition():
        await asyncio.sleep(0.002)
        if upkeep is not None:
            await upkeep.purge()
