"""Runs replication against storage for every partition this node hosts, and follows the published image.

The driver owns the table of hosted partitions. Names are resolved to topic ids at the edge, so a request that was
meant for a deleted topic can never reach the one that was created under the same name since.

Taking up partitions and changing their roles is work in proportion to their number, so it is done in slices of a few
milliseconds. A request for a partition whose turn has not come yet lets it take its turn at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Protocol

from penstock.metadata.entities import CONFIG_BROKER, CONFIG_TOPIC
from penstock.model.errors import (
    NOT_LEADER_OR_FOLLOWER,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    Corrupt,
    Refused,
    StorageFailed,
)
from penstock.model.ids import NO_NODE, NodeId, Offset, PartitionKey, TopicPartition, Uuid
from penstock.replication.partition import Partition
from penstock.server.loops.duty import duty
from penstock.server.loops.slices import Slices
from penstock.server.partitions.hosted import Hosted
from penstock.server.partitions.placement import Placement
from penstock.server.partitions.tables import Tables
from penstock.server.partitions.topic_traffic import Traffic
from penstock.server.partitions.trimming import trim
from penstock.storage.checkpoints import RECOVERY_POINTS

if TYPE_CHECKING:
    from penstock.metadata.delta import Delta
    from penstock.metadata.entities import PartitionImage, TopicImage
    from penstock.metadata.image import ClusterImage
    from penstock.model.config import TopicSettings
    from penstock.model.ids import Millis
    from penstock.model.ports import Clock
    from penstock.server.partitions.neighbours import Neighbours
    from penstock.server.peers import Address
    from penstock.storage.log import Log
    from penstock.storage.log_directory import LogDirectory
    from penstock.storage.segment import Segment
    from penstock.storage.store import LogStore

log = logging.getLogger("penstock.partitions")

DAMAGES_TOLD_MAX = 1_000
ROLES_AT_ONCE = 100
"""How many hosted partitions change their roles while an image is published; more of them do it in slices."""


class Followers(Protocol):
    """Who keeps the replicas that follow level with their leaders."""

    def follow(self, hosted: Hosted) -> None:
        """Another broker leads the partition; called again for each new leader or epoch."""

    def leave(self, hosted: Hosted) -> None:
        """This node leads the partition, has it no more, or nobody leads it."""

    def start_moved(self, hosted: Hosted) -> None:
        """The log begins elsewhere; whoever leads the partition wants to know."""


class _Nobody:
    """Stands in where no other broker is ever followed."""

    def follow(self, hosted: Hosted) -> None:
        pass

    def leave(self, hosted: Hosted) -> None:
        pass

    def start_moved(self, hosted: Hosted) -> None:
        pass


class TopicDefaults(Protocol):
    """The settings of this node, as of now."""

    def topic(self, overrides: Mapping[str, str]) -> TopicSettings:
        """What holds for a topic that overrides these."""


class Departing(Protocol):
    """Who sees to it that logs which were let go leave their names to others."""

    def begin(self) -> None:
        """The store has let go of something."""

    async def over(self) -> None:
        """Returns when names may have become free."""


class _AtOnce:
    """Stands in where syncs on the loop disturb nobody."""

    def __init__(self, store: LogStore) -> None:
        self._store = store

    def begin(self) -> None:
        self._store.settle()

    async def over(self) -> None:
        self._store.settle()


class PartitionDriver:
    """The door behind every handler that touches a partition."""

    def __init__(
        self,
        me: NodeId,
        store: LogStore,
        clock: Clock,
        *,
        settings: TopicDefaults,
        lag_time_max_ms: int,
        on_unsynced: Callable[[Hosted], None],
        on_directory_lost: Callable[[Uuid], None] = lambda _directory: None,
        on_taken_up: Callable[[PartitionKey], None] = lambda _key: None,
        neighbours: Neighbours,
        followers: Followers | None = None,
        departing: Departing | None = None,
        hurries_followers: bool = False,
    ) -> None:
        self._on_directory_lost = on_directory_lost
        self.neighbours, self._on_taken_up = neighbours, on_taken_up
        self.hurries_followers = hurries_followers
        self.followers: Followers = _Nobody() if followers is None else followers  # an empty one is false
        self.traffic = Traffic()
        self.departing: Departing = _AtOnce(store) if departing is None else departing
        self.tables = Tables()
        self.placement = Placement(me, store)
        self.on_may_join: Callable[[Hosted], None] = lambda _hosted: None
        self.on_brokers_changed: Callable[[], None] = lambda: None
        self._me, self._store, self._clock = me, store, clock
        self._settings, self._lag_time_max_ms = settings, lag_time_max_ms
        self._on_unsynced = on_unsynced
        self._image: ClusterImage | None = None
        self._damages_told: set[tuple[str, int]] = set()
        self._hosted: dict[PartitionKey, Hosted] = {}
        # Partitions to take up or to change. Whether they are new: an old one may have its log in an offline directory.
        self._pending: dict[PartitionKey, bool] = {}
        self._taking_up: asyncio.Task[None] | None = None
        self.committed_since_checkpoint = False
        store.on_failed = self._directory_failed

    def __iter__(self) -> Iterator[Hosted]:
        return iter(self._hosted.values())

    def __len__(self) -> int:
        return len(self._hosted)

    # -- finding

    def named(self, topic: str, partition: int) -> Hosted:
        """The hosted partition of that name, or the refusal that tells the client where it went wrong."""
        topic_id = self.id_of(topic)
        if topic_id is None:
            raise Refused(UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {topic!r}")
        return self.by_id(topic_id, partition)

    def id_of(self, topic: str) -> Uuid | None:
        """The id of the topic of this name, if there is one."""
        return None if self._image is None else self._image.ids.get(topic)

    def by_id(self, topic_id: bytes, partition: int) -> Hosted:
        hosted: Hosted | None = self._hosted.get((topic_id, partition))  # type: ignore[call-overload]  # a plain tuple
        if hosted is not None and not hosted.behind:
            return hosted
        image = self._image
        found = image.topics.get(Uuid(topic_id)) if image is not None else None
        if found is None:
            raise Refused(UNKNOWN_TOPIC_ID, "this broker knows no topic with that id")
        return self._find(found, partition)

    def _find(self, topic: TopicImage, partition: int) -> Hosted:
        key = PartitionKey(topic.id, partition)
        hosted = self._hosted.get(key)
        if hosted is not None and not hosted.behind:
            return hosted
        if key in self._pending:
            if self._name_is_taken(key):
                # Within moments; whoever asks comes again with newer metadata.
                raise Refused(NOT_LEADER_OR_FOLLOWER, f"an earlier {topic.name}-{partition} is still leaving the disk")
            self._take_turn(key)
            return self._hosted[key]
        if not 0 <= partition < len(topic.partitions):
            raise Refused(
                UNKNOWN_TOPIC_OR_PARTITION,
                f"topic {topic.name!r} has {len(topic.partitions)} partitions, {partition} is not one of them",
            )
        raise Refused(NOT_LEADER_OR_FOLLOWER, f"this broker holds no replica of {topic.name}-{partition}")

    # -- following the image

    def publish(self, image: ClusterImage, delta: Delta) -> None:
        """Takes a published image. Deletions and role changes of hosted partitions happen now, new ones in slices."""
        made_since = self._image is not None
        self._image = image
        self.neighbours.follow(image)
        for topic in delta.deleted.values():
            self._drop_topic(topic)
        at_once = sum(map(len, delta.partitions.values())) <= ROLES_AT_ONCE
        for topic_id, partitions in delta.partitions.items():
            for index in sorted(partitions):
                self._follow(image.topics[topic_id], index, is_new=made_since, at_once=at_once)
        self.departing.begin()
        if delta.configs:
            self._refresh_settings(delta)
        if self._pending and self._taking_up is None:
            self._taking_up = duty(self._take_turns(), name="take up partitions")
        if delta.brokers:
            self.on_brokers_changed()

    def _follow(self, topic: TopicImage, index: int, *, is_new: bool, at_once: bool) -> None:
        key = PartitionKey(topic.id, index)
        assigned = self._me in topic.partitions[index].replicas
        hosted = self._hosted.get(key)
        if not assigned:
            waited = self._pending.pop(key, None) is not None
            if hosted is not None:
                self._drop(hosted)
            elif waited:
                self.placement.let_go(key, self._clock.now_ms())
        elif hosted is None:
            self._pending.setdefault(key, is_new)
        elif at_once and not hosted.behind:
            self._become(hosted, topic.partitions[index])
        else:
            hosted.behind = True
            self._pending[key] = is_new

    def _drop_topic(self, topic: TopicImage) -> None:
        for index in range(len(topic.partitions)):
            key = PartitionKey(topic.id, index)
            self._pending.pop(key, None)
            hosted = self._hosted.get(key)
            if hosted is not None:
                self._drop(hosted)

    def _drop(self, hosted: Hosted) -> None:
        del self._hosted[hosted.key]
        self.traffic.dropped(hosted.key.topic_id)
        self.tables.forget(hosted)
        self.followers.leave(hosted)
        hosted.gone = True
        hosted.state.let_go()
        hosted.release()
        hosted.log = None
        self.placement.let_go(hosted.key, self._clock.now_ms())

    async def _take_turns(self) -> None:
        """Those whose name is still another topic's go to the end of the line, and wait when no others are left."""
        try:
            passed = 0
            while self._pending:
                slices = Slices(self._clock)
                while passed < len(self._pending) and not slices.over:
                    key = next(iter(self._pending))
                    if self._name_is_taken(key):
                        self._pending[key] = self._pending.pop(key)
                        passed += 1
                    else:
                        self._take_turn(key)
                if self._pending and passed >= len(self._pending):
                    passed = 0
                    await self.departing.over()
                else:
                    await slices.breathe()
        finally:
            self._taking_up = None

    def _name_is_taken(self, key: PartitionKey) -> bool:
        """Whether a log has to be made for a partition under a name that another one has not left yet."""
        if not self._store.departures or key in self._hosted or key in self._store.logs:
            return False
        assert self._image is not None, "partitions come from an image"
        return TopicPartition(self._image.topics[key.topic_id].name, key.partition) in self._store.departures

    def _take_turn(self, key: PartitionKey) -> None:
        hosted = self._hosted.get(key)
        if hosted is None:
            self._take_up(key)
            return
        del self._pending[key]
        hosted.behind = False
        assert self._image is not None, "roles come from an image"
        self._become(hosted, self._image.topics[key.topic_id].partitions[key.partition])

    @property
    def taking_up(self) -> bool:
        """Whether partitions wait for their turn; one that is asked for has it at once, and that takes a moment."""
        return self._taking_up is not None

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
        settings = self._settings_of(topic.name)
        found = self.placement.log_for(key, name, image, settings, is_new=is_new, now=self._clock.now_ms())
        state = Partition(
            self._me, settings.min_insync_replicas, self._lag_time_max_ms, eligible=self.neighbours.may_be_in_sync
        )
        hosted = Hosted(key, name, state, found, settings, self, self.traffic.taken_up(topic.id, topic.name))
        self._hosted[key] = hosted
        self.tables.note_settings(hosted)
        if found is not None:
            found.on_doomed = partial(self.tables.note_doomed, hosted)
            if found.has_doomed:
                self.tables.note_doomed(hosted)
            found.on_sealed = partial(self._sealed, hosted)
        self._become(hosted, image)
        self._on_taken_up(key)

    def _become(self, hosted: Hosted, image: PartitionImage) -> None:
        now = self._clock.now_ms()
        end = hosted.counted_end()
        state = hosted.state
        before, was_leading = (state.leader, state.epoch), state.leading
        log_end = hosted.log.written if hosted.log is not None else None
        started = state.become(image, end=end, now=now, log_end=log_end)
        if hosted.log is not None:
            self._begin_role(hosted, hosted.log, started, end, now)
        self.tables.note_role(hosted)
        changed = before != (state.leader, state.epoch)
        if was_leading and not state.leading:
            hosted.release()
        elif changed:
            hosted.moved()  # whoever fetches with the old epoch has to be told
        if state.leading or state.leader == NO_NODE or hosted.log is None:
            self.followers.leave(hosted)
        elif changed:
            self.followers.follow(hosted)

    def _begin_role(self, hosted: Hosted, log: Log, started: bool, end: Offset, now: Millis) -> None:
        if hosted.unsynced_since is None and log.flushed < log.written:
            hosted.unsynced_since = now  # recovery found it; nobody knows how long the disk has not had it
        if started:
            log.epochs.assign(hosted.state.epoch, log.written)
            if end < log.written:
                self._on_unsynced(hosted)
        if hosted.state.high_watermark > log.committed:
            hosted.committed()

    def _settings_of(self, topic: str) -> TopicSettings:
        assert self._image is not None, "configs come from an image"
        return self._settings.topic(self._image.config(CONFIG_TOPIC, topic))

    def _refresh_settings(self, delta: Delta) -> None:
        """Topic settings are live: a changed config counts for the next append."""
        for hosted in self._concerned(delta):
            hosted.settings = self._settings_of(hosted.name.topic)
            hosted.state.min_isr = hosted.settings.min_insync_replicas
            self.tables.note_settings(hosted)
            if hosted.log is not None:
                hosted.log.settings = hosted.settings
                hosted.time_passed(self._clock.now_ms())  # a lower minimum may let the high watermark go on

    def _concerned(self, delta: Delta) -> list[Hosted]:
        """The partitions that a change of configs may reach."""
        if any(key.type == CONFIG_BROKER for key in delta.configs):
            return list(self._hosted.values())  # a broker's default reaches every topic that does not set its own
        assert self._image is not None, "configs come from an image"
        topics = [self._image.topic(key.name) for key in delta.configs if key.type == CONFIG_TOPIC]
        keys = [PartitionKey(topic.id, index) for topic in topics if topic for index in range(len(topic.partitions))]
        return [self._hosted[key] for key in keys if key in self._hosted]

    def _sealed(self, hosted: Hosted, _segment: Segment) -> None:
        """A sealed segment is synced, so that the recovery point follows and a crash costs one segment's scan."""
        self._on_unsynced(hosted)

    # -- told by hosted partitions

    def may_join(self, hosted: Hosted) -> None:
        self.on_may_join(hosted)

    def unsynced(self, hosted: Hosted) -> None:
        self._on_unsynced(hosted)

    def start_moved(self, hosted: Hosted) -> None:
        self.followers.start_moved(hosted)

    def cut(self, hosted: Hosted) -> None:
        """Lets the recovery point on disk follow the log's end at once."""
        if hosted.log is not None:
            self._store.directory_of(hosted.log).outdated.add(RECOVERY_POINTS)
            self.departing.begin()

    # -- the brokers around

    def address_of(self, node: NodeId) -> Address | None:
        """Where other brokers reach a live broker, as the published image has it."""
        return self.neighbours.address_of(node)

    def leader_of(self, topic: str, topic_id: bytes, partition: int) -> tuple[int, int]:
        """(leader, leader epoch) of a partition that may be elsewhere; -1 where nobody knows."""
        image = self._image
        found = None if image is None else image.topics.get(Uuid(topic_id)) or image.topic(topic)
        known = None if found is None else found.get(partition)
        return (NO_NODE, -1) if known is None else (known.leader, known.leader_epoch)

    def log_end(self, topic: str, partition: int) -> Offset | None:
        """The high watermark of a partition that this node leads; None when it does not."""
        topic_id = self.id_of(topic)
        hosted = None if topic_id is None else self._hosted.get(PartitionKey(topic_id, partition))
        if hosted is None or hosted.log is None or not hosted.state.leading:
            return None
        return hosted.log.committed

    # -- acting

    def delete_records(
        self, topic: str, partition: int, offset: int, timeout_ms: int = 0
    ) -> Offset | asyncio.Future[Offset]:
        """Moves the log start to `offset`, -1 being the high watermark; answers the low watermark."""
        return trim(self.named(topic, partition), offset, self.neighbours, timeout_ms)

    def storage_failed(self, failure: StorageFailed) -> None:
        """Something that was done to a log failed: its directory goes offline."""
        self._store.directory_failed(failure)

    def damaged(self, damage: Corrupt) -> None:
        """A file has bytes that nobody wrote: its readers are told each time they ask, the operator once."""
        place = (damage.path, damage.position)
        if place in self._damages_told:
            return
        if len(self._damages_told) >= DAMAGES_TOLD_MAX:
            self._damages_told.clear()
        self._damages_told.add(place)
        log.error("%s; whoever reads this partition is told CORRUPT_MESSAGE", damage)

    def _directory_failed(self, directory: LogDirectory, lost: list[PartitionKey]) -> None:
        """Told by the store, whoever found out."""
        log.error("log directory %s goes offline: %s", directory.path, directory.why_offline)
        for key in lost:
            hosted = self._hosted.get(key)
            if hosted is not None:
                hosted.log = None
                hosted.release()
                self.followers.leave(hosted)
        if directory.id is not None:
            self._on_directory_lost(directory.id)

    def offline(self) -> int:
        return sum(1 for hosted in self._hosted.values() if hosted.log is None)
