"""OffsetFetch (9), versions 1-10: read the positions of a group.

Notes: 2 null asks for all topics, with a group error; 5 leader epochs; 6 flexible; 7 only stable offsets on request;
8 several groups in one request; 9 member id and epoch; 10 topics by id.
"""

from __future__ import annotations

from penstock.model.ids import Uuid
from penstock.protocol.wire import array, boolean, int16, int32, int64, message, string, struct, uuid


@message(key=9, kind="request", versions="1-10", flexible="6+")
class OffsetFetchRequest:
    group_id: str = string(until=7)
    topics: list[OffsetFetchRequestTopic] | None = array("OffsetFetchRequestTopic", until=7, nullable="2-7")
    groups: list[OffsetFetchRequestGroup] = array("OffsetFetchRequestGroup", since=8)
    require_stable: bool = boolean(since=7)

    @struct(versions="1-7")
    class OffsetFetchRequestTopic:
        name: str = string()
        partition_indexes: list[int] = array(int32)

    @struct(versions="8+")
    class OffsetFetchRequestGroup:
        group_id: str = string()
        member_id: str | None = string(since=9, nullable=True, default=None, ignorable=True)
        member_epoch: int = int32(since=9, default=-1, ignorable=True)
        topics: list[OffsetFetchRequest.OffsetFetchRequestTopics] | None = array(
            "OffsetFetchRequestTopics", nullable=True
        )

    @struct(versions="8+")
    class OffsetFetchRequestTopics:
        name: str = string(until=9, ignorable=True)
        topic_id: Uuid = uuid(since=10, ignorable=True)
        partition_indexes: list[int] = array(int32)


@message(key=9, kind="response", versions="1-10", flexible="6+")
class OffsetFetchResponse:
    throttle_time_ms: int = int32(since=3, ignorable=True)
    topics: list[OffsetFetchResponseTopic] = array("OffsetFetchResponseTopic", until=7)
    error_code: int = int16(since=2, until=7, ignorable=True)
    groups: list[OffsetFetchResponseGroup] = array("OffsetFetchResponseGroup", since=8)

    @struct(versions="1-7")
    class OffsetFetchResponseTopic:
        name: str = string()
        partitions: list[OffsetFetchResponse.OffsetFetchResponsePartition] = array("OffsetFetchResponsePartition")

    @struct(versions="8+")
    class OffsetFetchResponseGroup:
        group_id: str = string()
        topics: list[OffsetFetchResponse.OffsetFetchResponseTopics] = array("OffsetFetchResponseTopics")
        error_code: int = int16()

    @struct(versions="1-7")
    class OffsetFetchResponsePartition:
        partition_index: int = int32()
        committed_offset: int = int64()
        committed_leader_epoch: int = int32(since=5, default=-1, ignorable=True)
        metadata: str | None = string(nullable=True)
        error_code: int = int16()

    @struct(versions="8+")
    class OffsetFetchResponseTopics:
        name: str = string(until=9, ignorable=True)
        topic_id: Uuid = uuid(since=10, ignorable=True)
        partitions: list[OffsetFetchResponse.OffsetFetchResponsePartitions] = array("OffsetFetchResponsePartitions")

    @struct(versions="8+")
    class OffsetFetchResponsePartitions:
        partition_index: int = int32()
        committed_offset: int = int64()
        committed_leader_epoch: int = int32(default=-1, ignorable=True)
        metadata: str | None = string(nullable=True)
        error_code: int = int16()
