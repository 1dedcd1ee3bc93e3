"""A coordinator with consumer groups in a world of lost messages, dead members, failovers and changing topics.

Everything happens on one virtual clock and by one seed. After every event the world checks that no partition has two
readers whom the coordinator would both believe.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from itertools import count
from random import Random
from typing import Any, Protocol

from penstock.coordinators.decision import Caller, Decision, Moment, StateRecord
from penstock.coordinators.groups.consumer.group import ConsumerGroup
from penstock.coordinators.groups.settings import GroupSettings
from penstock.coordinators.groups.shard import GroupShard
from penstock.metadata.image import ClusterImage
from penstock.model.config.definition import ConfigValue
from penstock.model.errors import NONE
from penstock.model.ids import Epoch, Millis, Offset, Uuid
from penstock.protocol.codec import encode
from penstock.protocol.disk.metadata_topics import PartitionRecord, RemoveTopicRecord, TopicRecord
from penstock.protocol.messages.offset_commit import OffsetCommitRequest
from tests.unit.coordinators.durable import durable, round_trip

GROUP = "g"
START_MS = 1_700_000_000_000

TopicPartition = tuple[str, int]


class Reader(Protocol):
    """A model of a member: what it reads, and as whom it would commit."""

    id: str
    owned: set[TopicPartition]
    topics: set[str]
    instance_id: str | None

    def epoch_known(self) -> int: ...
    def subscribes(self) -> set[str]: ...
    def start(self) -> None: ...
    def leave(self) -> None: ...
    def die(self) -> None: ...
    def change_topics(self, topics: set[str]) -> None: ...


class World:
    """Messages take up to `delay_ms` either way and get lost with probability `loss`."""

    def __init__(self, seed: int, properties: dict[str, ConfigValue]) -> None:
        self.random = Random(seed)
        self.settings = GroupSettings.fixed(properties)
        self.image = ClusterImage()
        self.tick = 0
        self.delay_ms, self.loss = 50, 0.0
        self.log: list[StateRecord] = []
        self.readers: list[Reader] = []
        self.story: list[str] = []
        self._ids = count(1)
        self._order = count()
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._replies: dict[object, Callable[[Any], None]] = {}
        self._topics = 0
        self.shard = self._new_shard()

    def _new_shard(self) -> GroupShard:
        return GroupShard(self.settings, self.image, new_id=lambda: f"made-{next(self._ids)}")

    @property
    def now(self) -> Moment:
        return Moment(Millis(START_MS + self.tick), self.tick)

    # Time

    def after(self, ms: int, act: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self.tick + ms, next(self._order), act))

    def run(self, ms: int) -> None:
        end = self.tick + ms
        while True:
            due = self.shard.next_deadline()
            event = self._events[0][0] if self._events else end + 1
            first = min(event, end + 1 if due is None else max(due, self.tick))
            if first > end:
                break
            self.tick = max(self.tick, first)
            if event == first:
                heapq.heappop(self._events)[2]()
            else:
                self.carry_out(self.shard.expire(self.now))
            self.check()
        self.tick = end

    # The coordinator

    def carry_out(self, decisions: Iterable[Decision]) -> None:
        for decision in decisions:
            self._apply(decision)

    def _apply(self, decision: Decision) -> None:
        for record in decision.records:
            stored = round_trip(record)
            self.log.append(stored)
            self.shard.apply(stored)
        for answer in decision.answers:
            self._reply(answer.token, answer.reply)

    def ask(self, client: str, request: Any, version: int, on_reply: Callable[[Any], None]) -> None:
        """Sends a request; `on_reply` may never be called."""
        token = object()
        self._replies[token] = on_reply
        if self.random.random() >= self.loss:
            self.after(self.random.randint(0, self.delay_ms), lambda: self._arrive(client, request, version, token))

    def _arrive(self, client: str, request: Any, version: int, token: object) -> None:
        decision = self.shard.decide(request, Caller(client, "/h", version, token), self.now)
        self._apply(decision)
        if decision.reply is not None:
            self._reply(token, decision.reply)

    def _reply(self, token: object, reply: Any) -> None:
        on_reply = self._replies.pop(token)
        if self.random.random() >= self.loss:
            self.after(self.random.randint(0, self.delay_ms), lambda: on_reply(reply))

    def fail_over(self) -> None:
        """Another node reads the log, or what compaction has left of it, and must find the same."""
        self.story.append(f"{self.tick} failover")
        for answer in self.shard.unload():
            self._reply(answer.token, answer.reply)
        before = state_of(self.shard)
        for log in (compacted(self.log, self.random.random() < 0.5), self.log):
            self.shard = self._new_shard()
            for record in log:
                self.shard.apply(record)
            assert_same(before, state_of(self.shard))
        self.carry_out(self.shard.loaded(self.now))

    # Topics

    def create_topic(self, partitions: int) -> str:
        self._topics += 1
        name = f"t{self._topics}"
        self._change(TopicRecord(name=name, topic_id=topic_id(name)))
        self.grow_topic(name, partitions)
        return name

    def grow_topic(self, name: str, partitions: int) -> None:
        for index in range(len(self.image.topics[topic_id(name)].partitions), partitions):
            self._change(PartitionRecord(partition_id=index, topic_id=topic_id(name), replicas=[1], isr=[1], leader=1))
        self._publish()

    def delete_topic(self, name: str) -> None:
        self._change(RemoveTopicRecord(topic_id=topic_id(name)))
        self._publish()

    def _change(self, record: Any) -> None:
        self.image.apply(record, Offset(self.image.offset + 1), Epoch(1))

    def _publish(self) -> None:
        self.carry_out(self.shard.image_changed(self.image, self.image.take_delta(), self.now))

    # Invariants

    def believed(self, reader: Reader, partition: TopicPartition) -> bool:
        """Whether the coordinator would take the reader's commit for the partition."""
        group = self.shard.table.groups.get(GROUP)
        if group is None:
            return False
        name, number = partition
        topic = OffsetCommitRequest.OffsetCommitRequestTopic(
            name=name, partitions=[OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=number)]
        )
        request = OffsetCommitRequest(
            group_id=GROUP, member_id=reader.id, generation_id_or_member_epoch=reader.epoch_known(), topics=[topic]
        )
        return reader.epoch_known() >= 0 and bool(reader.id) and group.check_commit(request, 9) is NONE

    def check(self) -> None:
        holders: dict[TopicPartition, Reader] = {}
        for reader in self.readers:
            for partition in reader.owned:
                other = holders.setdefault(partition, reader)
                if other is not reader and self.believed(other, partition):
                    assert not self.believed(reader, partition), f"{partition} is read by {other.id} and {reader.id}"
                    continue
                holders[partition] = reader
        group = self.shard.table.groups.get(GROUP)
        if isinstance(group, ConsumerGroup):
            check_group(group)

    def check_settled(self) -> None:
        """Every partition that anybody subscribes to has its reader, and the group is at rest."""
        group = self.shard.table.groups.get(GROUP)
        if not self.readers:
            return
        assert group is not None
        assert group.state_name() == "Stable", group.state_name()
        names = {topic.name: len(topic.partitions) for topic in self.image.topics.values()}
        wanted = {
            (name, number)
            for reader in self.readers
            for name in reader.subscribes()
            for number in range(names.get(name, 0))
        }
        read = [partition for reader in self.readers for partition in reader.owned]
        assert sorted(read) == sorted(wanted)
        for reader in self.readers:
            assert {name for name, _ in reader.owned} <= reader.subscribes()
            assert all(self.believed(reader, partition) for partition in reader.owned)


