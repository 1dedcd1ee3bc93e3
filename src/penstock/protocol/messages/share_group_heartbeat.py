"""ShareGroupHeartbeat (76), version 1: join, keep and leave a share group.

Notes: 0 was never stable.
"""

from __future__ import annotations

from penstock.model.ids import Uuid
from penstock.protocol.wire import array, int16, int32, message, nested, string, struct, uuid


@message(key=76, kind="request", versions="1", flexible="0+")
class ShareGroupHeartbeatRequest:
    group_id: str = string()
    member_id: str = string()
    member_epoch: int = int32()
    rack_id: str | None = string(nullable=True, default=None)
    subscribed_topic_names: list[str] | None = array(string, nullable=True, default=None)


@message(key=76, kind="response", versions="1", flexible="0+")
class ShareGroupHeartbeatResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable=True, default=None)
    member_id: str | None = string(nullable=True, default=None)
    member_epoch: int = int32()
    heartbeat_interval_ms: int = int32()
    assignment: Assignment | None = nested("Assignment", nullable=True, default=None)

    @struct()
    class Assignment:
        topic_partitions: list[ShareGroupHeartbeatResponse.TopicPartitions] = array("TopicPartitions")

    @struct()
    class TopicPartitions:
        topic_id: Uuid = uuid()
        partitions: list[int] = array(int32)
