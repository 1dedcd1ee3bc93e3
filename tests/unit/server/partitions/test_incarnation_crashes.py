"""A topic is deleted and made anew, moved and taken away, and the node stops between any two changes to the disk.

Whatever was promised of the topic that the metadata has is there afterwards, and nothing of another one of its name.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable
from typing import NamedTuple

import pytest

from penstock.kernels import read_header, scan_batches
from penstock.metadata.image import ClusterImage
from penstock.model.ids import Epoch, Offset, PartitionKey, Uuid
from penstock.protocol.disk.metadata_topics import PartitionChangeRecord
from penstock.server.partitions import relocation_driver
from penstock.server.partitions.hosted import Hosted
from penstock.server.partitions.upkeep import checkpoints
from penstock.storage.checkpoints import OFFSET_CHECKPOINTS, OffsetCheckpoint
from penstock.testing.memory_files import MemoryFiles
from tests.unit.server.partitions.replicas import ME, A, B, Replicas, content, walk
from tests.unit.storage.batches import batch

SEGMENT_BYTES = 800
TOPIC = "orders"
SOMEBODY_ELSE = 9


class Life(NamedTuple):
    """What one topic got while it was here: its batches, and how many of them are promised whatever happens."""

    number: int
    batches: list[bytes]
    synced: list[int]


class Moment(NamedTuple):
    change: str
    files: MemoryFiles
    image: ClusterImage
    life: Life
    written: int
    synced: int
    trimmed: int


class Film:
    """Takes a picture before each change to the disk."""

    def __init__(self) -> None:
        self.world = Replicas(segment_bytes=SEGMENT_BYTES, flush_messages="1")
        self.lives: list[Life] = []
        self.written: dict[int, set[bytes]] = {}
        self.moments: list[Moment] = []
        self.trimmed = 0

    # -- what happens to the topic

    async def make(self) -> Hosted:
        self.lives.append(Life(len(self.lives) + 1, [], [0]))
        self.trimmed = 0
        hosted = await self.world.create(TOPIC, number=self.lives[-1].number)
        assert hosted.require_log().next == 0
        return hosted

    async def delete(self) -> None:
        self.world.delete(self.lives[-1].number)
        await self.world.partitions.taken_up()

    async def take_away_and_give_back(self) -> Hosted:
        life = self.lives[-1]
        for replica in (SOMEBODY_ELSE, ME):
            before = self.world.image.copy()
            self._apply(
                PartitionChangeRecord(
                    partition_id=0, topic_id=self._topic_id, replicas=[replica], isr=[replica], leader=replica
                )
            )
            # The same topic in a new life: what this node had of it is no longer its to keep.
            self.lives[-1] = life = Life(life.number, [], [0])
            self.trimmed = 0
            await self.world.publish(before)
        return self.world.partitions.named(TOPIC, 0)

    def _apply(self, record: object) -> None:
        image = self.world.image
        image.apply(record, Offset(image.offset + 1), Epoch(0))  # type: ignore[arg-type]  # any metadata record

    @property
    def _topic_id(self) -> Uuid:
        return Uuid(bytes([self.lives[-1].number]) * 16)

    async def produce(self, hosted: Hosted, count: int) -> None:
        life, clock = self.lives[-1], self.world.clock
        for _ in range(count):
            value = b"%d-%06d " % (life.number, len(life.batches)) * 9
            data = batch(value=value, timestamp=clock.now_ms(), producer=(7, 0, len(life.batches)))
            ticket = hosted.append(data, read_header(data), -1, clock.now_ms())
            life.batches.append(bytes(data))
            self.written.setdefault(life.number, set()).add(bytes(data))

            def acknowledged(life: Life = life, end: Offset = ticket.end) -> None:
                if hosted.log is not None and hosted.log.flushed >= end:
                    life.synced[0] = max(life.synced[0], end)

            hosted.when_flushed(ticket.end, acknowledged)
            await asyncio.sleep(0)
        await self.world.flushes.drain()

    async def trim(self, hosted: Hosted, to: int) -> None:
        hosted.require_log().advance_start(Offset(to))
        self.trimmed = to
        await self.write_checkpoints()

    async def write_checkpoints(self) -> None:
        await self.world.checkpoints.write(*OFFSET_CHECKPOINTS)

    # -- filming

    def begin(self) -> None:
        files = self.world.files

        def take(change: str, path: str) -> None:
            if path.endswith(".tmp") and change != "rename":
                return  # nobody reads it before it has another name
            files.before = None
            life = self.lives[-1]
            moment = Moment(
                f"{change} {path}", copy.deepcopy(files), self.world.image.copy(), life,
                len(life.batches), life.synced[0], self.trimmed,
            )  # fmt: skip
            self.moments.append(moment)
            files.before = take

        files.before = take


async def deleted_and_made_anew(film: Film) -> None:
    hosted = await film.make()
    await film.produce(hosted, 30)
    await film.trim(hosted, 8)
    film.begin()
    await film.delete()
    hosted = await film.make()
    await film.produce(hosted, 20)
    await film.trim(hosted, 18)
    await film.delete()
    hosted = await film.make()
    await film.produce(hosted, 9)
    await film.write_checkpoints()
    await film.produce(hosted, 3)
    await film.world.settle()


async def moved_deleted_and_made_anew(film: Film) -> None:
    hosted = await film.make()
    await film.produce(hosted, 9)
    await film.trim(hosted, 3)
    film.begin()
    film.world.relocations.alter(TOPIC, 0, B)
    await film.produce(hosted, 5)
    await film.world.settle()
    await film.trim(hosted, 4)
    film.world.relocations.alter(TOPIC, 0, A)
    await film.produce(hosted, 5)
    await film.world.settle()
    film.world.relocations.alter(TOPIC, 0, B)
    await film.world.turns(4)
    await film.delete()
    hosted = await film.make()
    await film.produce(hosted, 9)
    film.world.relocations.alter(TOPIC, 0, B if film.world.path_of(hosted) == A else A)
    await film.produce(hosted, 5)
    await film.world.settle()
    await film.write_checkpoints()
    await film.produce(hosted, 5)
    await film.world.settle()


async def taken_away_and_given_back(film: Film) -> None:
    hosted = await film.make()
    await film.produce(hosted, 20)
    await film.trim(hosted, 8)
    film.begin()
    hosted = await film.take_away_and_give_back()
    await film.produce(hosted, 14)
    await film.write_checkpoints()
    await film.produce(hosted, 3)
    await film.world.settle()


STORIES = [deleted_and_made_anew, moved_deleted_and_made_anew, taken_away_and_given_back]


@pytest.fixture(scope="module", params=STORIES, ids=lambda story: story.__name__)
def film(request: pytest.FixtureRequest) -> Film:
    patch = pytest.MonkeyPatch()
    patch.setattr(relocation_driver, "CHUNK_BYTES", 1_000)
    patch.setattr(relocation_driver, "TAIL_BYTES", 400)
    patch.setattr(checkpoints, "BETWEEN_ROUNDS_MS", 1)
    made: list[Film] = []

    async def tell() -> None:
        made.append(Film())
        await request.param(made[0])
        made[0].world.files.before = None

    try:
        walk(tell)
    finally:
        patch.undo()
    return made[0]


def killed(files: MemoryFiles) -> None:
    files.kill()


def cut_off(files: MemoryFiles) -> None:
    files.crash()


def cut_off_with_names(files: MemoryFiles) -> None:
    """All names reached the platter, and no byte that was not synced."""
    files.crash(keep_names=True)


async def begin_again(files: MemoryFiles, image: ClusterImage) -> Replicas:
    """What a broker does when it starts."""
    world = Replicas(files, image=image.copy(), segment_bytes=SEGMENT_BYTES, flush_messages="1")
    known = {
        PartitionKey(topic.id, index)
        for topic in image.topics.values()
        for index, partition in enumerate(topic.partitions)
        if ME in partition.replicas
    }
    for key in set(world.store.logs) - known:
        world.store.set_aside(key, now=world.clock.now_ms())
    for key in set(world.store.futures) - known:
        world.store.let_go(key, now=world.clock.now_ms(), future=True)
    world.checkpoints.begin()
    await world.publish()
    return world


@pytest.mark.parametrize("stop", [killed, cut_off, cut_off_with_names])
def test_a_node_may_stop_anywhere(film: Film, stop: Callable[[MemoryFiles], None]) -> None:
    assert len(film.moments) > 50, "a test of nothing proves nothing"
    assert any(moment.change == f"rename {A}/{TOPIC}-0" for moment in film.moments), "a log left its name"

    async def look(moment: Moment) -> None:
        files = copy.deepcopy(moment.files)
        stop(files)
        world = await begin_again(files, moment.image)
        topic = moment.image.topic(TOPIC)
        if topic is not None and ME in topic.partitions[0].replicas:
            hosted = world.partitions.named(TOPIC, 0)
            log = hosted.require_log()
            promised = moment.written if stop is killed else moment.synced
            found = content(log)
            batches = [found[position : position + header.size] for position, header in scan_batches(found)]
            assert set(batches) <= film.written.get(moment.life.number, set()), "nothing of another topic of this name"
            if moment.written:
                assert log.log_start <= moment.trimmed
                assert log.next >= promised
                expected = moment.life.batches[log.log_start :]
                assert batches[: promised - log.log_start] == expected[: promised - log.log_start]
        world.relocations.resume()
        await world.settle()
        await world.checkpoints.write(*OFFSET_CHECKPOINTS)
        living = {(log.home, log.name) for log in world.store.logs.values()}
        for directory in (A, B):
            for checkpoint in OFFSET_CHECKPOINTS:
                spoken_of = OffsetCheckpoint(files, f"{directory}/{checkpoint}").read()
                assert {(directory, name) for name in spoken_of} <= living

    for moment in film.moments:
        try:
            walk(lambda moment=moment: look(moment))  # type: ignore[misc]
        except BaseException as broken:
            broken.add_note(f"stopped before: {moment.change}")
            raise
