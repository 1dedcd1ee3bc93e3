"""DescribeLogDirs (35), versions 1-5. Log directories with their replicas, sizes and free space.

Behaviour: topics null means all. An offline directory is listed with KAFKA_STORAGE_ERROR and no replicas.
Notes: v3 top-level error; v4 total and usable bytes; v5 cordoned directories.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.model.errors import CLUSTER_AUTHORIZATION_FAILED, KAFKA_STORAGE_ERROR
from penstock.protocol.messages.describe_log_dirs import DescribeLogDirsResponse
from penstock.server.doors import Operation, ResourceType

if TYPE_CHECKING:
    from penstock.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
    from penstock.server.doors import Context
    from penstock.storage.reports import DirectoryReport

Result = DescribeLogDirsResponse.DescribeLogDirsResult


def handle(ctx: Context, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    if not ctx.allow(Operation.DESCRIBE, ResourceType.CLUSTER):
        return DescribeLogDirsResponse(error_code=CLUSTER_AUTHORIZATION_FAILED.code)
    wanted = None
    if request.topics is not None:
        wanted = {(topic.topic, index) for topic in request.topics for index in topic.partitions}
    return DescribeLogDirsResponse(results=[_describe(found, wanted) for found in ctx.node.logs.describe()])


def _describe(directory: DirectoryReport, wanted: set[tuple[str, int]] | None) -> Result:
    if directory.why_offline is not None:
        return Result(log_dir=directory.path, error_code=KAFKA_STORAGE_ERROR.code)
    topics: dict[str, DescribeLogDirsResponse.DescribeLogDirsTopic] = {}
    for replica in directory.logs:
        topic, index = replica.name
        if wanted is not None and (topic, index) not in wanted:
            continue
        entry = topics.setdefault(topic, DescribeLogDirsResponse.DescribeLogDirsTopic(name=topic))
        entry.partitions.append(
            DescribeLogDirsResponse.DescribeLogDirsPartition(
                partition_index=index,
                partition_size=replica.size_bytes,
                offset_lag=replica.offset_lag,
                is_future_key=replica.future,
            )
        )
    return Result(
        log_dir=directory.path,
        topics=list(topics.values()),
        total_bytes=directory.total_bytes,
        usable_bytes=directory.usable_bytes,
        is_cordoned=directory.cordoned,
    )
