"""DescribeTopicPartitions (75), version 0. Topics with every partition's replicas, page by page.

Behaviour: topics come ordered by name; no topics in the request means all of them. A reply holds as many partitions
as the client and `max.request.partition.size.limit` allow, at least one; `next_cursor` tells where the next page
begins.
Notes: eligible and last known leader replicas are lists, never null: the Java client trips over null. A cursor must
point into the topics that were asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.model.errors import (
    INVALID_REQUEST,
    INVALID_TOPIC_EXCEPTION,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from penstock.model.ids import INTERNAL_TOPICS
from penstock.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsResponse
from penstock.server.doors import Operation, ResourceType
from penstock.server.handlers.shared.cluster_view import PartitionViewer, topic_name_problem

if TYPE_CHECKING:
    from penstock.metadata.entities import TopicImage
    from penstock.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
    from penstock.server.doors import Context

Topic = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
Partition = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition
Cursor = DescribeTopicPartitionsResponse.Cursor


def handle(ctx: Context, request: DescribeTopicPartitionsRequest) -> DescribeTopicPartitionsResponse:
    image = ctx.node.metadata.image
    named = {topic.name for topic in request.topics}
    start = request.cursor
    wanted = named or set(image.ids)
    first_partition = 0
    if start is not None:
        if start.partition_index < 0 or (named and start.topic_name not in named):
            return DescribeTopicPartitionsResponse(
                topics=[Topic(error_code=INVALID_REQUEST.code, name=name) for name in sorted(named)]
            )
        wanted = {name for name in wanted if name >= start.topic_name}
    asks = ctx.allow if named else ctx.may
    allowed = {name for name in wanted if asks(Operation.DESCRIBE, ResourceType.TOPIC, name)}
    limit = min(request.response_partition_limit, ctx.node.settings.number("max.request.partition.size.limit"))
    viewer = PartitionViewer(image, ctx.listener.name)
    reply = DescribeTopicPartitionsResponse()
    room = max(limit, 1)
    for name in sorted(allowed):
        if room == 0:
            reply.next_cursor = Cursor(topic_name=name, partition_index=0)
            break
        first_partition = start.partition_index if start is not None and start.topic_name == name else 0
        topic = image.topic(name)
        if topic is None:
            reply.topics.append(_absent(ctx, name))
            continue
        shown = _partitions(viewer, topic, first_partition, first_partition + room)
        reply.topics.append(_topic(ctx, topic, shown))
        room -= len(shown)
        if first_partition + len(shown) < len(topic.partitions):
            reply.next_cursor = Cursor(topic_name=name, partition_index=first_partition + len(shown))
            break
    if named:
        # Topics that nobody asked for by name stay unmentioned to those who may not see them.
        reply.topics.extend(
            Topic(error_code=TOPIC_AUTHORIZATION_FAILED.code, name=name) for name in sorted(wanted - allowed)
        )
    return reply


def _absent(ctx: Context, name: str) -> Topic:
    error = INVALID_TOPIC_EXCEPTION if topic_name_problem(name) else UNKNOWN_TOPIC_OR_PARTITION
    return Topic(
        error_code=error.code,
        name=name,
        is_internal=name in INTERNAL_TOPICS,
        topic_authorized_operations=ctx.authorized_operations(ResourceType.TOPIC, name),
    )


def _topic(ctx: Context, topic: TopicImage, partitions: list[Partition]) -> Topic:
    return Topic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=partitions,
        topic_authorized_operations=ctx.authorized_operations(ResourceType.TOPIC, topic.name),
    )


def _partitions(viewer: PartitionViewer, topic: TopicImage, first: int, end: int) -> list[Partition]:
    shown = []
    for index, partition in enumerate(topic.partitions[first:end], first):
        view = viewer.view(partition)
        shown.append(
            Partition(
                error_code=view.error.code,
                partition_index=index,
                leader_id=view.leader,
                leader_epoch=partition.leader_epoch,
                replica_nodes=list(view.replicas),
                isr_nodes=list(view.isr),
                eligible_leader_replicas=list(partition.elr),
                last_known_elr=list(partition.last_known_elr),
                offline_replicas=list(view.offline),
            )
        )
    return shown
