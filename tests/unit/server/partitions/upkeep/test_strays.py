"""What the cluster does not know is set aside, kept for as long as asked for, and then deleted; nothing else is."""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import Iterator

import pytest

from penstock.metadata.image import ClusterImage
from penstock.model.config import BrokerSettings
from penstock.model.errors import StorageFailed
from penstock.model.ids import PartitionKey, Uuid
from penstock.server.partitions.upkeep.strays import RETENTION, StrayDriver
from penstock.storage.names import parse_partition_directory
from penstock.testing.memory_files import MemoryFiles
from tests.unit.server.partitions.replicas import A, B, Replicas, walk
from tests.unit.server.served import PROPERTIES

DAY_MS = 86_400_000


@pytest.fixture(autouse=True)
def heard(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.INFO, "penstock.strays"):
        yield caplog


class Broker(Replicas):
    """Starts with what the image knows, and looks after strays."""

    def __init__(self, files: MemoryFiles, image: ClusterImage, retention_ms: int = 7 * DAY_MS, late_ms: int = 0):
        super().__init__(files, image=image)
        self.clock.advance(late_ms)
        settings = BrokerSettings.load({**PROPERTIES, RETENTION: str(retention_ms)})
        self.strays = StrayDriver(settings, self.store, self.clock, self.offload, image=lambda: self.image)

    async def begin(self) -> None:
        self.strays.set_aside()
        self.checkpoints.begin()
        await self.publish()
        await self.settle()
        await self.strays.look()

    async def after(self, ms: int) -> list[str]:
        """What is there of kinds of directories when so much time has passed."""
        self.store.purge(self.clock.monotonic_ms())  # as upkeep does all the time: delays begin with a look
        self.clock.advance(ms)
        await self.strays.look()
        self.store.purge(self.clock.monotonic_ms())
        return self.kinds()

    def kinds(self) -> list[str]:
        found = [parse_partition_directory(name) for path in (A, B) for name in self.files.listdir(path)]
        return sorted(kind.value or "live" for each in found if each is not None for kind in [each[1]])


async def left_behind(records: int = 3) -> Replicas:
    """A node that has a log, and is killed before it hears that the topic is gone."""
    world = Replicas()
    world.produce(await world.create("orders"), records)
    world.files.kill()
    return world


def test_a_stray_stays_for_as_long_as_asked_for_and_then_goes(heard: pytest.LogCaptureFixture) -> None:
    async def steps() -> None:
        world = await left_behind()
        broker = Broker(world.files, ClusterImage())
        await broker.begin()
        assert broker.store.logs == {}
        assert broker.kinds() == ["stray"]
        assert await broker.after(7 * DAY_MS - 1) == ["stray"]
        assert await broker.after(1) == []

    walk(steps)
    warned, told = heard.records
    assert (warned.levelname, told.levelname) == ("WARNING", "INFO")
    assert "orders-0 is not in the metadata; /a/orders-0 is set aside" in warned.getMessage()
    assert "deleted after 2023-11-21 22:13:20 UTC" in warned.getMessage()
    assert f"to keep it, move it to another place, or set {RETENTION} to -1" in warned.getMessage()
    assert "has been set aside since 2023-11-14 22:13:20 UTC and is deleted" in told.getMessage()


def test_its_age_goes_on_through_restarts_and_kills(heard: pytest.LogCaptureFixture) -> None:
    async def steps() -> None:
        world = await left_behind()
        for day in range(7):
            broker = Broker(world.files, ClusterImage(), late_ms=day * DAY_MS)
            await broker.begin()
            assert broker.kinds() == ["stray"], f"on day {day}"
            world.files.kill()
        broker = Broker(world.files, ClusterImage(), late_ms=7 * DAY_MS)
        await broker.begin()
        assert await broker.after(0) == []

    walk(steps)
    found = [
        record.getMessage() for record in heard.records if "was set aside, and deleted after" in record.getMessage()
    ]
    assert len(found) == 7, "every start says when"
    assert {words.partition("deleted after ")[2] for words in found} == {
        f"2023-11-21 22:13:20 UTC: to keep it, move it to another place, or set {RETENTION} to -1"
    }


