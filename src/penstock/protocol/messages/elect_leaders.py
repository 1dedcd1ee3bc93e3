"""ElectLeaders (43), versions 0-2: elect leaders for partitions.

Notes: 1 unclean elections and a top-level error; 2 flexible.
"""

from __future__ import annotations

from penstock.protocol.wire import array, int8, int16, int32, message, string, struct


@message(key=43, kind="request", versions="0-2", flexible="2+")
class ElectLeadersRequest:
    election_type: int = int8(since=1)
    topic_partitions: list[TopicPartitions] | None = array("TopicPartitions", nullable=True)
    timeout_ms: int = int32(default=60000)

    @struct()
    class TopicPartitions:
        topic: str = string()
        partitions: list[int] = array(int32)


@message(key=43, kind="response", versions="0-2", flexible="2+")
class ElectLeadersResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16(since=1)
    replica_election_results: list[ReplicaElectionResult] = array("ReplicaElectionResult")

    @struct()
    class ReplicaElectionResult:
        topic: str = string()
        partition_result: list[ElectLeadersResponse.PartitionResult] = array("PartitionResult")

    @struct()
    class PartitionResult:
        partition_id: int = int32()
        error_code: int = int16()
        error_message: str | None = string(nullable=True)
