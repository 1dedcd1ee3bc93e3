"""ListOffsets (2), versions 1-11. Finds offsets by time, or the ends of a log by special times.

Behaviour: -1 is the end a consumer may read to (last stable offset for read_committed), -2 the log start, -3 the
record with the largest timestamp (v7), -4 the earliest local offset (v8), -5 the last tiered one (v9: none here, so
-1), -6 the earliest that awaits upload (v11: none here, so -1); a time finds the first record at or after it. What is
below -6 means nothing yet: UNSUPPORTED_VERSION. A leader that does not know its end yet answers OFFSET_NOT_AVAILABLE
(LEADER_NOT_AVAILABLE below v5). Replicas and debuggers (replica id -2) see the whole log; a debugger is answered by
followers too, of their own logs.
Notes: v2 isolation level; v4 leader epochs; v10 a timeout that only tiered reads need.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterator
from typing import TYPE_CHECKING

from penstock.model.errors import (
    CORRUPT_MESSAGE,
    KAFKA_STORAGE_ERROR,
    LEADER_NOT_AVAILABLE,
    OFFSET_NOT_AVAILABLE,
    TOPIC_AUTHORIZATION_FAILED,
    UNSUPPORTED_VERSION,
    Corrupt,
    Refused,
    StorageFailed,
)
from penstock.protocol.messages.list_offsets import ListOffsetsResponse
from penstock.server.doors import Operation, ResourceType
from penstock.server.loops.slices import in_turns

if TYPE_CHECKING:
    from penstock.protocol.messages.list_offsets import ListOffsetsRequest
    from penstock.replication.partition import Partition
    from penstock.server.doors import Context, HostedDoor

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING = -1, -2, -3, -4, -5, -6
CLIENT, DEBUGGER = -1, -2
LEADER_EPOCH_SINCE = 4
NOT_AVAILABLE_SINCE = 5
SINCE_VERSION = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING: 11}
AT_ONCE = 10
"""How many partitions are answered in one go while there are some to take up."""

Reply = ListOffsetsResponse.ListOffsetsPartitionResponse


def handle(ctx: Context, request: ListOffsetsRequest) -> ListOffsetsResponse | Awaitable[ListOffsetsResponse]:
    response = ListOffsetsResponse()
    answers = _answers(ctx, request, response)
    if ctx.node.partitions.taking_up and sum(len(topic.partitions) for topic in request.topics) > AT_ONCE:
        # A topic that was just made has to be taken up to answer, and a thousand partitions take a while.
        return in_turns(answers, AT_ONCE, response)
    for _ in answers:
        pass
    return response


def _answers(ctx: Context, request: ListOffsetsRequest, response: ListOffsetsResponse) -> Iterator[None]:
    """Fills the response, one partition a step."""
    for topic in request.topics:
        allowed = ctx.allow(Operation.DESCRIBE, ResourceType.TOPIC, topic.name)
        told = ListOffsetsResponse.ListOffsetsTopicResponse(name=topic.name)
        response.topics.append(told)
        for wanted in topic.partitions:
            told.partitions.append(
                _answer(ctx, topic.name, wanted, request)
                if allowed
                else Reply(partition_index=wanted.partition_index, error_code=TOPIC_AUTHORIZATION_FAILED.code)
            )
            yield


def _answer(
    ctx: Context, topic: str, wanted: ListOffsetsRequest.ListOffsetsPartition, request: ListOffsetsRequest
) -> Reply:
    index = wanted.partition_index
    try:
        if wanted.timestamp < EARLIEST_PENDING or ctx.api_version < SINCE_VERSION.get(wanted.timestamp, 0):
            raise Refused(UNSUPPORTED_VERSION)
        hosted = ctx.node.partitions.named(topic, index)
        hosted.state.check_read(wanted.current_leader_epoch, leader_only=request.replica_id != DEBUGGER)
        timestamp, offset, epoch = _find(hosted, wanted.timestamp, request)
    except Refused as refusal:
        error = refusal.error
        if error is OFFSET_NOT_AVAILABLE and ctx.api_version < NOT_AVAILABLE_SINCE:
            error = LEADER_NOT_AVAILABLE
        return Reply(partition_index=index, error_code=error.code)
    except StorageFailed as failure:
        ctx.node.partitions.storage_failed(failure)
        return Reply(partition_index=index, error_code=KAFKA_STORAGE_ERROR.code)
    except Corrupt as damage:
        ctx.node.partitions.damaged(damage)
        return Reply(partition_index=index, error_code=CORRUPT_MESSAGE.code)
    if ctx.api_version < LEADER_EPOCH_SINCE:
        epoch = -1
    return Reply(partition_index=index, timestamp=timestamp, offset=offset, leader_epoch=epoch)


def _find(hosted: HostedDoor, timestamp: int, request: ListOffsetsRequest) -> tuple[int, int, int]:
    """(timestamp, offset, leader epoch); -1 where there is none."""
    state, log = hosted.state, hosted.require_log()
    is_client = request.replica_id == CLIENT
    limit = (log.last_stable if request.isolation_level else log.committed) if is_client else log.written
    if timestamp == LATEST:
        _check_known(state, is_client)
        return -1, limit, state.epoch
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        start = log.log_start if timestamp == EARLIEST else log.local_start
        return -1, start, log.epochs.epoch_at(start)
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING):
        return -1, -1, -1
    found = log.max_timestamp() if timestamp == MAX_TIMESTAMP else log.offset_for_time(timestamp, limit)
    if found is None or found[1] >= limit:
        _check_known(state, is_client)
        return -1, -1, -1
    return found[0], found[1], log.epochs.epoch_at(found[1])


def _check_known(state: Partition, is_client: bool) -> None:
    """A new leader's high watermark may be behind what the old one told; clients must not see the end go back."""
    if is_client and not state.knows_its_end:
        raise Refused(OFFSET_NOT_AVAILABLE)