def test_minus_one_keeps_it_for_ever(heard: pytest.LogCaptureFixture) -> None:
    async def steps() -> None:
        broker = Broker((await left_behind()).files, ClusterImage(), retention_ms=-1)
        await broker.begin()
        assert await broker.after(10_000 * DAY_MS) == ["stray"]

    walk(steps)
    assert f"and stays until somebody removes it ({RETENTION}=-1)" in heard.text


def test_what_the_node_should_have_after_all_is_never_deleted() -> None:
    async def steps() -> None:
        world = await left_behind()
        broker = Broker(world.files, ClusterImage())
        await broker.begin()
        broker.image = world.image  # the metadata was restored, say
        await broker.publish()
        assert await broker.after(100 * DAY_MS) == ["live", "stray"]
        broker.delete()
        await broker.settle()
        assert await broker.after(DAY_MS) == []

    walk(steps)


def test_a_replica_that_was_moved_to_others_goes() -> None:
    async def steps() -> None:
        world = await left_behind()
        moved = Replicas()
        await moved.create("orders", replica=2)
        broker = Broker(world.files, moved.image)
        await broker.begin()
        assert broker.kinds() == ["stray"]
        assert await broker.after(8 * DAY_MS) == []

    walk(steps)


@pytest.mark.parametrize("records", [0, 3])
def test_records_of_which_nobody_can_say_whose_they_are_stay(records: int, heard: pytest.LogCaptureFixture) -> None:
    async def steps() -> None:
        world = await left_behind(records)
        world.files.write_atomic(f"{A}/orders-0/partition.metadata", b"")
        broker = Broker(world.files, ClusterImage())
        await broker.begin()
        assert await broker.after(100 * DAY_MS) == (["stray"] if records else [])

    walk(steps)
    assert ("does not say whose records it has" in heard.text) == bool(records)


def test_a_later_topic_of_the_name_is_not_touched() -> None:
    async def steps() -> None:
        world = await left_behind()
        broker = Broker(world.files, ClusterImage())
        await broker.begin()
        hosted = await broker.create("orders", number=2)
        broker.produce(hosted, 2)
        assert await broker.after(8 * DAY_MS) == ["live"]
        assert hosted.require_log().next == 2
        assert broker.store.get(PartitionKey(Uuid(b"\x02" * 16), 0)) is hosted.log

    walk(steps)


def test_a_disk_that_fails_meanwhile_is_told_like_any_other() -> None:
    async def steps() -> None:
        broker = Broker((await left_behind()).files, ClusterImage())
        broker.strays.set_aside()
        broker.checkpoints.begin()
        await broker.settle()
        (path,) = broker.store.strays
        broker.files.fail(path, errno.EIO)
        with pytest.raises(StorageFailed, match="cannot be looked into") as failed:
            await broker.strays.look()
        broker.partitions.storage_failed(failed.value)
        assert broker.lost == [broker.store.directories[0].id]
        await broker.strays.look()

    walk(steps)


def test_a_stray_whose_disk_fails_while_it_is_looked_into_is_left_alone() -> None:
    async def steps() -> None:
        broker = Broker((await left_behind()).files, ClusterImage(), retention_ms=0)
        broker.strays.set_aside()
        broker.checkpoints.begin()
        await broker.settle()
        looking = asyncio.ensure_future(broker.strays.look())
        await asyncio.sleep(0)
        broker.store.fail(A, "pulled out")
        await looking
        assert broker.kinds() == ["stray"]

    walk(steps)


def test_a_stray_that_somebody_took_away_is_forgotten() -> None:
    async def steps() -> None:
        broker = Broker((await left_behind()).files, ClusterImage())
        broker.strays.set_aside()
        broker.checkpoints.begin()
        await broker.settle()
        for path in broker.store.strays:
            broker.files.rmtree(path)
        await broker.strays.look()
        assert broker.store.strays == {}
        assert all(directory.online for directory in broker.store.directories)

    walk(steps)
