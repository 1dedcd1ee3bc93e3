"""One shard with consumer groups, driven as the driver does it: decide, apply, and only then the next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from penstock.coordinators.decision import Answer, Caller, Decision, Moment, StateRecord
from penstock.coordinators.groups.consumer.group import ConsumerGroup
from penstock.coordinators.groups.settings import GroupSettings
from penstock.coordinators.groups.shard import GroupShard
from penstock.metadata.image import ClusterImage
from penstock.model.config.definition import ConfigValue
from penstock.model.errors import ErrorCode, error_of
from penstock.model.ids import Epoch, Millis, Offset, Uuid
from penstock.protocol.codec import decode, encode
from penstock.protocol.disk.group_records import group_record
from penstock.protocol.disk.metadata_topics import PartitionRecord, RemoveTopicRecord, TopicRecord
from penstock.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from penstock.protocol.schema import schema_of

GROUP = "g"
START = Moment(Millis(1_700_000_000_000), 1_000)

Partitions = dict[str, list[int]]


def topic_id(name: str) -> Uuid:
    return Uuid(name.encode().ljust(16, b"\0"))


class Scene:
    """`now` moves by `tick`. Every decision's records are encoded, kept in `log` and applied as decoded."""

    def __init__(
        self,
        topics: Mapping[str, int],
        properties: Mapping[str, ConfigValue] | None = None,
        groups: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        self.image = ClusterImage()
        self.now = START
        self.log: list[StateRecord] = []
        self.answers: list[Answer] = []
        self._ids = 0
        self.settings = GroupSettings.fixed({"group.consumer.assignment.interval.ms": 0, **(properties or {})}, groups)
        for name, count in topics.items():
            self.create(name, count, tell=False)
        self.image.take_delta()
        self.shard = GroupShard(self.settings, self.image, new_id=self._new_id)

    def _new_id(self) -> str:
        self._ids += 1
        return f"{self._ids:08x}-0000-0000-0000-000000000000"

    # The world

    def create(self, name: str, count: int, *, tell: bool = True) -> None:
        offset = Offset(self.image.offset + 1)
        self.image.apply(TopicRecord(name=name, topic_id=topic_id(name)), offset, Epoch(1))
        self.grow(name, count, tell=tell)

    def grow(self, name: str, count: int, *, tell: bool = True) -> None:
        for index in range(len(self.image.topics[topic_id(name)].partitions), count):
            offset = Offset(self.image.offset + 1)
            record = PartitionRecord(
                partition_id=index, topic_id=topic_id(name), replicas=[1], isr=[1], leader=1, leader_epoch=0
            )
            self.image.apply(record, offset, Epoch(1))
        if tell:
            self._tell()

    def delete(self, name: str) -> None:
        self.image.apply(RemoveTopicRecord(topic_id=topic_id(name)), Offset(self.image.offset + 1), Epoch(1))
        self._tell()

    def _tell(self) -> None:
        self.carry_out(self.shard.image_changed(self.image, self.image.take_delta(), self.now))

    def tick(self, ms: int) -> None:
        """Lets time pass and everything that is due happen, in order."""
        end = self.now.tick + ms
        while (due := self.shard.next_deadline()) is not None and due <= end:
            self._advance_to(max(due, self.now.tick))
            self.carry_out(self.shard.expire(self.now))
        self._advance_to(end)

    def _advance_to(self, tick: int) -> None:
        passed = tick - self.now.tick
        self.now = Moment(Millis(self.now.wall + passed), tick)

    # Decisions

    def carry_out(self, decisions: Iterable[Decision]) -> None:
        for decision in decisions:
            self.apply(decision)

    def apply(self, decision: Decision) -> Decision:
        for record in decision.records:
            stored = round_trip(record)
            self.log.append(stored)
            self.shard.apply(stored)
        self.answers += decision.answers
        return decision

    def ask(self, request: Any, version: int, *, client: str = "c", token: object = None) -> Decision:
        caller = Caller(client, "/127.0.0.1", version, object() if token is None else token)
        return self.apply(self.shard.decide(request, caller, self.now))

    def reloaded(self) -> Scene:
        """A shard that has read the same log, at the same time."""
        twin = object.__new__(Scene)
        twin.__dict__.update(self.__dict__, log=list(self.log), answers=[])
        twin.shard = GroupShard(self.settings, self.image, new_id=self._new_id)
        for record in twin.log:
            twin.shard.apply(record)
        twin.carry_out(twin.shard.loaded(self.now))
        return twin

    @property
    def group(self) -> ConsumerGroup:
        group = self.shard.table.groups[GROUP]
        assert isinstance(group, ConsumerGroup)
        return group

    # Members

    def beat(self, member: str, epoch: int, *, version: int = 1, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        owned = fields.pop("owned", None)
        if owned is not None:
            fields["topic_partitions"] = [
                ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=topic_id(name), partitions=numbers)
                for name, numbers in owned.items()
            ]
        request = ConsumerGroupHeartbeatRequest(
            group_id=fields.pop("group", GROUP), member_id=member, member_epoch=epoch, **fields
        )
        reply = self.ask(request, version).reply
        assert isinstance(reply, ConsumerGroupHeartbeatResponse)
        return reply

    def join(self, member: str, *topics: str, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        fields = {"rebalance_timeout_ms": 60_000, "owned": {}, **fields}
        if topics:
            fields["subscribed_topic_names"] = list(topics)
        return self.beat(member, 0, **fields)


def round_trip(record: StateRecord) -> StateRecord:
    """The record as it comes back from the log."""
    key_class, value_class = group_record(schema_of(record.key.__class__).key)
    key = decode(key_class, 0, encode(record.key, 0))[0]
    if record.value is None:
        return StateRecord(key, None)
    data = encode(record.value, record.value_version)
    return StateRecord(key, decode(value_class, record.value_version, data)[0], record.value_version)


def given(reply: ConsumerGroupHeartbeatResponse) -> Partitions | None:
    """The assignment in a reply, by topic name."""
    if reply.assignment is None:
        return None
    return {
        topic.topic_id.rstrip(b"\0").decode(): list(topic.partitions) for topic in reply.assignment.topic_partitions
    }


def error(reply: Any) -> ErrorCode:
    return error_of(reply.error_code)


def kinds(records: Iterable[StateRecord]) -> list[str]:
    """What was written, in short: the kind of each record, with − for a tombstone."""
    return [
        ("-" if record.value is None else "")
        + record.key.__class__.__name__.removeprefix("ConsumerGroup").removesuffix("Key")
        for record in records
    ]
