"""DeleteRecords (21), versions 0-2. Moves a partition's log start, so that everything before it is gone.

Behaviour: offset -1 means the high watermark; an offset above it is OFFSET_OUT_OF_RANGE; a topic that only compacts
refuses with POLICY_VIOLATION; the answer is the low watermark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.model.errors import TOPIC_AUTHORIZATION_FAILED, Refused
from penstock.protocol.messages.delete_records import DeleteRecordsResponse
from penstock.server.context import Operation, ResourceType

if TYPE_CHECKING:
    from penstock.protocol.messages.delete_records import DeleteRecordsRequest
    from penstock.server.context import Context

Reply = DeleteRecordsResponse.DeleteRecordsPartitionResult


def handle(ctx: Context, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
    response = DeleteRecordsResponse()
    for topic in request.topics:
        allowed = ctx.allow(Operation.DELETE, ResourceType.TOPIC, topic.name)
        answers = [
            _answer(ctx, topic.name, wanted)
            if allowed
            else Reply(
                partition_index=wanted.partition_index, low_watermark=-1, error_code=TOPIC_AUTHORIZATION_FAILED.code
            )
            for wanted in topic.partitions
        ]
        response.topics.append(DeleteRecordsResponse.DeleteRecordsTopicResult(name=topic.name, partitions=answers))
    return response


def _answer(ctx: Context, topic: str, wanted: DeleteRecordsRequest.DeleteRecordsPartition) -> Reply:
    try:
        low_watermark = ctx.node.partitions.delete_records(topic, wanted.partition_index, wanted.offset)
    except Refused as refusal:
        return Reply(partition_index=wanted.partition_index, low_watermark=-1, error_code=refusal.error.code)
    return Reply(partition_index=wanted.partition_index, low_watermark=low_watermark)
