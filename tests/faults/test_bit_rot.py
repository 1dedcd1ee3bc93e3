"""Any file of a data directory may be damaged: a node starts and serves what is whole, or says which file it is.

Never a traceback of something that nobody foresaw, and never a record that was not written.
"""

from __future__ import annotations

import asyncio
import copy
from random import Random

import pytest

from penstock.model.errors import PenstockError
from penstock.testing.memory_files import MemoryFiles
from tests.faults.counts import SOAKING, rounds
from tests.patience import at_most
from tests.walks.data_plane import Client, Idempotent, Machine, at, data_of, records_in

SETTINGS = {"metadata.log.max.record.bytes.between.snapshots": "2000", "log.dirs": "/data/node-1,/more/node-1"}
TOPICS = {
    "plain": {"segment_ms": "1"},
    "keyed": {"cleanup_policy": "compact"},
    "synced": {"flush_messages": "1"},
}


async def written(machine: Machine) -> dict[str, list[bytes | None]]:
    """A node's first life: topics of several kinds, a few segments each, a snapshot of the metadata."""
    await machine.start()
    client = await machine.dial()
    for name, configs in TOPICS.items():
        await client.create(name, **configs)
    for number in range(20):
        await client.create(f"extra-{number}")
    producer = Idempotent()
    for number in range(8):
        await client.produce("plain", batch=producer.batch(b"plain %d" % number))
        await client.produce("synced", b"synced %d" % number)
        await asyncio.sleep(0.002)
    return {name: await client.values(name) for name in ("plain", "synced")}


def paths_under(files: MemoryFiles, directory: str) -> list[str]:
    found = []
    for name in files.listdir(directory):
        path = f"{directory}/{name}"
        found += paths_under(files, path) if files.isdir(path) else [path]
    return found


def damage(files: MemoryFiles, path: str, chance: Random) -> str:
    """Does one bad thing to one file; says what."""
    data = bytearray(files.read(path))
    what = chance.choice(["flip", "cut", "zeros", "junk", "empty"])
    match what:
        case "flip" if data:
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        case "cut" if data:
            del data[chance.randrange(len(data)) :]
        case "zeros" if data:
            start = chance.randrange(len(data))
            data[start:] = bytes(len(data) - start)
        case "junk":
            data += chance.randbytes(chance.randrange(1, 100))
        case _:
            data.clear()
    file = files.open(path)
    file.truncate(0)
    file.pwritev((bytes(data),), 0)
    file.sync()
    return f"{what} {path}"


async def look(client: Client, topic: str, values: list[bytes | None]) -> None:
    """Whatever is readable was written. Not always at its offset: that lies outside of the checksum, as in Kafka."""
    data = data_of(await client.fetch(at(topic, 0)))
    if data.error_code:
        return
    try:
        found = [record.value for record in records_in(data)]
    except PenstockError:
        return  # a checksum that does not hold: clients find out
    assert set(found) <= set(values), f"{topic} has {set(found) - set(values)}, which nobody wrote"


async def next_life(files: MemoryFiles, values: dict[str, list[bytes | None]]) -> str:
    machine = Machine(files, settings=SETTINGS)
    try:
        await machine.start()
    except PenstockError as refusal:
        if "/" not in str(refusal):
            raise  # it names no file
        return "refused"
    try:
        client = await machine.dial()
        for topic in values:
            await look(client, topic, values[topic])
        produced = await client.produce("extra-0", b"x")
        return "served" if produced.error_code == 0 else "partly served"
    finally:
        async with at_most(15):
            await machine.stop()


@pytest.mark.timeout(3_600 if SOAKING else 120)
@pytest.mark.parametrize("stopped", [True, False], ids=["after a clean stop", "after a crash"])
def test_a_damaged_file_is_survived_or_named(stopped: bool) -> None:
    machine = Machine(settings=SETTINGS)

    async def first() -> dict[str, list[bytes | None]]:
        values = await written(machine)
        if stopped:
            await machine.stop()
        else:
            await machine.cut_power(lambda _path, unsynced: unsynced, keep_names=True)
        return values

    values = asyncio.run(first())
    paths = [path for top in ("/data", "/more") for path in paths_under(machine.files, top)]
    outcomes: dict[str, int] = {}
    for number in rounds(fast=60, full=2_000):
        chance = Random(number)
        files = copy.deepcopy(machine.files)
        what = damage(files, chance.choice(paths), chance)
        try:
            outcome = asyncio.run(next_life(files, values))
        except Exception as surprise:
            raise AssertionError(f"seed {number}: {what}") from surprise
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
    assert outcomes["served"] > 0