def topic_id(name: str) -> Uuid:
    return Uuid(name.encode().ljust(16, b"\0"))


def topic_name(topic: bytes) -> str:
    return topic.rstrip(b"\0").decode()


def check_group(group: ConsumerGroup) -> None:
    """No partition is with two members, and everybody's epoch is one that was given out."""
    seen: set[tuple[Uuid, int]] = set()
    for member in group.members.values():
        assert member.epoch <= group.epoch
        mine = [
            (topic, number)
            for owned in (member.assigned, member.revoking)
            for topic, numbers in owned.items()
            for number in numbers
        ]
        assert seen.isdisjoint(mine)
        seen.update(mine)


def state_of(shard: GroupShard) -> tuple[Any, dict[str, Any]]:
    consumers = {group.id: group.durable() for group in shard.table.groups.values() if isinstance(group, ConsumerGroup)}
    return durable(shard.table), consumers


def assert_same(before: tuple[Any, dict[str, Any]], after: tuple[Any, dict[str, Any]]) -> None:
    """What a rebalance under way has moved is not durable, so a group that is in one cannot be compared."""
    assert before[1] == after[1]
    for group_id, group in before[0].groups.items():
        if group is not None and after[0].groups.get(group_id) is not None:
            assert group == after[0].groups[group_id]


def compacted(log: list[StateRecord], without_tombstones: bool) -> list[StateRecord]:
    """The last record of every key, in order."""
    last = {(type(record.key).__name__, encode(record.key, 0)): number for number, record in enumerate(log)}
    kept = [log[number] for number in sorted(last.values())]
    return [record for record in kept if record.value is not None or not without_tombstones]
