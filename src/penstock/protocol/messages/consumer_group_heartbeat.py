"""ConsumerGroupHeartbeat (68), versions 0-1: join, keep and leave a consumer group of the new protocol.

Notes: 1 subscription by pattern; the client makes the member id.
"""

from __future__ import annotations

from penstock.model.ids import Uuid
from penstock.protocol.wire import array, int16, int32, message, nested, string, struct, uuid


@message(key=68, kind="request", versions="0-1", flexible="0+")
class ConsumerGroupHeartbeatRequest:
    group_id: str = string()
    member_id: str = string()
    member_epoch: int = int32()
    instance_id: str | None = string(nullable=True, default=None)
    rack_id: str | None = string(nullable=True, default=None)
    rebalance_timeout_ms: int = int32(default=-1)
    subscribed_topic_names: list[str] | None = array(string, nullable=True, default=None)
    subscribed_topic_regex: str | None = string(since=1, nullable=True, default=None)
    server_assignor: str | None = string(nullable=True, default=None)
    topic_partitions: list[TopicPartitions] | None = array("TopicPartitions", nullable=True, default=None)

    @struct()
    class TopicPartitions:
        topic_id: Uuid = uuid()
        partitions: list[int] = array(int32)


@message(key=68, kind="response", versions="0-1", flexible="0+")
class ConsumerGroupHeartbeatResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable=True, default=None)
    member_id: str | None = string(nullable=True, default=None)
    member_epoch: int = int32()
    heartbeat_interval_ms: int = int32()
    assignment: Assignment | None = nested("Assignment", nullable=True, default=None)

    @struct()
    class Assignment:
        topic_partitions: list[ConsumerGroupHeartbeatResponse.TopicPartitions] = array("TopicPartitions")

    @struct()
    class TopicPartitions:
        topic_id: Uuid = uuid()
        partitions: list[int] = array(int32)
