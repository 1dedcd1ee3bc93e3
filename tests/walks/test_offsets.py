"""Where a log begins and ends, and what lies where: ListOffsets, DeleteRecords, OffsetForLeaderEpoch."""

from __future__ import annotations

import asyncio
import errno
from typing import Any

import pytest

from penstock.model.errors import (
    FENCED_LEADER_EPOCH,
    INVALID_TOPIC_EXCEPTION,
    KAFKA_STORAGE_ERROR,
    LEADER_NOT_AVAILABLE,
    NOT_LEADER_OR_FOLLOWER,
    OFFSET_NOT_AVAILABLE,
    OFFSET_OUT_OF_RANGE,
    POLICY_VIOLATION,
    UNKNOWN_LEADER_EPOCH,
    UNKNOWN_TOPIC_OR_PARTITION,
    UNSUPPORTED_VERSION,
)
from penstock.model.ids import OFFSETS_TOPIC
from penstock.protocol.compression import CODECS
from penstock.protocol.messages.delete_records import DeleteRecordsRequest
from penstock.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from tests.walks.data_plane import Client, Machine, at, batch_of, data_of, errors, walk

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING = -1, -2, -3, -4, -5, -6
THEN = 1_600_000_000_000


async def trim(client: Client, topic: str, offset: int, partition: int = 0) -> tuple[int, int]:
    """(error code, low watermark)"""
    made = DeleteRecordsRequest
    wanted = made.DeleteRecordsPartition(partition_index=partition, offset=offset)
    request = made(topics=[made.DeleteRecordsTopic(name=topic, partitions=[wanted])], timeout_ms=5_000)
    (found,) = (await client.ask(request)).topics[0].partitions
    return found.error_code, found.low_watermark


async def end_of_epoch(client: Client, topic: str, epoch: int, current: int = -1) -> Any:
    made = OffsetForLeaderEpochRequest
    wanted = made.OffsetForLeaderPartition(partition=0, leader_epoch=epoch, current_leader_epoch=current)
    request = made(replica_id=-1, topics=[made.OffsetForLeaderTopic(topic=topic, partitions=[wanted])])
    (found,) = (await client.ask(request)).topics[0].partitions
    return found


async def fill(client: Client, topic: str, codec: str = "none") -> None:
    """Ten records a second apart, in five batches; the newest comes before the last."""
    for first in range(0, 8, 2):
        for second in (first, first + 1):
            await client.produce(topic, batch=batch_of(b"x", timestamp=THEN + 1_000 * second, codec=CODECS[codec]))
    await client.produce(topic, batch=batch_of(b"x", timestamp=THEN + 50_000, codec=CODECS[codec]))
    await client.produce(topic, batch=batch_of(b"x", timestamp=THEN + 9_000, codec=CODECS[codec]))


# -- ListOffsets


def test_an_empty_log_begins_and_ends_at_0() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders")
        for special, offset in ((LATEST, 0), (EARLIEST, 0), (EARLIEST_LOCAL, 0), (MAX_TIMESTAMP, -1), (THEN, -1)):
            found = await client.offset("orders", special)
            assert (found.error_code, found.timestamp, found.offset) == (0, -1, offset), special

    walk(steps)


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_times_lead_to_offsets(codec: str) -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders")
        await fill(client, "orders", codec)
        for asked, timestamp, offset in (
            (LATEST, -1, 10),
            (EARLIEST, -1, 0),
            (EARLIEST_LOCAL, -1, 0),
            (MAX_TIMESTAMP, THEN + 50_000, 8),
            (LATEST_TIERED, -1, -1),
            (EARLIEST_PENDING, -1, -1),
            (0, THEN, 0),
            (THEN + 2_500, THEN + 3_000, 3),
            (THEN + 3_000, THEN + 3_000, 3),
            (THEN + 8_000, THEN + 50_000, 8),
            (THEN + 50_001, -1, -1),
        ):
            found = await client.offset("orders", asked)
            assert (found.error_code, found.timestamp, found.offset) == (0, timestamp, offset), asked

    walk(steps)


