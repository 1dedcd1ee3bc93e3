"""The replicas of one broker on files in memory, with everything that moves them and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any

from penstock.kernels import read_header, scan_batches
from penstock.metadata.difference import delta_between
from penstock.metadata.image import ClusterImage
from penstock.model.config import BrokerSettings
from penstock.model.ids import Epoch, NodeId, Offset, PartitionKey, Uuid
from penstock.protocol.disk.metadata_topics import PartitionRecord, RemoveTopicRecord, TopicRecord
from penstock.server.partitions.hosted import Hosted
from penstock.server.partitions.neighbours import Neighbours
from penstock.server.partitions.partition_driver import PartitionDriver
from penstock.server.partitions.relocation_driver import RelocationDriver
from penstock.server.partitions.upkeep.checkpoints import CheckpointDriver
from penstock.server.partitions.upkeep.flushing import FlushDriver
from penstock.storage.log import Log
from penstock.storage.store import LogStore
from penstock.testing.memory_files import MemoryFiles
from tests.patience import within
from tests.unit.server.served import PROPERTIES
from tests.unit.storage.batches import batch
from tests.walks.control_plane import LoopOffload, ManualClock, Overridden

A, B = "/a", "/b"
ME = NodeId(1)
UNBOUNDED = 1 << 62


class Replicas:
    """Topics are made by `create`; each has one partition, led from here."""

    def __init__(
        self,
        files: MemoryFiles | None = None,
        *,
        directories: Sequence[str] = (A, B),
        rate: int = UNBOUNDED,
        image: ClusterImage | None = None,
        segment_bytes: int = 0,
        offload: Any = None,
        **configs: str,
    ) -> None:
        self.files = files or MemoryFiles()
        self.offload = offload or LoopOffload()
        self.clock = ManualClock()
        self.settings = BrokerSettings.load(PROPERTIES)
        self.configs = {name.replace("_", "."): value for name, value in configs.items()}
        self.image = image or ClusterImage()
        self.rate = rate
        self.segment_bytes = segment_bytes
        self.cleaning: Hosted | None = None
        self.lost: list[Uuid] = []
        self.moved: list[PartitionKey] = []
        self._uuids = 0
        self.store = LogStore(
            self.files, directories, settings_for=lambda _name: self.topic_settings(), new_uuid=self.new_uuid
        )
        for directory in directories:
            self.files.makedirs(directory)
        self.files.sync_dir("/")
        self.store.open(cluster_id="cluster", node_id=ME, now=self.clock.now_ms())
        self.flushes = FlushDriver(self.clock, self.offload, self.store.directory_failed)
        self.checkpoints = CheckpointDriver(
            self.store,
            self.clock,
            self.offload,
            storage_failed=self.store.directory_failed,
            at_rest=self.flushes.at_rest,
        )
        self.partitions = PartitionDriver(
            ME,
            self.store,
            self.clock,
            settings=Overridden(self.topic_settings),
            lag_time_max_ms=30_000,
            on_unsynced=self.flushes.want,
            on_directory_lost=self.lost.append,
            neighbours=Neighbours(ME, "PLAINTEXT"),
            departing=self.checkpoints,
        )
        self.relocations = RelocationDriver(
            self.partitions,
            self.store,
            self.checkpoints,
            self.clock,
            self.offload,
            bytes_per_second=lambda: self.rate,
            cleaning=lambda: self.cleaning,
            on_moved=self.moved.append,
        )

    def topic_settings(self) -> Any:
        found = self.settings.topic(self.configs)
        return replace(found, segment_bytes=self.segment_bytes) if self.segment_bytes else found

    def new_uuid(self) -> Uuid:
        self._uuids += 1
        return Uuid(self.files.lives.to_bytes(2, "big") + self._uuids.to_bytes(2, "big") + b"\xaa" * 12)

    # -- metadata

    async def create(self, topic: str, *, number: int = 1, replica: int = ME, directory: bytes = bytes(16)) -> Hosted:
        """A topic in the metadata, and its only partition if it is ours."""
        topic_id = Uuid(bytes([number]) * 16)
        before = self.image.copy()
        self.image.apply(TopicRecord(name=topic, topic_id=topic_id), Offset(self.image.offset + 1), Epoch(0))
        record = PartitionRecord(
            partition_id=0,
            topic_id=topic_id,
            replicas=[replica],
            isr=[replica],
            leader=replica,
            leader_epoch=1,
            directories=[Uuid(directory)],
        )
        self.image.apply(record, Offset(self.image.offset + 1), Epoch(0))
        await self.publish(before)
        return self.partitions.named(topic, 0) if replica == ME else None  # type: ignore[return-value]

    def delete(self, number: int = 1) -> None:
        """The topic is gone from the metadata; its log is on its way out when this returns."""
        before = self.image.copy()
        record = RemoveTopicRecord(topic_id=Uuid(bytes([number]) * 16))
        self.image.apply(record, Offset(self.image.offset + 1), Epoch(0))
        self.partitions.publish(self.image, delta_between(before, self.image))

    async def publish(self, before: ClusterImage | None = None) -> None:
        self.partitions.publish(self.image, delta_between(before or ClusterImage(), self.image))
        await self.partitions.taken_up()

    # -- moving

    async def settle(self) -> None:
        """Waits until nothing moves any more."""
        async with asyncio.timeout(within(20)):
            while self.relocations._task is not None or self.relocations._retiring:
                await asyncio.sleep(0)
            while self.store.departures:
                await self.checkpoints.over()
        await self.flushes.drain()

    async def copied(self, hosted: Hosted, end: int) -> None:
        """Waits until the copy of a moving replica holds everything before `end`."""
        while self.store.futures[hosted.key].next < end:
            await asyncio.sleep(0)

    async def turns(self, count: int) -> None:
        for _ in range(count):
            await asyncio.sleep(0)

    def produce(self, hosted: Hosted, count: int = 1, *, size: int = 300, producer: int = -1, first: int = 0) -> None:
        """`count` batches of one record; with a producer id, numbered from `first`."""
        for number in range(first, first + count):
            identity = (producer, 0, number) if producer >= 0 else (-1, -1, -1)
            data = batch(value=b"%08d" % hosted.require_log().next * (size // 8), producer=identity,
                         timestamp=self.clock.now_ms())  # fmt: skip
            hosted.append(data, read_header(data), -1, self.clock.now_ms())

    def path_of(self, hosted: Hosted) -> str:
        return self.store.directory_of(hosted.require_log()).path


def content(log: Log) -> bytes:
    """All batches of a log from its start on."""
    out, offset = bytearray(), log.log_start
    while offset < log.written:
        read = log.read(offset, max_bytes=1 << 20, limit=log.written, at_least_one=True)
        if not read.spans:
            break
        for span in read.spans:
            out += span.read()
        offset = read.end
    assert sum(header.size for _, header in scan_batches(out)) == len(out)
    return bytes(out)


def walk(steps: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(steps())
