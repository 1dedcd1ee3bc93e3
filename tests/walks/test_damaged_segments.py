"""A damaged segment costs its readers an error, the node's log names it, and nobody else notices."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from penstock.kernels import scan_batches
from penstock.model.errors import CORRUPT_MESSAGE, PenstockError
from penstock.protocol.messages.list_offsets import ListOffsetsRequest
from tests.walks.data_plane import Client, Machine, at, data_of, records_in, walk

DIRECTORY = "/data/node-1/damaged-0"
SEALED = f"{DIRECTORY}/{0:020d}.log"
COUNT = 20
DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "scribbled": lambda data: b"\x93" * len(data),
    "zeroed": lambda data: bytes(len(data)),
    "emptied": lambda _: b"",
    "halved": lambda data: data[: len(data) // 2],
}


async def stopped(machine: Machine, client: Client) -> None:
    """Two topics with a sealed segment and more; the node has stopped."""
    for name in ("damaged", "sound"):
        await client.create(name, segment_bytes="1048576", index_interval_bytes="200")
        for number in range(COUNT):
            await client.produce(name, b"%d" % number * 60_000)
    await machine.stop()
    assert machine.files.exists(SEALED)


async def time_of(client: Client, timestamp: int) -> int:
    """The error that a search by time is answered with."""
    wanted = ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    topic = ListOffsetsRequest.ListOffsetsTopic(name="damaged", partitions=[wanted])
    reply = await client.ask(ListOffsetsRequest(topics=[topic]), 6)
    error: int = reply.topics[0].partitions[0].error_code
    return error


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_segment_is_told_to_its_readers_and_named_once(damage: str, caplog: pytest.LogCaptureFixture) -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await stopped(machine, client)
        assert len([name for name in machine.files.listdir(DIRECTORY) if name.endswith(".log")]) > 1
        machine.files.write_atomic(SEALED, DAMAGES[damage](machine.files.read(SEALED)))
        await machine.start()
        client = await machine.dial()
        for _ in range(3):
            reply = await client.fetch(at("damaged", 9), at("sound", 9))
            bad, good = (topic.partitions[0] for topic in reply.responses)
            assert bad.error_code == CORRUPT_MESSAGE.code
            assert good.error_code == 0
            assert records_in(good)
            assert await time_of(client, 1) == CORRUPT_MESSAGE.code
        named = [record for record in caplog.records if SEALED in record.getMessage()]
        assert 1 <= len(named) <= 2

    with caplog.at_level(logging.ERROR):
        walk(steps)


def test_what_stands_before_the_damage_is_read() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await stopped(machine, client)
        sound = machine.files.read(SEALED)
        third = next(position for position, header in scan_batches(sound) if header.base_offset == 3)
        for data in (sound[: third + 70], sound[:third] + bytes(len(sound) - third)):
            machine.files.write_atomic(SEALED, data)
            await machine.start()
            client = await machine.dial()
            told = data_of(await client.fetch(at("damaged", 0)))
            assert [record.offset for record in records_in(told)] == [0, 1, 2]
            assert data_of(await client.fetch(at("damaged", 3))).error_code == CORRUPT_MESSAGE.code
            await machine.stop()
        await machine.start()

    walk(steps)


@pytest.mark.parametrize("more", [b"\x93" * 100, bytes(100), bytes(5)])
def test_bytes_behind_the_last_batch_of_a_segment_go(more: bytes) -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await stopped(machine, client)
        sound = machine.files.read(SEALED)
        machine.files.write_atomic(SEALED, sound + more)
        await machine.start()
        client = await machine.dial()
        assert await time_of(client, 1) == 0
        assert await client.values("damaged") == [b"%d" % number * 60_000 for number in range(COUNT)]
        assert machine.files.read(SEALED) == sound

    walk(steps)


def test_a_segment_that_is_gone_after_a_stop_is_named_and_the_log_does_not_begin_behind_it() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await stopped(machine, client)
        machine.files.remove(SEALED)
        with pytest.raises(PenstockError, match=SEALED):
            await machine.start()

    walk(steps)
