"""Topics: list, describe, create, delete, grow, configure, trim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.model.errors import (
    NONE,
    OFFSET_OUT_OF_RANGE,
    POLICY_VIOLATION,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    Refused,
    error_of,
)
from penstock.model.ids import uuid_text
from penstock.protocol.messages.create_partitions import CreatePartitionsRequest
from penstock.protocol.messages.create_topics import CreateTopicsRequest
from penstock.protocol.messages.delete_records import DeleteRecordsRequest
from penstock.protocol.messages.delete_topics import DeleteTopicsRequest
from penstock.protocol.messages.describe_configs import DescribeConfigsRequest
from penstock.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from penstock.protocol.messages.list_offsets import ListOffsetsRequest

if TYPE_CHECKING:
    from penstock.client.cluster_view import ClusterView
    from penstock.protocol.messages.metadata import MetadataResponse

TOPIC_RESOURCE = 2
BROKER_DEFAULT = -1
SET, DELETE = 0, 1
LATEST, EARLIEST = -1, -2
_TOPIC_SOURCE = 1
_TRIM_WORDS = {
    OFFSET_OUT_OF_RANGE.code: "the offset lies beyond its high watermark",
    POLICY_VIOLATION.code: "only topics with cleanup.policy=delete can be trimmed",
}
_ABSENT = (UNKNOWN_TOPIC_OR_PARTITION.code, UNKNOWN_TOPIC_ID.code)


@dataclass(slots=True)
class PartitionInfo:
    """One partition as a client sees it; the offsets are -1 when they were not asked for or its leader is away."""

    partition: int
    leader: int
    leader_epoch: int
    replicas: list[int]
    isr: list[int]
    offline: list[int]
    start: int = -1
    end: int = -1


@dataclass(slots=True)
class TopicInfo:
    name: str
    id: str
    internal: bool
    partitions: list[PartitionInfo]
    configs: dict[str, str] = field(default_factory=dict)

    @property
    def replication(self) -> int:
        return len(self.partitions[0].replicas) if self.partitions else 0


class TopicAdmin:
    """Topic administration over a cluster view. Refusals are raised as `Refused` with the broker's own words."""

    def __init__(self, view: ClusterView, *, timeout_ms: int = 30_000) -> None:
        self._view, self._timeout_ms = view, timeout_ms

    async def topics(self, *, internal: bool = False) -> list[TopicInfo]:
        reply = await self._view.metadata(None)
        topics = [_topic(found) for found in reply.topics]
        return sorted((topic for topic in topics if internal or not topic.internal), key=lambda topic: topic.name)

    async def describe(self, names: Sequence[str], *, offsets: bool = True) -> list[TopicInfo]:
        """Topics with partitions, changed configs and, if asked for, the ends of their logs."""
        replies = {found.name: found for found in (await self._view.metadata(list(names))).topics}
        for name in names:
            _check(replies[name].error_code, None, f"topic {name!r}")
        topics = [_topic(replies[name]) for name in names]
        for topic in topics:
            topic.configs = await self.changed_configs(topic.name)
            if offsets:
                await self._fill_ends(topic)
        return topics

    async def create(
        self,
        name: str,
        partitions: int | None = None,
        replication: int | None = None,
        configs: Mapping[str, str] | None = None,
        *,
        validate_only: bool = False,
    ) -> str:
        """Creates a topic and answers its id; None for partitions or replication means the broker's default."""
        wanted = CreateTopicsRequest.CreatableTopic(
            name=name,
            num_partitions=BROKER_DEFAULT if partitions is None else partitions,
            replication_factor=BROKER_DEFAULT if replication is None else replication,
            configs=[
                CreateTopicsRequest.CreatableTopicConfig(name=key, value=value)
                for key, value in (configs or {}).items()
            ],
        )
        request = CreateTopicsRequest(topics=[wanted], timeout_ms=self._timeout_ms, validate_only=validate_only)
        (made,) = (await self._view.ask_any(request)).topics
        _check(made.error_code, made.error_message, f"topic {name!r}")
        return uuid_text(made.topic_id)

    async def delete(self, name: str) -> None:
        request = DeleteTopicsRequest(
            topics=[DeleteTopicsRequest.DeleteTopicState(name=name)], topic_names=[name], timeout_ms=self._timeout_ms
        )
        (gone,) = (await self._view.ask_any(request)).responses
        _check(gone.error_code, gone.error_message, f"topic {name!r}")

    async def grow(self, name: str, to: int) -> None:
        """Raises the number of partitions to `to`."""
        wanted = CreatePartitionsRequest.CreatePartitionsTopic(name=name, count=to, assignments=None)
        (grown,) = (
            await self._view.ask_any(CreatePartitionsRequest(topics=[wanted], timeout_ms=self._timeout_ms))
        ).results
        _check(grown.error_code, grown.error_message, f"topic {name!r}")

    async def configure(self, name: str, changes: Mapping[str, str | None]) -> None:
        """Sets configs; None takes an override away."""
        resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
            resource_type=TOPIC_RESOURCE,
            resource_name=name,
            configs=[
                IncrementalAlterConfigsRequest.AlterableConfig(
                    name=key, config_operation=DELETE if value is None else SET, value=value
                )
                for key, value in changes.items()
            ],
        )
        (changed,) = (await self._view.ask_any(IncrementalAlterConfigsRequest(resources=[resource]))).responses
        _check(changed.error_code, changed.error_message, f"topic {name!r}")

    async def changed_configs(self, name: str) -> dict[str, str]:
        """The configs that were set on the topic itself."""
        resource = DescribeConfigsRequest.DescribeConfigsResource(
            resource_type=TOPIC_RESOURCE, resource_name=name, configuration_keys=None
        )
        (found,) = (await self._view.ask_any(DescribeConfigsRequest(resources=[resource]))).results
        _check(found.error_code, found.error_message, f"topic {name!r}")
        return {entry.name: entry.value or "" for entry in found.configs if entry.config_source == _TOPIC_SOURCE}

    async def trim(self, name: str, before: Mapping[int, int]) -> dict[int, int]:
        """Deletes the records before the given offset of each partition (-1: all); answers the new log starts.

        Nothing is deleted when one of the partitions does not exist.
        """
        (found,) = (await self._view.metadata([name])).topics
        _check(found.error_code, None, f"topic {name!r}")
        leaders = {p.partition_index: p.leader_id for p in found.partitions}
        for index in sorted(set(before) - set(leaders)):
            _check(UNKNOWN_TOPIC_OR_PARTITION.code, None, f"partition {index} of topic {name!r}")
        starts: dict[int, int] = {}
        for node in sorted({leaders[index] for index in before}):
            wanted = [
                DeleteRecordsRequest.DeleteRecordsPartition(partition_index=index, offset=offset)
                for index, offset in before.items()
                if leaders[index] == node
            ]
            topic = DeleteRecordsRequest.DeleteRecordsTopic(name=name, partitions=wanted)
            reply = await self._view.ask(node, DeleteRecordsRequest(topics=[topic], timeout_ms=self._timeout_ms))
            for result in reply.topics[0].partitions:
                words = _TRIM_WORDS.get(result.error_code, "it cannot be trimmed")
                what = f"partition {result.partition_index} of topic {name!r}"
                _check(result.error_code, f"{what}: {words}", what)
                starts[result.partition_index] = result.low_watermark
        return starts

    async def _fill_ends(self, topic: TopicInfo) -> None:
        for node in sorted({p.leader for p in topic.partitions if p.leader >= 0}):
            led = [p for p in topic.partitions if p.leader == node]
            for timestamp in (EARLIEST, LATEST):
                wanted = [
                    ListOffsetsRequest.ListOffsetsPartition(partition_index=p.partition, timestamp=timestamp)
                    for p in led
                ]
                asked = ListOffsetsRequest.ListOffsetsTopic(name=topic.name, partitions=wanted)
                reply = await self._view.ask(node, ListOffsetsRequest(replica_id=-1, topics=[asked]))
                found = {p.partition_index: p.offset for p in reply.topics[0].partitions if not p.error_code}
                for info in led:
                    if timestamp == EARLIEST:
                        info.start = found.get(info.partition, -1)
                    else:
                        info.end = found.get(info.partition, -1)


def _topic(found: MetadataResponse.MetadataResponseTopic) -> TopicInfo:
    partitions = [
        PartitionInfo(p.partition_index, p.leader_id, p.leader_epoch, p.replica_nodes, p.isr_nodes, p.offline_replicas)
        for p in sorted(found.partitions, key=lambda p: p.partition_index)
    ]
    return TopicInfo(found.name or "", uuid_text(found.topic_id), found.is_internal, partitions)


def _check(code: int, words: str | None, what: str) -> None:
    """Raises what a broker refused, in its own words if it has any that say more than the code."""
    if code == NONE.code:
        return
    if code in _ABSENT:
        # Brokers word this as "this server does not host this topic-partition", which leaves out which.
        raise Refused(error_of(code), f"{what} does not exist")
    raise Refused(error_of(code), words or f"{what} was refused")
