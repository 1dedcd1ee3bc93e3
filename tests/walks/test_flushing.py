"""When bytes reach the platter, and what happens when they do not."""

from __future__ import annotations

import asyncio
import errno

from penstock.storage.log import Log
from tests.patience import until, within
from tests.walks.data_plane import Client, Machine, walk


def only_log(machine: Machine) -> Log:
    return next(iter(machine.node.partitions)).require_log()


async def until_flushed(log: Log, end: int) -> None:
    await until(lambda: log.flushed >= end)


def test_flush_ms_bounds_how_long_a_record_stays_unsynced() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders", flush_ms="10")
        await client.produce("orders", b"x")
        await until_flushed(only_log(machine), 1)

    walk(steps)


def test_flush_ms_also_counts_for_what_recovery_found() -> None:
    async def first() -> None:
        await machine.start()
        client = await machine.dial()
        await client.create("orders")
        await client.produce("orders", b"x")
        (hosted,) = machine.node.partitions
        hosted.require_log().flush()  # names and all; only the checkpoint is missing
        await machine.cut_power(lambda _path, unsynced: unsynced, keep_names=True)

    async def second() -> None:
        await machine.start()
        log = only_log(machine)
        assert (log.flushed, log.written) == (0, 1)
        async with asyncio.timeout(within(10)):
            await until_flushed(log, 1)
        await machine.stop()

    machine = Machine(settings={"log.flush.interval.ms": "10"})
    asyncio.run(first())
    asyncio.run(second())


def test_flush_messages_counts_records() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders", flush_messages="5")
        log = only_log(machine)
        await client.produce("orders", b"1", b"2", b"3", b"4")
        assert log.flushed == 0
        await client.produce("orders", b"5")
        await until_flushed(log, 5)

    walk(steps)


def test_a_sealed_segment_is_synced_and_the_recovery_point_follows() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders", segment_bytes="1048576")
        for _ in range(3):
            await client.produce("orders", bytes(500_000))
        log = only_log(machine)
        assert len(log.segments) == 2
        await until_flushed(log, 3)
        assert log.recovery_checkpoint == log.segments[-1].base == 2

    walk(steps)


def test_a_checkpoint_that_cannot_be_written_takes_its_directory_offline() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders")
        await client.produce("orders", b"x")

        def refuse(what: str, path: str) -> None:
            if what == "sync" and path.startswith("/more/node-1/recovery-point"):
                raise OSError(errno.EIO, "sync failed")  # a real one does not name the file either

        machine.files.before = refuse
        first, second = machine.node.broker.store.directories
        while second.online:
            await asyncio.sleep(0.001)
        assert first.online

    walk(
        steps,
        log_dirs="/data/node-1,/more/node-1",
        cordoned_log_dirs="/data/node-1",
        log_flush_offset_checkpoint_interval_ms="10",
    )
