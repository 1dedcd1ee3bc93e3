"""Runs replication against storage for every partition this node hosts, and follows the published image.

The driver owns the table of hosted partitions. Names are resolved to topic ids at the edge, so a request that was
meant for a deleted topic can never reach the one that was created under the same name since.

Taking up partitions and changing their roles is work in proportion to their number, so it is done in slices of a few
milliseconds. A request for a partition whose turn has not come yet lets it take its turn at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Protocol

from penstock.metadata.entities import CONFIG_BROKER, CONFIG_TOPIC
from penstock.model.config import TopicSettings
from penstock.model.config.definition import LONG_MAX
from penstock.model.errors import (
    KAFKA_STORAGE_ERROR,
    NOT_LEADER_OR_FOLLOWER,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    Refused,
    StorageFailed,
)
from penstock.model.ids import DIRECTORY_UNASSIGNED, NO_NODE, NodeId, Offset, PartitionKey, TopicPartition, Uuid
from penstock.replication.partition import Partition
from penstock.server.drivers.hosted import Hosted
from penstock.server.drivers.partition_neighbours import Neighbours
from penstock.server.drivers.partition_trimming import trim
from penstock.server.drivers.topic_traffic import Traffic
from penstock.server.duty import duty
from penstock.storage.checkpoints import RECOVERY_POINTS

if TYPE_CHECKING:
    from penstock.metadata.delta import Delta
    from penstock.metadata.entities import PartitionImage, TopicImage
    from penstock.metadata.image import ClusterImage
    from penstock.model.ids import Millis
    from penstock.model.ports import Clock
    from penstock.replication.fetch_session import FetchSession, Interest
    from penstock.server.peers import Address
    from penstock.storage.log import Log
    from penstock.storage.log_directory import LogDirectory
    from penstock.storage.segment import Segment
    from penstock.storage.store import LogStore

log = logging.getLogger("penstock.partitions")

SLICE_MS = 5.0
PREFERRED_MAX = 10_000
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
        topic_settings: Callable[[str], TopicSettings],
        lag_time_max_ms: int,
        on_moved: Callable[[Interest], None],
        on_unsynced: Callable[[Hosted], None],
        on_directory_lost: Callable[[Uuid], None],
        inter_broker_listener: str = "PLAINTEXT",
        hurries_followers: bool = False,
    ) -> None:
        self._on_directory_lost = on_directory_lost
        self.neighbours = Neighbours(me, inter_broker_listener)
        self.hurries_followers = hurries_followers
        self.followers: Followers = _Nobody()
        self.traffic = Traffic()
        self.departing: Departing = _AtOnce(store)
        self.replicated: dict[PartitionKey, Hosted] = {}
        """The partitions that this node leads and others follow."""
        self.flushed_by_time: dict[PartitionKey, Hosted] = {}
        """The partitions that have a `flush.ms`; few do, and only they are looked at every second."""
        self.compacted: dict[PartitionKey, Hosted] = {}
        """The partitions that compaction looks at."""
        self.doomed: dict[PartitionKey, Hosted] = {}
        """The partitions with files of deleted segments that are to be removed."""
        self.on_may_join: Callable[[Hosted], None] = lambda _hosted: None
        self.on_brokers_changed: Callable[[], None] = lambda: None
        self._me, self._store, self._clock = me, store, clock
        self._topic_settings, self._lag_time_max_ms = topic_settings, lag_time_max_ms
        self._on_moved, self._on_unsynced = on_moved, on_unsynced
        self._image: ClusterImage | None = None
        self._hosted: dict[PartitionKey, Hosted] = {}
        # Partitions to take up or to change. Whether they are new: an old one may have its log in an offline directory.
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

    # -- fetch interests

    def of_interest(self, interest: Interest) -> Hosted:
        hosted: Hosted | None = interest.hosted
        if hosted is not None and not hosted.gone and not hosted.behind:
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
                self._remove_logs(key)
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
        for table in (self.replicated, self.flushed_by_time, self.compacted, self.doomed):
            table.pop(hosted.key, None)
        self.followers.leave(hosted)
        hosted.gone = True
        hosted.state.leader = NO_NODE
        hosted.release()
        hosted.log = None
        self._remove_logs(hosted.key)

    def _remove_logs(self, key: PartitionKey) -> None:
        now = self._clock.now_ms()
        self._store.let_go(key, now=now)
        self._store.let_go(key, now=now, future=True)

    async def _take_turns(self) -> None:
        """Those whose name is still another topic's go to the end of the line, and wait when no others are left."""
        try:
            passed = 0
            while self._pending:
                until = self._clock.monotonic_ms() + SLICE_MS
                while passed < len(self._pending) and self._clock.monotonic_ms() < until:
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
                    await asyncio.sleep(0)
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
        state = Partition(
            self._me, settings.min_insync_replicas, self._lag_time_max_ms, eligible=self.neighbours.may_be_in_sync
        )
        hosted = Hosted(key, name, state, found, settings, self, self.traffic.taken_up(topic.id, topic.name))
        self._hosted[key] = hosted
        self._note_settings(hosted)
        if found is not None:
            found.on_doomed = partial(self._note_doomed, hosted)
            if found.has_doomed:
                self._note_doomed(hosted)
            found.on_sealed = partial(self._sealed, hosted)
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
        state = hosted.state
        before, was_leading = (state.leader, state.epoch), state.leading
        log_end = hosted.log.written if hosted.log is not None else None
        started = state.become(image, end=end, now=now, log_end=log_end)
        if hosted.log is not None:
            self._begin_role(hosted, hosted.log, started, end, now)
        if state.followers:
            self.replicated[hosted.key] = hosted
        else:
            self.replicated.pop(hosted.key, None)
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

    def _refresh_settings(self, delta: Delta) -> None:
        """Topic settings are live: a changed config counts for the next append."""
        for hosted in self._concerned(delta):
            hosted.settings = self._topic_settings(hosted.name.topic)
            hosted.state.min_isr = hosted.settings.min_insync_replicas
            self._note_settings(hosted)
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

    def _note_doomed(self, hosted: Hosted) -> None:
        self.doomed[hosted.key] = hosted

    def _note_settings(self, hosted: Hosted) -> None:
        """Keeps the tables of those whose settings ask for regular attention."""
        for table, wanted in (
            (self.flushed_by_time, hosted.settings.flush_ms < LONG_MAX),
            (self.compacted, hosted.settings.compacts),
        ):
            if wanted:
                table[hosted.key] = hosted
            else:
                table.pop(hosted.key, None)

    # -- told by hosted partitions

    def moved(self, interest: Interest) -> None:
        self._on_moved(interest)

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

    def follower_fetched(
        self,
        hosted: Hosted,
        follower: NodeId,
        broker_epoch: int,
        offset: Offset,
        log_start: Offset,
        session: FetchSession,
    ) -> None:
        """Takes what a follower's fetch proves: it has everything before `offset`. Wakes whoever that concerns."""
        state, log, now = hosted.state, hosted.require_log(), self._clock.now_ms()
        deletes = hosted.waiting_deletion and state.followers[follower].log_start != log_start
        moved = state.follower_at(
            follower,
            offset,
            log_start=log_start,
            broker_epoch=broker_epoch,
            leader_end=log.written,
            now=now,
            session=session if session.id else None,
        )
        if follower not in state.isr and state.may_join(follower, now):
            self.on_may_join(hosted)
        if moved:
            hosted.committed()
        if deletes:
            hosted.followers_deleted()

    def delete_records(
        self, topic: str, partition: int, offset: int, timeout_ms: int = 0
    ) -> Offset | asyncio.Future[Offset]:
        """Moves the log start to `offset`, -1 being the high watermark; answers the low watermark."""
        return trim(self.named(topic, partition), offset, self.neighbours, timeout_ms)

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
                self.followers.leave(hosted)
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
