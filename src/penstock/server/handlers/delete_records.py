"""DeleteRecords (21), versions 0-2. Moves a partition's log start, so that everything before it is gone.

Behaviour: offset -1 means the high watermark; an offset above it is OFFSET_OUT_OF_RANGE; a topic that only compacts
refuses with POLICY_VIOLATION, an internal one with INVALID_TOPIC_EXCEPTION; the answer is the low watermark once every
live replica has come along, REQUEST_TIMED_OUT when one has not within timeout_ms.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from penstock.model.errors import INVALID_TOPIC_EXCEPTION, TOPIC_AUTHORIZATION_FAILED, Refused
from penstock.model.ids import INTERNAL_TOPICS
from penstock.protocol.messages.delete_records import DeleteRecordsResponse
from penstock.server.doors import Operation, ResourceType

if TYPE_CHECKING:
    from penstock.protocol.messages.delete_records import DeleteRecordsRequest
    from penstock.server.doors import Context, Outcome

Reply = DeleteRecordsResponse.DeleteRecordsPartitionResult
NONE_KNOWN = -1


def handle(ctx: Context, request: DeleteRecordsRequest) -> Outcome:
    """Every partition is trimmed before any is waited for."""
    response, waiting = DeleteRecordsResponse(), []
    for topic in request.topics:
        allowed = ctx.allow(Operation.DELETE, ResourceType.TOPIC, topic.name)
        result = DeleteRecordsResponse.DeleteRecordsTopicResult(name=topic.name)
        response.topics.append(result)
        for wanted in topic.partitions:
            answer = Reply(partition_index=wanted.partition_index, low_watermark=NONE_KNOWN)
            result.partitions.append(answer)
            if not allowed:
                answer.error_code = TOPIC_AUTHORIZATION_FAILED.code
                continue
            pending = _trim(ctx, topic.name, wanted, request.timeout_ms, answer)
            if pending is not None:
                waiting.append((answer, pending))
    return _after(response, waiting) if waiting else response


def _trim(
    ctx: Context, topic: str, wanted: DeleteRecordsRequest.DeleteRecordsPartition, timeout_ms: int, answer: Reply
) -> Awaitable[int] | None:
    """Fills in the answer, or returns what has to be waited for first."""
    try:
        if topic in INTERNAL_TOPICS:
            ctx.node.partitions.named(topic, wanted.partition_index)  # Refused when there is none
            raise Refused(INVALID_TOPIC_EXCEPTION, f"the records of {topic} are its coordinators'")
        found = ctx.node.partitions.delete_records(topic, wanted.partition_index, wanted.offset, timeout_ms)
    except Refused as refusal:
        answer.error_code = refusal.error.code
        return None
    if isinstance(found, Awaitable):
        return found
    answer.low_watermark = found
    return None


async def _after(response: DeleteRecordsResponse, waiting: list[tuple[Reply, Awaitable[int]]]) -> DeleteRecordsResponse:
    for answer, pending in waiting:
        try:
            answer.low_watermark = await pending
        except Refused as refusal:
            answer.error_code = refusal.error.code
    return response