def test_a_time_within_a_compressed_batch_leads_to_its_record() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        from penstock.kernels import Record
        from penstock.protocol.batch import build_batch

        await client.create("orders")
        records = [Record(index, THEN + 10 * index, None, b"x", ()) for index in range(10)]
        await client.produce("orders", batch=build_batch(records, codec=CODECS["zstd"]))
        found = await client.offset("orders", THEN + 35)
        assert (found.timestamp, found.offset) == (THEN + 40, 4)
        newest = await client.offset("orders", MAX_TIMESTAMP)
        assert (newest.timestamp, newest.offset) == (THEN + 90, 9)

    walk(steps)


def test_special_times_need_their_version() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders")
        for special, since in ((MAX_TIMESTAMP, 7), (EARLIEST_LOCAL, 8), (LATEST_TIERED, 9), (EARLIEST_PENDING, 11)):
            refused = await client.offset("orders", special, version=since - 1)
            assert refused.error_code == UNSUPPORTED_VERSION.code
            assert (await client.offset("orders", special, version=since)).error_code == 0
        assert (await client.offset("orders", EARLIEST_PENDING - 1)).error_code == UNSUPPORTED_VERSION.code

    walk(steps)


def test_offsets_of_unknown_partitions_and_stale_leaders_are_refused() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders")
        for topic, partition in (("orders", 1), ("missing", 0)):
            found = await client.offset(topic, LATEST, partition)
            assert (found.error_code, found.offset) == (UNKNOWN_TOPIC_OR_PARTITION.code, -1)
        future = await client.offset("orders", LATEST, current_leader_epoch=7)
        assert future.error_code == UNKNOWN_LEADER_EPOCH.code

    walk(steps)


def test_a_leader_that_does_not_know_its_end_says_so() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders")
        await client.produce("orders", batch=batch_of(b"x", timestamp=THEN))
        hosted = next(iter(machine.node.partitions))
        hosted.state.epoch_start = 5  # as after an election that found more than is known to be committed
        for asked in (LATEST, THEN + 1):
            assert (await client.offset("orders", asked)).error_code == OFFSET_NOT_AVAILABLE.code
            assert (await client.offset("orders", asked, version=4)).error_code == LEADER_NOT_AVAILABLE.code
        for asked in (EARLIEST, THEN):
            assert (await client.offset("orders", asked)).offset == 0

    walk(steps)


def test_a_disk_that_cannot_be_read_is_told_and_goes_offline() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders")
        await fill(client, "orders")
        other = await machine.dial()
        machine.files.fail("/more", errno.EIO, reads=True)
        assert (await client.offset("orders", THEN + 2_000)).error_code == KAFKA_STORAGE_ERROR.code
        # By then the controller may have heard of it and taken the lead away.
        later = await other.offset("orders", LATEST)
        assert later.error_code in (KAFKA_STORAGE_ERROR.code, NOT_LEADER_OR_FOLLOWER.code)
        assert [directory.online for directory in machine.node.broker.store.directories] == [True, False]

    # The first directory has the metadata and takes no partitions, so that only one of them breaks.
    walk(steps, log_dirs="/data/node-1,/more/node-1", cordoned_log_dirs="/data/node-1")


# -- DeleteRecords


def test_records_before_an_offset_are_deleted() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders")
        await fill(client, "orders")
        assert await trim(client, "orders", 4) == (0, 4)
        assert (await client.offset("orders", EARLIEST)).offset == 4
        assert (await client.offset("orders", 0)).offset == 4
        assert errors(await client.fetch(at("orders", 3))) == [OFFSET_OUT_OF_RANGE.code]
        assert data_of(await client.fetch(at("orders", 4))).log_start_offset == 4
        assert await trim(client, "orders", 2) == (0, 4), "the start never goes back"
        assert (await client.produce("orders", b"x")).log_start_offset == 4

    walk(steps)


