"""Topics: list, describe, create, delete, grow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from penstock.client.admin.session import Results, Session, check, refused
from penstock.client.errors import ClientError
from penstock.model.ids import TopicPartition, uuid_text

if TYPE_CHECKING:
    from penstock.protocol.messages.metadata import MetadataResponse

BROKER_DEFAULT = -1


@dataclass(frozen=True, slots=True)
class PartitionInfo:
    """One partition as a client sees it; the offsets are -1 when they were not asked for or its leader is away.

    `end` is the high watermark; `last_stable` is where readers of committed records end, before the first transaction
    that is open.
    """

    partition: int
    leader: int
    leader_epoch: int
    replicas: list[int]
    isr: list[int]
    offline: list[int]
    start: int = -1
    end: int = -1
    last_stable: int = -1


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """A topic; `configs` has what was set on it, defaults are left out."""

    name: str
    id: str
    internal: bool
    partitions: list[PartitionInfo]
    configs: dict[str, str] = field(default_factory=dict)
    """Those that were set on the topic itself."""

    @property
    def replication(self) -> int:
        """How many replicas its first partition has."""
        return len(self.partitions[0].replicas) if self.partitions else 0


async def list_topics(session: Session, *, internal: bool) -> list[TopicInfo]:
    reply = await session.metadata(None)
    topics = [topic_info(found) for found in reply.topics]
    return sorted((topic for topic in topics if internal or not topic.internal), key=lambda topic: topic.name)


async def describe_topics(
    session: Session, names: Sequence[str], *, offsets: bool, configs: bool
) -> Results[str, TopicInfo]:
    """Topics with partitions, changed configs and the ends of their logs, as far as asked for."""

    async def ask(pending: list[str]) -> Mapping[str, TopicInfo | ClientError]:
        reply = await session.metadata(pending)
        return {
            found.name or "": topic_info(found)
            if not found.error_code
            else refused(found.error_code, None, f"topic {found.name!r}")
            for found in reply.topics
        }

    results = await session.settled(names, ask)
    topics = {name: results.done[name] for name in names if name in results.done}
    if offsets:
        topics = await _with_ends(session, topics)
    if configs:
        topics = await _with_configs(session, topics)
    results.done = topics
    return results


async def create_topic(
    session: Session,
    name: str,
    partitions: int | None,
    replication: int | None,
    configs: Mapping[str, str],
    assignment: Mapping[int, Sequence[int]] | None,
    validate_only: bool,
) -> str:
    """Creates a topic and answers its id; None for partitions or replication means the broker's default."""
    from penstock.protocol.messages.create_topics import CreateTopicsRequest

    wanted = CreateTopicsRequest.CreatableTopic(
        name=name,
        num_partitions=BROKER_DEFAULT if partitions is None else partitions,
        replication_factor=BROKER_DEFAULT if replication is None else replication,
        assignments=[
            CreateTopicsRequest.CreatableReplicaAssignment(partition_index=index, broker_ids=list(nodes))
            for index, nodes in (assignment or {}).items()
        ],
        configs=[CreateTopicsRequest.CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
    )
    request = CreateTopicsRequest(topics=[wanted], timeout_ms=session.request_timeout_ms, validate_only=validate_only)

    async def call() -> str:
        (made,) = (await session.any(request)).topics
        check(made.error_code, made.error_message, f"topic {name!r}")
        return uuid_text(made.topic_id)

    return await session.patient(call)


async def delete_topics(session: Session, names: Sequence[str]) -> Results[str, None]:
    from penstock.protocol.messages.delete_topics import DeleteTopicsRequest

    async def ask(pending: list[str]) -> Mapping[str, ClientError | None]:
        request = DeleteTopicsRequest(
            topics=[DeleteTopicsRequest.DeleteTopicState(name=name) for name in pending],
            topic_names=pending,
            timeout_ms=session.request_timeout_ms,
        )
        return {
            gone.name or "": refused(gone.error_code, gone.error_message, f"topic {gone.name!r}")
            if gone.error_code
            else None
            for gone in (await session.any(request)).responses
        }

    settled = await session.settled(names, ask)
    for name in settled.done:
        session.view.forget(name)
    return settled


async def grow_topic(session: Session, name: str, to: int) -> None:
    """Raises the number of partitions to `to`."""
    from penstock.protocol.messages.create_partitions import CreatePartitionsRequest

    wanted = CreatePartitionsRequest.CreatePartitionsTopic(name=name, count=to, assignments=None)
    request = CreatePartitionsRequest(topics=[wanted], timeout_ms=session.request_timeout_ms)

    async def call() -> None:
        (grown,) = (await session.any(request)).results
        check(grown.error_code, grown.error_message, f"topic {name!r}")

    await session.patient(call)


async def _with_ends(session: Session, topics: Mapping[str, TopicInfo]) -> dict[str, TopicInfo]:
    from penstock.client.admin.offsets import EARLIEST, LATEST, list_offsets

    led = [TopicPartition(t.name, p.partition) for t in topics.values() for p in t.partitions if p.leader >= 0]
    starts = (await list_offsets(session, dict.fromkeys(led, EARLIEST))).done
    ends = (await list_offsets(session, dict.fromkeys(led, LATEST))).done
    # Asked for after the high watermark: what is written in between must not look as if a transaction held it back.
    stable = (await list_offsets(session, dict.fromkeys(led, LATEST), read_committed=True)).done
    filled = {}
    for topic in topics.values():
        partitions = []
        for info in topic.partitions:
            item = TopicPartition(topic.name, info.partition)
            if item in starts and item in stable and item in ends:
                end = ends[item].offset
                last_stable = min(stable[item].offset, end)
                partitions.append(replace(info, start=starts[item].offset, end=end, last_stable=last_stable))
            else:
                partitions.append(info)
        filled[topic.name] = replace(topic, partitions=partitions)
    return filled


async def _with_configs(session: Session, topics: Mapping[str, TopicInfo]) -> dict[str, TopicInfo]:
    from penstock.client.admin.configs import ConfigResource, describe_configs

    found = await describe_configs(session, [ConfigResource.topic(name) for name in topics])
    changed = {
        resource.name: {entry.name: entry.value or "" for entry in entries.values() if entry.source == "topic"}
        for resource, entries in found.done.items()
    }
    return {name: replace(topic, configs=changed.get(name, {})) for name, topic in topics.items()}


def topic_info(found: MetadataResponse.MetadataResponseTopic) -> TopicInfo:
    partitions = [
        PartitionInfo(p.partition_index, p.leader_id, p.leader_epoch, p.replica_nodes, p.isr_nodes, p.offline_replicas)
        for p in sorted(found.partitions, key=lambda p: p.partition_index)
    ]
    return TopicInfo(found.name or "", uuid_text(found.topic_id), found.is_internal, partitions)
