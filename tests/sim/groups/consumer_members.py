"""Models of members: one that speaks the consumer protocol and one that speaks the classic one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from struct import pack
from typing import Any

from penstock.model.errors import (
    FENCED_INSTANCE_ID,
    FENCED_MEMBER_EPOCH,
    ILLEGAL_GENERATION,
    MEMBER_ID_REQUIRED,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
)
from penstock.protocol.codec import decode, encode
from penstock.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from penstock.protocol.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from penstock.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from penstock.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from penstock.protocol.messages.leave_group import LeaveGroupRequest
from penstock.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from tests.sim.groups.consumer_world import GROUP, TopicPartition, World, topic_id, topic_name

REQUEST_TIMEOUT_MS = 2_000
RETRY_MS = 500
JOIN_TIMEOUT_MS = 40_000
VERSION = 3


class Model(ABC):
    """One request at a time; a request without a reply is given up after a while, and a late reply is not heard."""

    def __init__(self, world: World, name: str, topics: set[str], instance_id: str | None) -> None:
        self.world = world
        self.name = name
        self.id = ""
        self.instance_id = instance_id
        self.topics = topics
        self.owned: set[TopicPartition] = set()
        self.alive = True
        self.asking = False
        self._waits_for = 0

    def subscribes(self) -> set[str]:
        return self.topics

    def ask(self, request: Any, version: int, hear: Any, timeout_ms: int = REQUEST_TIMEOUT_MS) -> None:
        self._waits_for += 1
        mine = self._waits_for
        self.asking = True

        def on_reply(reply: Any) -> None:
            if self.alive and mine == self._waits_for:
                self._waits_for += 1
                self.asking = False
                hear(reply)

        def give_up() -> None:
            if self.alive and mine == self._waits_for:
                self._waits_for += 1
                self.asking = False
                self.unheard()

        self.world.ask(self.name, request, version, on_reply)
        self.world.after(timeout_ms, give_up)

    @abstractmethod
    def unheard(self) -> None:
        """What to do when no reply came."""

    def later(self, ms: int, act: Any) -> None:
        """Does something unless the model has died or asked for something else by then."""
        mine = self._waits_for

        def still() -> None:
            if self.alive and mine == self._waits_for:
                act()

        self.world.after(ms, still)

    def die(self) -> None:
        """Stops without a word; what it read it reads no more."""
        self.alive = False
        self.owned.clear()
        self.world.readers.remove(self)


class ConsumerModel(Model):
    """Joins, follows assignments (letting go takes a while), and starts over when it is fenced."""

    def __init__(
        self, world: World, name: str, topics: set[str], instance_id: str | None = None, regex: bool = False
    ) -> None:
        super().__init__(world, name, topics, instance_id)
        self.id = name
        self.regex = regex
        self.epoch = 0
        self._assigned: set[TopicPartition] = set()
        self._reported: set[TopicPartition] | None = None
        self._revoking = False
        self._tells_all = True

    def epoch_known(self) -> int:
        return self.epoch

    def subscribes(self) -> set[str]:
        if self.regex:
            return {topic.name for topic in self.world.image.topics.values()}
        return self.topics

    def start(self) -> None:
        self._beat()

    def change_topics(self, topics: set[str]) -> None:
        self.topics = topics
        self._tells_all = True

    def _beat(self) -> None:
        request = ConsumerGroupHeartbeatRequest(group_id=GROUP, member_id=self.id, member_epoch=self.epoch)
        request.instance_id = self.instance_id
        if self._tells_all:
            request.rebalance_timeout_ms = 15_000
            if self.regex:
                request.subscribed_topic_regex = "t.*"
            else:
                request.subscribed_topic_names = sorted(self.topics)
        if self._tells_all or self._reported != self.owned:
            topics = sorted({name for name, _ in self.owned})
            request.topic_partitions = [
                ConsumerGroupHeartbeatRequest.TopicPartitions(
                    topic_id=topic_id(name), partitions=sorted(number for each, number in self.owned if each == name)
                )
                for name in topics
            ]
        self._reported = set(self.owned)
        self._tells_all = False
        self.ask(request, 1, self._hear)

    def unheard(self) -> None:
        self._tells_all = True
        self._beat()

    def _hear(self, reply: ConsumerGroupHeartbeatResponse) -> None:
        if reply.error_code in (FENCED_MEMBER_EPOCH.code, UNKNOWN_MEMBER_ID.code, FENCED_INSTANCE_ID.code):
            self._start_over()
        elif reply.error_code:
            self._tells_all = True
            self.later(RETRY_MS, self._beat)
        else:
            self.epoch = reply.member_epoch
            if reply.assignment is not None:
                self._assigned = {
                    (topic_name(topic.topic_id), number)
                    for topic in reply.assignment.topic_partitions
                    for number in topic.partitions
                }
            self._follow()
            self.later(RETRY_MS if self._reported != self.owned else reply.heartbeat_interval_ms, self._beat)

    def _start_over(self) -> None:
        self.owned, self._assigned = set(), set()
        self.epoch, self._tells_all = 0, True
        self._beat()

    def _follow(self) -> None:
        if self._revoking:
            return
        if self.owned <= self._assigned:
            self.owned = set(self._assigned)
            return
        self._revoking = True
        self.world.after(self.world.random.randint(0, 3_000), self._let_go)

    def _let_go(self) -> None:
        self._revoking = False
        if self.alive:
            self.owned = self.owned & self._assigned
            self._follow()
            if not self.asking:  # else the reply is followed by a heartbeat that tells it
                self.later(0, self._beat)

    def leave(self) -> None:
        """Says goodbye; the word may get lost."""
        self.owned = set()
        request = ConsumerGroupHeartbeatRequest(group_id=GROUP, member_id=self.id, member_epoch=-1)
        request.instance_id = self.instance_id
        self.world.ask(self.name, request, 1, lambda _: None)
        self.die()

    def restart(self, name: str) -> ConsumerModel:
        """A static member goes for a moment and comes back under another id."""
        request = ConsumerGroupHeartbeatRequest(group_id=GROUP, member_id=self.id, member_epoch=-2)
        request.instance_id = self.instance_id
        self.world.ask(self.name, request, 1, lambda _: None)
        self.die()
        return ConsumerModel(self.world, name, self.topics, self.instance_id, self.regex)


class ClassicModel(Model):
    """Joins and syncs; gives up everything before it rejoins. Assigns round-robin when it leads."""

    def __init__(self, world: World, name: str, topics: set[str], instance_id: str | None = None) -> None:
        super().__init__(world, name, topics, instance_id)
        self.generation = -1
        self._protocol: str | None = None
        self._watched: frozenset[str] = frozenset()
        self._seen: dict[str, int] = {}

    def epoch_known(self) -> int:
        return self.generation

    @property
    def leads(self) -> bool:
        """Whether it knows that it leads."""
        return bool(self._watched)

    def start(self) -> None:
        self._join()

    def unheard(self) -> None:
        self._join()

    def change_topics(self, topics: set[str]) -> None:
        self.topics = topics
        self._join()

    def _join(self) -> None:
        self.owned = set()
        said = ConsumerProtocolSubscription(topics=sorted(self.topics))
        metadata = pack(">h", VERSION) + encode(said, VERSION)
        request = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=15_000,
            member_id=self.id,
            group_instance_id=self.instance_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name="round", metadata=metadata)],
        )
        self.ask(request, 9, self._joined, JOIN_TIMEOUT_MS)

    def _joined(self, reply: JoinGroupResponse) -> None:
        if reply.error_code == MEMBER_ID_REQUIRED.code:
            self.id = reply.member_id
            self._join()
        elif reply.error_code in (UNKNOWN_MEMBER_ID.code, FENCED_INSTANCE_ID.code):
            self.id, self.generation = "", -1
            self.later(RETRY_MS, self._join)
        elif reply.error_code:
            self.later(RETRY_MS, self._join)
        else:
            self.id, self.generation, self._protocol = reply.member_id, reply.generation_id, reply.protocol_name
            self._watched = frozenset()
            self._sync(self._assign(reply) if reply.leader == self.id else {}, send=not reply.skip_assignment)

    def _assign(self, reply: JoinGroupResponse) -> dict[str, dict[str, list[int]]]:
        topics_of = {
            member.member_id: decode(ConsumerProtocolSubscription, VERSION, member.metadata, 2)[0].topics
            for member in reply.members
        }
        self._watched = frozenset(name for topics in topics_of.values() for name in topics)
        self._seen = self._sizes()
        given: dict[str, dict[str, list[int]]] = {member: {} for member in topics_of}
        for topic in self.world.image.topics.values():
            takers = sorted(member for member, topics in topics_of.items() if topic.name in topics)
            for number in range(len(topic.partitions) if takers else 0):
                given[takers[number % len(takers)]].setdefault(topic.name, []).append(number)
        return given

    def _sync(self, given: dict[str, dict[str, list[int]]], *, send: bool) -> None:
        assignments = []
        for member, topics in given.items() if send else ():
            message = ConsumerProtocolAssignment(
                assigned_partitions=[
                    ConsumerProtocolAssignment.TopicPartition(topic=name, partitions=numbers)
                    for name, numbers in topics.items()
                ]
            )
            data = pack(">h", VERSION) + encode(message, VERSION)
            assignments.append(SyncGroupRequest.SyncGroupRequestAssignment(member_id=member, assignment=data))
        request = SyncGroupRequest(
            group_id=GROUP,
            generation_id=self.generation,
            member_id=self.id,
            group_instance_id=self.instance_id,
            protocol_type="consumer",
            protocol_name=self._protocol,
            assignments=assignments,
        )
        self.ask(request, 5, self._synced, JOIN_TIMEOUT_MS)

    def _synced(self, reply: SyncGroupResponse) -> None:
        if reply.error_code:
            self._start_over(reply.error_code)
            return
        given = decode(ConsumerProtocolAssignment, VERSION, reply.assignment, 2)[0] if reply.assignment else None
        topics = [] if given is None else given.assigned_partitions
        self.owned = {(topic.topic, number) for topic in topics for number in topic.partitions}
        self.later(3_000, self._beat)

    def _beat(self) -> None:
        request = HeartbeatRequest(
            group_id=GROUP, generation_id=self.generation, member_id=self.id, group_instance_id=self.instance_id
        )
        self.ask(request, 4, self._heard)

    def _heard(self, reply: HeartbeatResponse) -> None:
        if reply.error_code:
            self._start_over(reply.error_code)
        else:
            self._watch_topics()

    def _watch_topics(self) -> None:
        """A leader sees that topics of the group have changed and asks for a rebalance."""
        if self._sizes() != self._seen and self._watched:
            self._join()
        else:
            self.later(3_000, self._beat)

    def _sizes(self) -> dict[str, int]:
        topics = self.world.image.topics.values()
        return {topic.name: len(topic.partitions) for topic in topics if topic.name in self._watched}

    def _start_over(self, error: int) -> None:
        if error in (UNKNOWN_MEMBER_ID.code, FENCED_INSTANCE_ID.code):
            self.id, self.generation = "", -1
        elif error == ILLEGAL_GENERATION.code:
            self.generation = -1
        elif error != REBALANCE_IN_PROGRESS.code:
            self.owned = set()
            self.later(RETRY_MS, self._join)
            return
        self._join()

    def leave(self) -> None:
        self.owned = set()
        if self.id:
            named = LeaveGroupRequest.MemberIdentity(member_id=self.id, group_instance_id=self.instance_id)
            self.world.ask(self.name, LeaveGroupRequest(group_id=GROUP, members=[named]), 5, lambda _: None)
        self.die()
