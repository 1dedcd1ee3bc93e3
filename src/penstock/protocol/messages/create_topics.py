"""CreateTopics (19), versions 2-7: create topics.

Notes: 4 takes the broker's defaults for -1; 5 flexible and answers with the resulting configs; 6 may be throttled; 7
answers with topic ids.
"""

from __future__ import annotations

from penstock.model.ids import Uuid
from penstock.protocol.wire import array, boolean, int8, int16, int32, message, string, struct, uuid


@message(key=19, kind="request", versions="2-7", flexible="5+")
class CreateTopicsRequest:
    topics: list[CreatableTopic] = array("CreatableTopic")
    timeout_ms: int = int32(default=60000)
    validate_only: bool = boolean()

    @struct()
    class CreatableTopic:
        name: str = string()
        num_partitions: int = int32()
        replication_factor: int = int16()
        assignments: list[CreateTopicsRequest.CreatableReplicaAssignment] = array("CreatableReplicaAssignment")
        configs: list[CreateTopicsRequest.CreatableTopicConfig] = array("CreatableTopicConfig")

    @struct()
    class CreatableReplicaAssignment:
        partition_index: int = int32()
        broker_ids: list[int] = array(int32)

    @struct()
    class CreatableTopicConfig:
        name: str = string()
        value: str | None = string(nullable=True)


@message(key=19, kind="response", versions="2-7", flexible="5+")
class CreateTopicsResponse:
    throttle_time_ms: int = int32(ignorable=True)
    topics: list[CreatableTopicResult] = array("CreatableTopicResult")

    @struct()
    class CreatableTopicResult:
        name: str = string()
        topic_id: Uuid = uuid(since=7, ignorable=True)
        error_code: int = int16()
        error_message: str | None = string(nullable=True, ignorable=True)
        topic_config_error_code: int = int16(since=5, tag=0, ignorable=True)
        num_partitions: int = int32(since=5, default=-1, ignorable=True)
        replication_factor: int = int16(since=5, default=-1, ignorable=True)
        configs: list[CreateTopicsResponse.CreatableTopicConfigs] | None = array(
            "CreatableTopicConfigs", since=5, nullable=True, ignorable=True
        )

    @struct(versions="5+")
    class CreatableTopicConfigs:
        name: str = string()
        value: str | None = string(nullable=True)
        read_only: bool = boolean()
        config_source: int = int8(default=-1, ignorable=True)
        is_sensitive: bool = boolean()
