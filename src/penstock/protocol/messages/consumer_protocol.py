"""What members of a classic group put into JoinGroup and SyncGroup: subscription and assignment.

The broker carries them as opaque bytes. Each is preceded by its version as an int16. Notes: 1 owned partitions;
2 generation; 3 rack.
"""

from __future__ import annotations

from penstock.protocol.wire import array, bytes_, int32, message, string, struct


@message(kind="data", versions="0-3", flexible="none")
class ConsumerProtocolSubscription:
    topics: list[str] = array(string)
    user_data: bytes | None = bytes_(nullable=True, default=None)
    owned_partitions: list[TopicPartition] = array("TopicPartition", since=1, ignorable=True)
    generation_id: int = int32(since=2, default=-1, ignorable=True)
    rack_id: str | None = string(since=3, nullable=True, default=None, ignorable=True)

    @struct(versions="1+")
    class TopicPartition:
        topic: str = string()
        partitions: list[int] = array(int32)


@message(kind="data", versions="0-3", flexible="none")
class ConsumerProtocolAssignment:
    assigned_partitions: list[TopicPartition] = array("TopicPartition")
    user_data: bytes | None = bytes_(nullable=True, default=None)

    @struct()
    class TopicPartition:
        topic: str = string()
        partitions: list[int] = array(int32)
