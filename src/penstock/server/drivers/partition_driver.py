"""Runs replication against storage for every partition this node hosts, and follows the published image.

The driver owns the table of hosted partitions. Names are resolved to topic ids at the edge, so a request that was
meant for a deleted topic can never reach the one that was created under the same name since.

Taking up partitions is work in proportion to their number, so it is done in slices of a few milliseconds. A request
for a partition whose turn has not come yet takes it up at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from penstock.metadata.entities import CONFIG_TOPIC
from penstock.model.config import TopicSettings
from penstock.model.errors import (
    KAFKA_STORAGE_ERROR,
    NOT_LEADER_OR_FOLLOWER,
    OFFSET_OUT_OF_RANGE,
    POLICY_VIOLATION,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode,
    Refused,
    StorageFailed,
)
from penstock.model.ids import DIRECTORY_UNASSIGNED, NodeId, Offset, PartitionKey, TopicPartition, Uuid
from penstock.replication.partition import Partition
from penstock.server.drivers.hosted import Hosted

if TYPE_CHECKING:
    from penstock.metadata.delta import Delta
    from penstock.metadata.entities import PartitionImage, TopicImage
    from penstock.metadata.image import ClusterImage
    from penstock.model.ports import Clock
    from penstock.replication.fetch_session import Interest
    from penstock.storage.log import Log
    from penstock.storage.log_directory import LogDirectory
    from penstock.storage.store import LogStore

log = logging.getLogger("penstock.partitions")

SLICE_MS = 5.0
PREFERRED_MAX = 10_000


class PartitionDriver:
    """The door behind every handler that touches a partition."""

    def __init__(
        self,
        me: NodeId,
        store: LogStore,
        clock: Clock,
        *,
        topic_settings: Callable[[str], TopicSettings],
        lag_time_max_ms: int,
        on_moved: Callable[[Interest], None],
        on_unsynced: Callable[[Hosted], None],
        on_directory_lost: Callable[[Uuid], None],
    ) -> None:
        self._on_directory_lost = on_directory_lost
        self._me, self._store, self._clock = me, store, clock
        self._topic_settings, self._lag_time_max_ms = topic_settings, lag_time_max_ms
        self._on_moved, self._on_unsynced = on_moved, on_unsynced
        self._image: ClusterImage | None = None
        self._hosted: dict[PartitionKey, Hosted] = {}
        # Partitions to take up, and whether they are new: an old one may have its log in a directory that is offline.
        self._pending: dict[PartitionKey, bool] = {}
        self._taking_up: asyncio.Task[None] | None = None
        # Where replicas that are not here yet are to be made, should they come. Gone with the process, as in Kafka.
        self._preferred: dict[TopicPartition, LogDirectory] = {}
        self.committed_since_checkpoint = False
        self.on_taken_up: Callable[[PartitionKey], None] = lambda _key: None
        store.on_failed = self._directory_failed

    def __iter__(self) -> Iterator[Hosted]:
        return iter(self._hosted.values())

    def __len__(self) -> int:
        return len(self._hosted)

    # -- finding

    def named(self, topic: str, partition: int) -> Hosted:
        """The hosted partition of that name, or the refusal that tells the client where it went wrong."""
        image = self._image
        found = image.topic(topic) if image is not None else None
        if found is None:
            raise Refused(UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {topic!r}")
        return self._find(found, partition)

    def by_id(self, topic_id: bytes, partition: int) -> Hosted:
        hosted = self._hosted.get((topic_id, partition))  # type: ignore[call-overload]  # a key is its plain tuple
        if hosted is not None:
            return hosted  # type: ignore[no-any-return]  # follows from the overload above
        image = self._image
        found = image.topics.get(Uuid(topic_id)) if image is not None else None
        if found is None:
            raise Refused(UNKNOWN_TOPIC_ID, "this broker knows no topic with that id")
        return self._find(found, partition)

    def _find(self, topic: TopicImage, partition: int) -> Hosted:
        key = PartitionKey(topic.id, partition)
        hosted = self._hosted.get(key)
        if hosted is not None:
            return hosted
        if key in self._pending:
            self._take_up(key)
            return self._hosted[key]
        if not 0 <= partition < len(topic.partitions):
            raise Refused(
                UNKNOWN_TOPIC_OR_PARTITION,
                f"topic {topic.name!r} has {len(topic.partitions)} partitions, {partition} is not one of them",
            )
        raise Refused(NOT_LEADER_OR_FOLLOWER, f"this broker holds no replica of {topic.name}-{partition}")

    # -- fetch interests

    def of_interest(self, interest: Interest) -> Hosted:
        hosted: Hosted | None = interest.hosted
        if hosted is not None and not hosted.gone:
            return hosted
        interest.hosted = None
        if interest.session.by_id:
            hosted = self.by_id(interest.topic_id, interest.partition)
        else:
            hosted = self.named(interest.topic, interest.partition)
        interest.hosted = hosted
        if interest.watched:
            hosted.watchers[interest] = None
        return hosted

    def watch(self, interest: Interest) -> None:
        """Calls `on_moved` for this interest whenever its partition moves, as soon as it is found here."""
        interest.watched = True
        hosted: Hosted | None = interest.hosted
        if hosted is not None:
            hosted.watchers[interest] = None

    def unwatch(self, interest: Interest) -> None:
        interest.watched = False
        hosted: Hosted | None = interest.hosted
        if hosted is not None:
            hosted.watchers.pop(interest, None)

    def ends_of(self, interest: Interest, error: ErrorCode) -> tuple[int, int, int]:
        """(high watermark, last stable offset, log start) to tell beside an error; a lost client needs them."""
        hosted: Hosted | None = interest.hosted
        if error is not OFFSET_OUT_OF_RANGE or hosted is None or hosted.log is None:
            return -1, -1, -1
        return hosted.log.committed, hosted.log.last_stable, hosted.log.log_start

    # -- following the image

    def publish(self, image: ClusterImage, delta: Delta) -> None:
        """Takes a published image. Deletions and role changes of hosted partitions happen now, new ones in slices."""
        made_since = self._image is not None
        self._image = image
        for topic in delta.deleted.values():
            self._drop_topic(topic)
        for topic_id, partitions in delta.partitions.items():
            for index in sorted(partitions):
                self._follow(image.topics[topic_id], index, is_new=made_since)
        if delta.configs:
            self._refresh_settings(delta)
        if self._pending and self._taking_up is None:
            self._taking_up = asyncio.get_running_loop().create_task(self._take_up_all(), name="take up partitions")

    def _follow(self, topic: TopicImage, index: int, *, is_new: bool) -> None:
        key = PartitionKey(topic.id, index)
        assigned = self._me in topic.partitions[index].replicas
        hosted = self._hosted.get(key)
        if hosted is None:
            if assigned:
                self._pending[key] = is_new
        elif assigned:
            self._become(hosted, topic.partitions[index])
        else:
            self._drop(hosted)

    def _drop_topic(self, topic: TopicImage) -> None:
        for index in range(len(topic.partitions)):
            key = PartitionKey(topic.id, index)
            self._pending.pop(key, None)
            hosted = self._hosted.get(key)
            if hosted is not None:
                self._drop(hosted)

    def _drop(self, hosted: Hosted) -> None:
        del self._hosted[hosted.key]
        hosted.gone = True
        hosted.state.leader = NodeId(-1)
        hosted.release()
        hosted.log = None
        now = self._clock.now_ms()
        self._store.remove(hosted.key, now=now)
        self._store.remove(hosted.key, now=now, future=True)

    async def _take_up_all(self) -> None:
        try:
            while self._pending:
                until = self._clock.monotonic_ms() + SLICE_MS
                while self._pending and self._clock.monotonic_ms() < until:
                    self._take_up(next(iter(self._pending)))
                await asyncio.sleep(0)
        finally:
            self._taking_up = None

    async def taken_up(self) -> None:
        """Returns when every partition of the published image that is ours has its role."""
        if self._taking_up is not None:
            await asyncio.shield(self._taking_up)

    async def close(self) -> None:
        """Takes up no more partitions: the logs are about to be closed."""
        self._pending.clear()
        await self.taken_up()

    def _take_up(self, key: PartitionKey) -> None:
        is_new = self._pending.pop(key)
        assert self._image is not None, "partitions come from an image"
        topic = self._image.topics[key.topic_id]
        image = topic.partitions[key.partition]
        name = TopicPartition(topic.name, key.partition)
        settings = self._topic_settings(topic.name)
        try:
            found = self._store.get(key) or self._moved_before(key, image)
            if found is None:
                directory = self._directory_for(name, image, is_new)
                found = self._store.create(name, key.topic_id, settings, directory, now=self._clock.now_ms())
            found.settings = settings
        except (StorageFailed, Refused) as failure:
            log.error("%s has no log: %s", name, failure)
            found = None
        state = Partition(self._me, min_isr=settings.min_insync_replicas, lag_time_max_ms=self._lag_time_max_ms)
        hosted = Hosted(key, name, state, found, settings, self)
        self._hosted[key] = hosted
        if found is not None:
            # A sealed segment is synced, so that the recovery point follows and a crash costs one segment's scan.
            found.on_sealed = lambda _segment: self._on_unsynced(hosted)
        self._become(hosted, image)
        self.on_taken_up(key)

    def _moved_before(self, key: PartitionKey, image: PartitionImage) -> Log | None:
        """A copy that is all there is of the replica and lies where the metadata has it: only its name is to change."""
        future = self._store.futures.get(key)
        if future is None or self._store.directory_of(future).id != image.directory_of(self._me):
            return None
        return self._store.promote(key, now=self._clock.now_ms())

    def prefer(self, name: TopicPartition, directory: LogDirectory) -> None:
        """Remembers where to make a replica that this node may be given later."""
        self._preferred[name] = directory
        if len(self._preferred) > PREFERRED_MAX:
            del self._preferred[next(iter(self._preferred))]

    def _directory_for(self, name: TopicPartition, image: PartitionImage, is_new: bool) -> Uuid | None:
        """Where to make a log; None is the directory with the fewest. Refuses when it may exist where nobody can look.

        A log made anew beside one in an offline directory would hide every record in that one.
        """
        preferred = self._preferred.pop(name, None)
        if preferred is not None and preferred.online:
            return preferred.id
        wanted = image.directory_of(self._me)
        if wanted is not None and any(each.online and each.id == wanted for each in self._store.directories):
            return wanted
        offline = [each.path for each in self._store.directories if not each.online]
        if offline and not (is_new and wanted == DIRECTORY_UNASSIGNED):
            raise Refused(KAFKA_STORAGE_ERROR, f"its log may be in {', '.join(offline)}, which is offline")
        return None

    def _become(self, hosted: Hosted, image: PartitionImage) -> None:
        now = self._clock.now_ms()
        end = hosted.counted_end()
        was_leading = hosted.state.leading
        log_end = hosted.log.written if hosted.log is not None else None
        started = hosted.state.become(image, end=end, now=now, log_end=log_end)
        if hosted.log is None:
            return
        if hosted.unsynced_since is None and hosted.log.flushed < hosted.log.written:
            hosted.unsynced_since = now  # recovery found it; nobody knows how long the disk has not had it
        if started:
            hosted.log.epochs.assign(hosted.state.epoch, hosted.log.written)
            if end < hosted.log.written:
                self._on_unsynced(hosted)
        if hosted.state.high_watermark > hosted.log.committed:
            hosted.committed()
        if was_leading and not hosted.state.leading:
            hosted.release()

    def _refresh_settings(self, delta: Delta) -> None:
        """Topic settings are live: a changed config counts for the next append."""
        topics = {key.name for key in delta.configs if key.type == CONFIG_TOPIC}
        brokers = len(topics) < len(delta.configs)  # a broker default reaches every topic that does not set its own
        for hosted in self._hosted.values():
            if not brokers and hosted.name.topic not in topics:
                continue
            hosted.settings = self._topic_settings(hosted.name.topic)
            hosted.state.min_isr = hosted.settings.min_insync_replicas
            if hosted.log is not None:
                hosted.log.settings = hosted.settings

    # -- told by hosted partitions

    def moved(self, interest: Interest) -> None:
        self._on_moved(interest)

    def unsynced(self, hosted: Hosted) -> None:
        self._on_unsynced(hosted)

    # -- acting

    def delete_records(self, topic: str, partition: int, offset: int) -> Offset:
        """Moves the log start to `offset`, -1 being the high watermark; answers the low watermark."""
        hosted = self.named(topic, partition)
        hosted.state.check_read(-1)
        if hosted.settings.compacts and not hosted.settings.deletes:
            raise Refused(POLICY_VIOLATION, f"topic {topic!r} only compacts; records go by tombstones")
        target = hosted.require_log()
        to = target.committed if offset == -1 else Offset(offset)
        if to < 0 or to > target.committed:
            raise Refused(OFFSET_OUT_OF_RANGE, f"{to} is not between 0 and the high watermark {target.committed}")
        if to > target.log_start:
            target.advance_start(to)
            hosted.moved()
        return hosted.state.low_watermark(target.log_start)

    def storage_failed(self, failure: StorageFailed) -> None:
        """A directory that fails goes offline alone: its partitions refuse, the others go on."""
        directory = next((each for each in self._store.directories if _holds(each.path, failure.path)), None)
        if directory is None or not directory.online:
            return
        self._store.fail(directory, failure.why)

    def _directory_failed(self, directory: LogDirectory, lost: list[PartitionKey]) -> None:
        """Told by the store, whoever found out."""
        log.error("log directory %s goes offline: %s", directory.path, directory.why_offline)
        for key in lost:
            hosted = self._hosted.get(key)
            if hosted is not None:
                hosted.log = None
                hosted.release()
        if directory.id is not None:
            self._on_directory_lost(directory.id)

    def directory_of(self, key: PartitionKey) -> Uuid | None:
        """The log directory that holds the replica; None while it has no log."""
        found = self._store.logs.get(key)
        return None if found is None else self._store.directory_of(found).id

    def offline(self) -> int:
        return sum(1 for hosted in self._hosted.values() if hosted.log is None)


def _holds(directory: str, path: str) -> bool:
    return path == directory or path.startswith(f"{directory}/")
