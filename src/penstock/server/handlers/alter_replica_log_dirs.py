"""AlterReplicaLogDirs (34), versions 1-2. Moves replicas to another log directory of this broker.

Behaviour: answers when the move has begun; DescribeLogDirs shows the copy as a future replica until it takes over. A
replica that is in the directory already is left alone, and a move of it elsewhere ends. LOG_DIR_NOT_FOUND for a path
that is no log directory, KAFKA_STORAGE_ERROR while one is offline, INVALID_REPLICA_ASSIGNMENT for a cordoned one,
REPLICA_NOT_AVAILABLE for a partition without a replica here, whose replica will be made there should it come.
Notes: a partition named twice goes to the last path; v2 flexible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.model.errors import CLUSTER_AUTHORIZATION_FAILED, NONE, ErrorCode, Refused
from penstock.protocol.messages.alter_replica_log_dirs import AlterReplicaLogDirsResponse
from penstock.server.doors import Operation, ResourceType

if TYPE_CHECKING:
    from penstock.protocol.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest
    from penstock.server.doors import Context


def handle(ctx: Context, request: AlterReplicaLogDirsRequest) -> AlterReplicaLogDirsResponse:
    wanted = {
        (topic.name, partition): asked.path
        for asked in request.dirs
        for topic in asked.topics
        for partition in topic.partitions
    }
    allowed = ctx.allow(Operation.ALTER, ResourceType.CLUSTER)
    results: dict[str, AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult] = {}
    for (topic, partition), path in wanted.items():
        error = _alter(ctx, topic, partition, path) if allowed else CLUSTER_AUTHORIZATION_FAILED
        result = results.setdefault(topic, AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult(topic_name=topic))
        result.partitions.append(
            AlterReplicaLogDirsResponse.AlterReplicaLogDirPartitionResult(
                partition_index=partition, error_code=error.code
            )
        )
    return AlterReplicaLogDirsResponse(results=list(results.values()))


def _alter(ctx: Context, topic: str, partition: int, path: str) -> ErrorCode:
    try:
        ctx.node.relocations.alter(topic, partition, path)
    except Refused as refusal:
        return refusal.error
    return NONE
