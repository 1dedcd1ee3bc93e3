"""Many members and the real coordinator in one seeded world: virtual time, slow and breaking connections, no loop.

Requests of a connection are handled in order, one at a time, as brokers do; a request that is held back holds up the
others. The log is kept, so that the coordinator can fail over: it is dropped and replayed.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable, Iterable
from typing import Any

from penstock.client.consumer.group.assignors import assignors_of
from penstock.client.consumer.group.classic_member import ClassicMember, Phase
from penstock.client.consumer.group.consumer_member import ConsumerMember
from penstock.client.consumer.group.effects import (
    Assign,
    Effect,
    Ended,
    FindCoordinator,
    LearnNames,
    LearnTopics,
    LoseCoordinator,
    Revoke,
    Send,
)
from penstock.client.consumer.group.fitting import fitted
from penstock.client.consumer.group.membership import MemberSettings
from penstock.client.errors import NotReachable, refusal
from penstock.client.retry import Backoff
from penstock.coordinators.decision import Caller, Decision, Moment, StateRecord
from penstock.coordinators.groups.settings import GroupSettings
from penstock.coordinators.groups.shard import GroupShard
from penstock.metadata.image import ClusterImage
from penstock.model.errors import NOT_COORDINATOR
from penstock.model.ids import Epoch, Millis, Offset, TopicPartition, Uuid
from penstock.protocol.disk.metadata_topics import PartitionRecord, TopicRecord
from penstock.protocol.messages.heartbeat import HeartbeatRequest
from penstock.protocol.messages.join_group import JoinGroupRequest
from penstock.protocol.messages.leave_group import LeaveGroupRequest
from penstock.protocol.messages.sync_group import SyncGroupRequest

GROUP = "g"
VERSIONS = {JoinGroupRequest: 9, SyncGroupRequest: 5, HeartbeatRequest: 4, LeaveGroupRequest: 5}
LOST = NotReachable("cut off", retriable=True)


def topic_id(name: str) -> Uuid:
    return Uuid(name.encode().ljust(16, b"\0"))


class Connection:
    """One link of a member: what was sent and is not answered, the first of it being handled."""

    def __init__(self) -> None:
        self.queue: list[Send] = []
        self.up = True


class Actor:
    """One consumer: the machine and what the session would do for it."""

    def __init__(self, world: World, name: str, machine: ClassicMember | ConsumerMember) -> None:
        self.world, self.name, self.machine = world, name, machine
        self.connection: Connection | None = None
        self.alive = True
        self.polls = True
        self.ended = False
        self._timer = 0

    def feed(self, effects: list[Effect]) -> None:
        for effect in effects:
            self._obey(effect)
        self._timer += 1
        due = self.machine.deadline()
        if due is not None and self.alive:
            self.world.at(max(due, self.world.now), lambda timer=self._timer: self._tick(timer))

    def later(self, low: int, high: int, act: Callable[[], list[Effect]]) -> None:
        def run() -> None:
            if self.alive:
                self.feed(act())

        self.world.after(self.world.random.randint(low, high), run)

    def cut(self) -> None:
        """The connection breaks."""
        connection, self.connection = self.connection, None
        if connection is None:
            return
        connection.up = False
        for sent in connection.queue:
            self.feed(self.machine.unanswered(sent, LOST, self.world.now))
        self.feed(self.machine.coordinator_lost("cut off", self.world.now))

    def crash(self) -> None:
        self.alive = False
        self.connection = None

    def poll(self) -> None:
        if self.alive and self.polls and not self.ended:
            self.feed(self.machine.polled(self.world.now))

    def _tick(self, timer: int) -> None:
        if timer == self._timer and self.alive:
            self.feed(self.machine.tick(self.world.now))

    def _obey(self, effect: Effect) -> None:
        world, machine = self.world, self.machine
        match effect:
            case Send(aside=True):
                self.later(1, 10, lambda: self._ask_aside(effect))
            case Send():
                connection = self.connection
                if connection is None:
                    self.later(0, 0, lambda: machine.unanswered(effect, LOST, world.now))
                else:
                    connection.queue.append(effect)
                    if len(connection.queue) == 1:
                        self._transmit(connection)
            case FindCoordinator():
                self.later(1, 20, self._connect)
            case LoseCoordinator():
                if self.connection is not None:
                    self.connection.up = False
                self.connection = None
            case LearnTopics():
                assert isinstance(machine, ClassicMember)
                self.later(1, 20, lambda: machine.topics_learned(world.picture(), world.now))
            case LearnNames(ids):
                assert isinstance(machine, ConsumerMember)
                names = {topic_id(name): name for name in world.topics if topic_id(name) in ids}
                self.later(1, 20, lambda: machine.names_learned(names, world.now))
            case Revoke() | Assign():
                self.later(0, world.hook_ms_max, lambda: machine.hook_done(world.now))
            case Ended():
                self.ended = True
                self.crash()
            case _:
                pass

    def _connect(self) -> list[Effect]:
        if not self.world.serving:
            return self.machine.coordinator_missing(refusal(NOT_COORDINATOR.code, None, "g"), self.world.now)
        self.connection = Connection()
        return self.machine.coordinator_found(self.world.now)

    def _ask_aside(self, sent: Send) -> list[Effect]:
        connection = Connection()
        connection.queue.append(sent)
        self.world.handle(self, connection)
        return []

    def _transmit(self, connection: Connection) -> None:
        self.world.after(self.world.random.randint(1, 10), lambda: self.world.handle(self, connection))

    def answered(self, connection: Connection, reply: Any) -> None:
        """The reply of the first request in the queue is on its way."""
        self.world.after(self.world.random.randint(1, 10), lambda: self._hear(connection, reply))

    def _hear(self, connection: Connection, reply: Any) -> None:
        if not connection.up or not self.alive:
            return
        sent = connection.queue.pop(0)
        if connection.queue:
            self._transmit(connection)
        self.feed(self.machine.replied(sent, reply, self.world.now))


class World:
    """Members by name, the shard, and what is to happen when."""

    def __init__(self, seed: int, topics: dict[str, int]) -> None:
        self.random = random.Random(seed)
        self.now = 0.0
        self.topics: dict[str, int] = {}
        self.actors: dict[str, Actor] = {}
        self.serving = True
        self.hook_ms_max = 50
        self._image = ClusterImage()
        self._log: list[StateRecord] = []
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._ids = itertools.count(1)
        self._settings = GroupSettings.fixed(
            {"group.initial.rebalance.delay.ms": 50, "group.consumer.assignment.interval.ms": 0}
        )
        for name, count in topics.items():
            self._put(name, count)
        self._image.take_delta()
        self.shard = self._new_shard()

    # Members.

    def classic(
        self, name: str, topics: Iterable[str], *, strategy: str = "range", instance: str | None = None
    ) -> Actor:
        settings = MemberSettings(
            GROUP,
            instance_id=instance,
            session_timeout_ms=6_000,
            heartbeat_interval_ms=1_000,
            max_poll_interval_ms=5_000,
            request_timeout_ms=3_000,
            assignors=assignors_of(strategy.split(",")),
        )
        return self._add(name, ClassicMember(settings, self._backoff()), topics)

    def consumer(self, name: str, topics: Iterable[str]) -> Actor:
        settings = MemberSettings(GROUP, max_poll_interval_ms=5_000, request_timeout_ms=3_000)
        return self._add(name, ConsumerMember(settings, self._backoff(), f"{name}-{next(self._ids)}"), topics)

    def _backoff(self) -> Backoff:
        return Backoff(100, 1_000, self.random.random)

    def _add(self, name: str, machine: ClassicMember | ConsumerMember, topics: Iterable[str]) -> Actor:
        actor = self.actors[name] = Actor(self, name, machine)
        actor.feed(machine.subscribe(frozenset(topics), None, self.now))
        actor.feed(machine.start(self.now))
        return actor

    @property
    def live(self) -> list[Actor]:
        return [actor for actor in self.actors.values() if actor.alive]

    # Topics.

    def picture(self) -> dict[str, list[frozenset[str]]]:
        return {name: [frozenset()] * count for name, count in self.topics.items()}

    def grow(self, name: str, count: int) -> None:
        """The topic gets (or begins with) `count` partitions, and the leader's view hears of it."""
        self._put(name, count)
        if self.serving:
            self._carry_out(self.shard.image_changed(self._image, self._image.take_delta(), self._moment()))
        for actor in self.live:
            machine = actor.machine
            if isinstance(machine, ClassicMember):
                actor.later(1, 100, lambda machine=machine: machine.topics_seen(self.picture(), self.now))

    def _put(self, name: str, count: int) -> None:
        image = self._image
        if name not in self.topics:
            image.apply(TopicRecord(name=name, topic_id=topic_id(name)), Offset(image.offset + 1), Epoch(1))
        for index in range(self.topics.get(name, 0), count):
            record = PartitionRecord(
                partition_id=index, topic_id=topic_id(name), replicas=[1], isr=[1], leader=1, leader_epoch=0
            )
            image.apply(record, Offset(image.offset + 1), Epoch(1))
        self.topics[name] = count

    # The coordinator.

    def fail_over(self, ms: int) -> None:
        """The coordinator is gone for a while and comes back from its log; all connections break."""
        self.serving = False
        for actor in self.live:
            actor.cut()
        self.after(ms, self._come_back)

    def _come_back(self) -> None:
        self.serving = True
        self.shard = self._new_shard()
        for record in self._log:
            self.shard.apply(record)
        self._carry_out(self.shard.loaded(self._moment()))

    def _new_shard(self) -> GroupShard:
        return GroupShard(self._settings, self._image, new_id=lambda: f"{next(self._ids):036x}")

    def handle(self, actor: Actor, connection: Connection) -> None:
        if not connection.up or not self.serving:
            return
        sent = connection.queue[0]
        version = VERSIONS.get(type(sent.request), 1)
        caller = Caller(actor.name, "/127.0.0.1", version, (actor, connection))
        self._apply(self.shard.decide(fitted(sent.request, version), caller, self._moment()), (actor, connection))

    def _apply(self, decision: Decision, token: Any = None) -> None:
        for record in decision.records:
            self._log.append(record)
            self.shard.apply(record)
        if decision.reply is not None:
            actor, connection = token
            actor.answered(connection, decision.reply)
        for answer in decision.answers:
            actor, connection = answer.token
            actor.answered(connection, answer.reply)

    def _carry_out(self, decisions: Iterable[Decision]) -> None:
        for decision in decisions:
            self._apply(decision)

    def _moment(self) -> Moment:
        return Moment(Millis(1_700_000_000_000 + int(self.now)), int(self.now))

    # Time.

    def at(self, when: float, act: Callable[[], None]) -> None:
        heapq.heappush(self._events, (when, next(self._order), act))

    def after(self, ms: float, act: Callable[[], None]) -> None:
        self.at(self.now + ms, act)

    def run(self, ms: float) -> None:
        """Lets `ms` pass; members poll five times a second, and claims are checked after every event."""
        end = self.now + ms
        self._poll_every(200, end)
        for happened in itertools.count():
            assert happened < 200 * (ms + 1_000), "nobody comes to rest"
            due = self.shard.next_deadline() if self.serving else None
            first = self._events[0][0] if self._events else end + 1
            if due is not None and due <= min(first, end):
                self.now = max(self.now, float(due))
                self._carry_out(self.shard.expire(self._moment()))
            elif first <= end:
                when, _, act = heapq.heappop(self._events)
                self.now = max(self.now, when)
                act()
            else:
                break
            self.check()
        self.now = end

    def _poll_every(self, ms: float, end: float) -> None:
        def poll() -> None:
            for actor in list(self.live):
                actor.poll()
            if self.now + ms < end:
                self.after(ms, poll)

        poll()

    # Claims.

    def check(self) -> None:
        """Nobody in the present generation shares a partition with another member of it."""
        owners: dict[TopicPartition, Actor] = {}
        group = self.shard.table.groups.get(GROUP) if self.serving else None
        for actor in self.live:
            machine = actor.machine
            if machine.generation < 0 or group is None or not self._is_member(group, machine.member_id):
                continue
            if isinstance(machine, ClassicMember) and machine.generation != getattr(group, "generation", None):
                continue
            for partition in machine.owned:
                other = owners.setdefault(partition, actor)
                assert other is actor, f"{partition} belongs to {other.name} and {actor.name}"

    @staticmethod
    def _is_member(group: Any, member_id: str) -> bool:
        return member_id in group.members

    def settled(self) -> dict[str, frozenset[TopicPartition]]:
        """What everybody has, when all members are at rest and every partition has one owner."""
        machines = {actor.name: actor.machine for actor in self.live}
        for name, machine in machines.items():
            assert machine.failure is None, (name, machine.failure)
            assert machine.generation >= 0, name
            assert not isinstance(machine, ClassicMember) or machine.phase is Phase.STABLE, (name, machine.phase)
        owned = sorted(partition for machine in machines.values() for partition in machine.owned)
        wanted = {topic for machine in machines.values() for topic in machine._topics}
        assert owned == [
            TopicPartition(t, n) for t in sorted(wanted) if t in self.topics for n in range(self.topics[t])
        ]
        return {name: machine.owned for name, machine in machines.items()}
