"""Runs the group coordinator: which shards live here, who asks them, and when they look at the clock.

Whoever leads a partition of the offsets topic coordinates the groups that hash to it. The driver follows the published
image: a partition that this node begins to lead is loaded at once, in slices; one that it leads no longer is dropped.
A partition with an empty log costs an entry in a table, and a shard without deadlines costs nothing as time passes.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

from penstock.coordinators.decision import Decision, Moment
from penstock.metadata.entities import CONFIG_GROUP
from penstock.model.errors import NOT_COORDINATOR, NOT_LEADER_OR_FOLLOWER, Refused
from penstock.model.ids import OFFSETS_TOPIC, NodeId, Uuid
from penstock.server.drivers.coordinator_chores import Chores
from penstock.server.drivers.coordinator_home import Home
from penstock.server.duty import on_duty
from penstock.transport.deadline import Deadline

if TYPE_CHECKING:
    from random import Random

    from penstock.coordinators.groups.settings import GroupSettings
    from penstock.coordinators.groups.shard import GroupShard
    from penstock.metadata.delta import Delta
    from penstock.metadata.image import ClusterImage
    from penstock.model.config.definition import ConfigValue
    from penstock.model.errors import StorageFailed
    from penstock.model.ports import Clock
    from penstock.server.context import Context
    from penstock.server.drivers.coordinator_promise import Refuse
    from penstock.server.drivers.hosted import Hosted
    from penstock.server.drivers.partition_driver import PartitionDriver
    from penstock.server.live_settings import LiveSettings

log = logging.getLogger("penstock.groups")

T = TypeVar("T")

_NEVER: Final = 1 << 62
_AGAIN_MS: Final = 1_000
"""When to try again what could not be written."""
_PLACES_MAX: Final = 100_000
_APPEARS_MS: Final = 1_000
"""How long the first who need the offsets topic wait until this node has heard of it."""


class CoordinatorDriver:
    """The door `Services.groups`."""

    def __init__(
        self,
        me: NodeId,
        partitions: PartitionDriver,
        settings: LiveSettings,
        clock: Clock,
        random: Random,
        *,
        make_topic: Callable[[str], Awaitable[bool]],
    ) -> None:
        self._me, self._partitions, self._settings = me, partitions, settings
        self._clock, self._random, self._make_topic = clock, random, make_topic
        self._image: ClusterImage | None = None
        self._topic_id: Uuid | None = None
        self._partition_count = 0
        self._homes: dict[int, Home] = {}
        self._places: dict[str, int] = {}
        self._chores = Chores(clock)
        self._timer: Deadline | None = None
        self._due_at = _NEVER
        self._group_settings: GroupSettings | None = None
        self._group_values: dict[str, Mapping[str, ConfigValue]] = {}
        self._closed = False
        self._waiting_topic: list[asyncio.Future[None]] = []
        self.written: Counter[str] = Counter()
        settings.on_change(self._group_values.clear)

    def __iter__(self) -> Iterator[Home]:
        """The partitions of the offsets topic that this node leads."""
        return iter(self._homes.values())

    # -- finding

    def home_of(self, group_id: str) -> int:
        """The partition of the offsets topic that a group belongs to."""
        place = self._places.get(group_id)
        if place is None:
            from penstock.coordinators.groups.home import home_partition

            count = self._partition_count or self._settings.number("offsets.topic.num.partitions")
            place = home_partition(group_id, count)
            if len(self._places) >= _PLACES_MAX:
                self._places.clear()
            self._places[group_id] = place
        return place

    async def topic_made(self) -> None:
        """Returns when the offsets topic shows in the published image, or cannot be made now."""
        made = await self._make_topic(OFFSETS_TOPIC)
        if made and self._topic_id is None and not self._closed:
            # The controller has it; our image follows.
            appeared = asyncio.get_running_loop().create_future()
            self._waiting_topic.append(appeared)
            await asyncio.wait([appeared], timeout=_APPEARS_MS / 1_000)

    def _topic_appeared(self) -> None:
        waiting, self._waiting_topic = self._waiting_topic, []
        for appeared in waiting:
            if not appeared.done():
                appeared.set_result(None)

    # -- requests

    def ask(self, request: Any, ctx: Context, refuse: Refuse) -> Any:
        """Puts one request of one group to its shard: the reply, or a future of it when it waits.

        `refuse` makes the reply when this node cannot coordinate the group, or not now.
        """
        home = self._homes.get(self.home_of(request.group_id))
        return refuse(NOT_COORDINATOR) if home is None else home.ask(request, ctx, refuse)

    def look(
        self, group_id: str, read: Callable[[GroupShard, Moment], T], refuse: Callable[..., T]
    ) -> T | asyncio.Future[T]:
        """What `read` sees of a group's shard, as soon as it is committed."""
        home = self._homes.get(self.home_of(group_id))
        return refuse(NOT_COORDINATOR) if home is None else home.look(read, refuse)

    def look_at_all(
        self, read: Callable[[GroupShard, Moment], T], refuse: Callable[..., T]
    ) -> list[T | asyncio.Future[T]]:
        """The same for every shard here that may know a group."""
        return [home.look(read, refuse) for home in self._homes.values() if home.shard is not None or home.is_loading]

    def delete(self, group_id: str, refuse: Refuse) -> Any:
        """Deletes one group: its result, or a future of it."""

        def decide(shard: GroupShard, now: Moment) -> Decision:
            return shard.decide_delete(group_id, now)

        home = self._homes.get(self.home_of(group_id))
        return refuse(NOT_COORDINATOR) if home is None else home.act(decide, refuse)

    # -- following the image

    def follow(self, image: ClusterImage, delta: Delta) -> None:
        """Takes a published image; subscribe it after the partition driver, whose partitions have their roles then."""
        if self._closed:
            return
        self._image = image
        if any(key.type == CONFIG_GROUP for key in delta.configs):
            self._group_values.clear()
        topic = image.topic(OFFSETS_TOPIC)
        if (None if topic is None else topic.id) != self._topic_id:
            self._drop_all()
            self._topic_id = None if topic is None else topic.id
            # How ids are spread stays as it was at first: who adds partitions later finds the groups where they were.
            self._partition_count = 0 if topic is None else len(topic.partitions)
            self._places.clear()
            self._topic_appeared()
        if topic is not None:
            for index in sorted(delta.partitions.get(topic.id, ())):
                if topic.partitions[index].leader == self._me:
                    self._lead(index)
                else:
                    self._leave(index)
        if delta.created or delta.deleted or delta.partitions or delta.configs or delta.features or delta.brokers:
            for home in self._homes.values():
                if home.shard is not None:
                    self._chores.add(home.image_changed(image, delta))

    def _lead(self, index: int) -> None:
        home = self._homes.get(index)
        if home is None:
            home = self._homes[index] = Home(index, self)
        elif not home.failed:
            return  # another epoch of ours; the log is the same
        self._chores.add(home.loading())

    def _leave(self, index: int) -> None:
        home = self._homes.pop(index, None)
        if home is not None:
            home.close()

    def _drop_all(self) -> None:
        for index in list(self._homes):
            self._leave(index)

    def close(self) -> None:
        """Answers everybody who waits, and does nothing by itself any more."""
        self._closed = True
        self._topic_appeared()
        self._chores.clear()
        self._drop_all()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # -- time

    def due(self, at: int) -> None:
        if at >= self._due_at:
            return
        self._due_at = at
        if self._timer is None:
            self._timer = Deadline(asyncio.get_running_loop(), self._clock, on_duty("the timer of groups", self._tick))
        self._timer.set(at)

    def _tick(self) -> None:
        self._due_at = _NEVER
        now = self.moment().tick
        for home in self._homes.values():
            at = None if home.shard is None or home.busy else home.shard.next_deadline()
            if at is None:
                continue
            if at > now:
                self.due(at)
            elif home.writable:
                home.busy = True
                self._chores.add(home.expire())
            else:
                self.due(now + _AGAIN_MS)

    # -- the surroundings of homes

    def moment(self) -> Moment:
        return Moment(self._clock.now_ms(), int(self._clock.monotonic_ms()))

    def monotonic_ms(self) -> float:
        return self._clock.monotonic_ms()

    def codec(self) -> int:
        return self._settings.number("offsets.topic.compression.codec")

    def commit_timeout_ms(self) -> int:
        return self._settings.number("offsets.commit.timeout.ms")

    def hosted_at(self, index: int) -> Hosted:
        if self._topic_id is None:
            raise Refused(NOT_LEADER_OR_FOLLOWER, "the offsets topic is gone")
        return self._partitions.by_id(self._topic_id, index)

    def lost(self, home: Home) -> None:
        if self._homes.get(home.index) is home:
            self._chores.add(home.loading())

    def storage_failed(self, failure: StorageFailed) -> None:
        self._partitions.storage_failed(failure)

    def new_shard(self) -> GroupShard:
        from penstock.coordinators.groups.shard import GroupShard

        return GroupShard(self._settings_of_groups(), self.image(), new_id=self._new_id)

    def image(self) -> ClusterImage:
        assert self._image is not None, "partitions come from an image"
        return self._image

    def _new_id(self) -> str:
        """A random uuid as text; the module that makes them costs more to import than all of this."""
        digits = f"{self._random.getrandbits(128):032x}"
        variant = "89ab"[self._random.getrandbits(2)]
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"

    def _settings_of_groups(self) -> GroupSettings:
        if self._group_settings is None:
            from penstock.coordinators.groups.settings import GroupSettings

            settings = self._settings
            self._group_settings = GroupSettings(settings.number, settings.text, settings.names, self._values_of)
        return self._group_settings

    def _values_of(self, group_id: str) -> Mapping[str, ConfigValue]:
        """What is in force for one group. Kept until a config changes: heartbeats look at it."""
        values = self._group_values.get(group_id)
        if values is None:
            from penstock.model.config.groups import group_values

            assert self._image is not None, "groups come with an image"
            values = group_values(self._image.config(CONFIG_GROUP, group_id), self._settings)
            if len(self._group_values) >= _PLACES_MAX:
                self._group_values.clear()
            self._group_values[group_id] = values
        return values