def test_minus_1_deletes_everything_that_is_committed() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders")
        await fill(client, "orders")
        assert await trim(client, "orders", -1) == (0, 10)
        assert [(await client.offset("orders", special)).offset for special in (EARLIEST, LATEST)] == [10, 10]
        assert (await client.produce("orders", b"x")).base_offset == 10

    walk(steps)


def test_what_cannot_be_deleted_is_refused() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders")
        await client.create("keyed", cleanup_policy="compact")
        await client.create("both", cleanup_policy="compact,delete")
        await client.produce("orders", b"x")
        await client.produce("both", batch=batch_of(b"x", key=b"k"))
        assert await trim(client, "orders", 2) == (OFFSET_OUT_OF_RANGE.code, -1)
        assert await trim(client, "orders", -2) == (OFFSET_OUT_OF_RANGE.code, -1)
        assert await trim(client, "orders", 0, partition=1) == (UNKNOWN_TOPIC_OR_PARTITION.code, -1)
        assert await trim(client, "keyed", 0) == (POLICY_VIOLATION.code, -1)
        assert await trim(client, "both", 1) == (0, 1)
        await client.create(OFFSETS_TOPIC, cleanup_policy="delete")
        assert await trim(client, OFFSETS_TOPIC, -1) == (INVALID_TOPIC_EXCEPTION.code, -1)
        assert await trim(client, OFFSETS_TOPIC, -1, partition=7) == (UNKNOWN_TOPIC_OR_PARTITION.code, -1)

    walk(steps)


def test_a_waiting_fetch_below_the_new_start_is_told_at_once() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders")
        await fill(client, "orders")
        fetch = client.fetch(at("orders", 5), max_wait_ms=9_000, min_bytes=1 << 20)
        other = await machine.dial()
        while not machine.node.broker.fetches.waiting:
            await asyncio.sleep(0)
        await trim(other, "orders", -1)
        assert errors(await fetch) == [OFFSET_OUT_OF_RANGE.code]

    walk(steps)


def test_the_start_of_a_log_survives_a_clean_stop() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders")
        await fill(client, "orders")
        await trim(client, "orders", 4)
        await machine.stop()
        await machine.start()
        client = await machine.dial()
        assert [(await client.offset("orders", special)).offset for special in (EARLIEST, LATEST)] == [4, 10]

    walk(steps)


# -- OffsetForLeaderEpoch


def test_every_epoch_ends_where_the_next_one_began() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders")
        epochs = []
        for _ in range(3):
            await client.produce("orders", b"x", b"y")
            epochs.append(next(iter(machine.node.partitions)).state.epoch)
            await machine.stop()
            await machine.start()
            client = await machine.dial()
        current = next(iter(machine.node.partitions)).state.epoch
        assert epochs == sorted(set(epochs))
        ends = [await end_of_epoch(client, "orders", epoch) for epoch in epochs]
        assert [(end.leader_epoch, end.end_offset) for end in ends] == [(epochs[0], 2), (epochs[1], 4), (epochs[2], 6)]
        latest = await end_of_epoch(client, "orders", current)
        assert (latest.leader_epoch, latest.end_offset) == (current, 6)
        beyond = await end_of_epoch(client, "orders", current + 5)
        assert (beyond.error_code, beyond.leader_epoch, beyond.end_offset) == (0, -1, -1)

    walk(steps)


def test_who_asks_about_epochs_is_fenced_too() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders")
        await machine.stop()
        await machine.start()
        client = await machine.dial()
        current = next(iter(machine.node.partitions)).state.epoch
        assert (await end_of_epoch(client, "orders", 0, current - 1)).error_code == FENCED_LEADER_EPOCH.code
        assert (await end_of_epoch(client, "orders", 0, current + 1)).error_code == UNKNOWN_LEADER_EPOCH.code
        assert (await end_of_epoch(client, "missing", 0)).error_code == UNKNOWN_TOPIC_OR_PARTITION.code

    walk(steps)
