"""AlterReplicaLogDirs (34), versions 1-2: move replicas to another log directory of their broker.

Notes: 2 flexible.
"""

from __future__ import annotations

from penstock.protocol.wire import array, int16, int32, message, string, struct


@message(key=34, kind="request", versions="1-2", flexible="2+")
class AlterReplicaLogDirsRequest:
    dirs: list[AlterReplicaLogDir] = array("AlterReplicaLogDir")

    @struct()
    class AlterReplicaLogDir:
        path: str = string()
        topics: list[AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic] = array("AlterReplicaLogDirTopic")

    @struct()
    class AlterReplicaLogDirTopic:
        name: str = string()
        partitions: list[int] = array(int32)


@message(key=34, kind="response", versions="1-2", flexible="2+")
class AlterReplicaLogDirsResponse:
    throttle_time_ms: int = int32()
    results: list[AlterReplicaLogDirTopicResult] = array("AlterReplicaLogDirTopicResult")

    @struct()
    class AlterReplicaLogDirTopicResult:
        topic_name: str = string()
        partitions: list[AlterReplicaLogDirsResponse.AlterReplicaLogDirPartitionResult] = array(
            "AlterReplicaLogDirPartitionResult"
        )

    @struct()
    class AlterReplicaLogDirPartitionResult:
        partition_index: int = int32()
        error_code: int = int16()
