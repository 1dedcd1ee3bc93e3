"""AlterPartition (56), versions 2-3: ask the controller to change in-sync replicas.

Notes: 3 names broker epochs with the replicas.
"""

from __future__ import annotations

from penstock.model.ids import Uuid
from penstock.protocol.wire import array, int8, int16, int32, int64, message, struct, uuid


@message(key=56, kind="request", versions="2-3", flexible="0+")
class AlterPartitionRequest:
    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)
    topics: list[TopicData] = array("TopicData")

    @struct()
    class TopicData:
        topic_id: Uuid = uuid(ignorable=True)
        partitions: list[AlterPartitionRequest.PartitionData] = array("PartitionData")

    @struct()
    class PartitionData:
        partition_index: int = int32()
        leader_epoch: int = int32()
        new_isr: list[int] = array(int32, until=2)
        new_isr_with_epochs: list[AlterPartitionRequest.BrokerState] = array("BrokerState", since=3)
        leader_recovery_state: int = int8()
        partition_epoch: int = int32()

    @struct(versions="3+")
    class BrokerState:
        broker_id: int = int32()
        broker_epoch: int = int64(default=-1)


@message(key=56, kind="response", versions="2-3", flexible="0+")
class AlterPartitionResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    topics: list[TopicData] = array("TopicData")

    @struct()
    class TopicData:
        topic_id: Uuid = uuid(ignorable=True)
        partitions: list[AlterPartitionResponse.PartitionData] = array("PartitionData")

    @struct()
    class PartitionData:
        partition_index: int = int32()
        error_code: int = int16()
        leader_id: int = int32()
        leader_epoch: int = int32()
        isr: list[int] = array(int32)
        leader_recovery_state: int = int8(ignorable=True)
        partition_epoch: int = int32()
