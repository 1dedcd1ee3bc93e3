"""Log directories: how full they are, which replicas they hold, and moving a replica to another one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from penstock.client.admin.session import Results, Session, check, gathered, partition_words, refused
from penstock.client.errors import ClientError
from penstock.model.errors import error_of
from penstock.model.ids import TopicPartition
from penstock.protocol.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from penstock.protocol.messages.describe_log_dirs import DescribeLogDirsRequest


@dataclass(frozen=True, slots=True)
class ReplicaInfo:
    """A replica in a directory. A future one is on its way there and replaces the current one when it has caught up."""

    topic: str
    partition: int
    size_bytes: int
    lag: int
    future: bool


@dataclass(frozen=True, slots=True)
class LogDirInfo:
    """A directory of a broker. `error` names why it is offline; total and usable are -1 where brokers do not tell."""

    path: str
    error: str | None
    total_bytes: int
    usable_bytes: int
    replicas: list[ReplicaInfo]

    @property
    def size_bytes(self) -> int:
        """What the replicas in it take."""
        return sum(replica.size_bytes for replica in self.replicas)


async def describe_log_dirs(
    session: Session, node_ids: Iterable[int] | None, topics: Iterable[str] | None
) -> Results[int, list[LogDirInfo]]:
    """By broker (of all, for None); replicas of the named topics only, if any are named."""
    wanted = None
    if topics is not None:
        found = await session.metadata(list(topics))
        wanted = [
            DescribeLogDirsRequest.DescribableLogDirTopic(
                topic=topic.name or "", partitions=[partition.partition_index for partition in topic.partitions]
            )
            for topic in found.topics
        ]

    async def ask(node_id: int) -> list[LogDirInfo]:
        reply = await session.broker(node_id, DescribeLogDirsRequest(topics=wanted))
        check(reply.error_code, None, f"broker {node_id}")
        return [
            LogDirInfo(
                directory.log_dir,
                error_of(directory.error_code).name if directory.error_code else None,
                directory.total_bytes,
                directory.usable_bytes,
                [
                    ReplicaInfo(topic.name, p.partition_index, p.partition_size, p.offset_lag, p.is_future_key)
                    for topic in directory.topics
                    for p in topic.partitions
                ],
            )
            for directory in reply.results
        ]

    return await session.by_broker(node_ids, ask)


async def move_replicas(
    session: Session, node_id: int, to: Mapping[TopicPartition, str]
) -> Results[TopicPartition, None]:
    """Moves replicas of one broker to other directories of its own; the move goes on after the answer."""

    async def ask(pending: list[TopicPartition]) -> Mapping[TopicPartition, ClientError | None]:
        of_path: dict[str, dict[str, list[int]]] = {}
        for item in pending:
            of_path.setdefault(to[item], {}).setdefault(item.topic, []).append(item.partition)
        request = AlterReplicaLogDirsRequest(
            dirs=[
                AlterReplicaLogDirsRequest.AlterReplicaLogDir(
                    path=path,
                    topics=[
                        AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic(name=name, partitions=partitions)
                        for name, partitions in topics.items()
                    ],
                )
                for path, topics in of_path.items()
            ]
        )
        outcomes: dict[TopicPartition, ClientError | None] = {}
        for topic in (await session.broker(node_id, request)).results:
            for moved in topic.partitions:
                item = TopicPartition(topic.topic_name, moved.partition_index)
                failed = moved.error_code
                outcomes[item] = refused(failed, None, partition_words(item)) if failed else None
        return outcomes

    return await session.settled(to, lambda pending: gathered(partial(ask, pending), pending))
