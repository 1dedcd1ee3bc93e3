"""CreatePartitions (37), versions 0-3: add partitions to topics.

Notes: 1 is as 0; 2 flexible; 3 may be throttled.
"""

from __future__ import annotations

from penstock.protocol.wire import array, boolean, int16, int32, message, string, struct


@message(key=37, kind="request", versions="0-3", flexible="2+")
class CreatePartitionsRequest:
    topics: list[CreatePartitionsTopic] = array("CreatePartitionsTopic")
    timeout_ms: int = int32()
    validate_only: bool = boolean()

    @struct()
    class CreatePartitionsTopic:
        name: str = string()
        count: int = int32()
        assignments: list[CreatePartitionsRequest.CreatePartitionsAssignment] | None = array(
            "CreatePartitionsAssignment", nullable=True
        )

    @struct()
    class CreatePartitionsAssignment:
        broker_ids: list[int] = array(int32)


@message(key=37, kind="response", versions="0-3", flexible="2+")
class CreatePartitionsResponse:
    throttle_time_ms: int = int32()
    results: list[CreatePartitionsTopicResult] = array("CreatePartitionsTopicResult")

    @struct()
    class CreatePartitionsTopicResult:
        name: str = string()
        error_code: int = int16()
        error_message: str | None = string(nullable=True, default=None)
