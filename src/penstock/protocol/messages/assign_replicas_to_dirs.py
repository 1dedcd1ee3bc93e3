"""AssignReplicasToDirs (73), version 0: tell the controller in which log directory replicas are."""

from __future__ import annotations

from penstock.model.ids import Uuid
from penstock.protocol.wire import array, int16, int32, int64, message, struct, uuid


@message(key=73, kind="request", versions="0", flexible="0+")
class AssignReplicasToDirsRequest:
    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)
    directories: list[DirectoryData] = array("DirectoryData")

    @struct()
    class DirectoryData:
        id: Uuid = uuid()
        topics: list[AssignReplicasToDirsRequest.TopicData] = array("TopicData")

    @struct()
    class TopicData:
        topic_id: Uuid = uuid()
        partitions: list[AssignReplicasToDirsRequest.PartitionData] = array("PartitionData")

    @struct()
    class PartitionData:
        partition_index: int = int32()


@message(key=73, kind="response", versions="0", flexible="0+")
class AssignReplicasToDirsResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    directories: list[DirectoryData] = array("DirectoryData")

    @struct()
    class DirectoryData:
        id: Uuid = uuid()
        topics: list[AssignReplicasToDirsResponse.TopicData] = array("TopicData")

    @struct()
    class TopicData:
        topic_id: Uuid = uuid()
        partitions: list[AssignReplicasToDirsResponse.PartitionData] = array("PartitionData")

    @struct()
    class PartitionData:
        partition_index: int = int32()
        error_code: int = int16()
