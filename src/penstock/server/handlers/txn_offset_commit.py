"""TxnOffsetCommit (28), versions 0-5. A group has read this far, if the producer's transaction is committed.

Behaviour: partitions that the client may not read, or that do not exist, are refused one by one. Before a transaction
first writes to the group's partition of the offsets topic its coordinator has to agree; then the rest goes to the
group's shard as part of the transaction, and is answered when it is on the replicas in sync.
Notes: v2 leader epochs; v3 fences by member and generation; v4 knows TRANSACTION_ABORTABLE; v5 adds the partition to
the transaction by itself. Below v2 clients do not know COORDINATOR_LOAD_IN_PROGRESS here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from penstock.coordinators.decision import ProducerEpoch
from penstock.model.errors import (
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE,
    GROUP_AUTHORIZATION_FAILED,
    TOPIC_AUTHORIZATION_FAILED,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode,
)
from penstock.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from penstock.replication.verifying import offsets_mode
from penstock.server.doors import Operation, ResourceType
from penstock.server.loops.later import then

if TYPE_CHECKING:
    from penstock.server.doors import Context, Outcome

Topic = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
Result = TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic
PartitionResult = TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition

_LOADING_SINCE: Final = 2


def handle(ctx: Context, request: TxnOffsetCommitRequest) -> Outcome:
    if not ctx.allow(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id):
        return _refuse_all(request, TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not ctx.allow(Operation.READ, ResourceType.GROUP, request.group_id):
        return _refuse_all(request, GROUP_AUTHORIZATION_FAILED)
    refused: list[Result] = []
    wanted: list[Topic] = []
    for topic in request.topics:
        _sort_out(ctx, topic, wanted, refused)
    if not wanted:
        return TxnOffsetCommitResponse(topics=refused)
    asked = replace(request, topics=wanted)

    def refuse(error: ErrorCode) -> TxnOffsetCommitResponse:
        if error is COORDINATOR_LOAD_IN_PROGRESS and ctx.api_version < _LOADING_SINCE:
            error = COORDINATOR_NOT_AVAILABLE
        return _refuse_all(asked, error)

    reply = ctx.node.groups.ask_in_transaction(
        request.group_id,
        asked,
        ctx,
        refuse,
        transactional_id=request.transactional_id,
        producer=ProducerEpoch(request.producer_id, request.producer_epoch),
        mode=offsets_mode(ctx.api_version),
    )
    return then(reply, lambda done: _merged(refused, done)) if refused else reply


def _sort_out(ctx: Context, topic: Topic, wanted: list[Topic], refused: list[Result]) -> None:
    """Which partitions the client may commit; of the others, why not."""
    if not ctx.allow(Operation.READ, ResourceType.TOPIC, topic.name):
        refused.append(_refused(topic, TOPIC_AUTHORIZATION_FAILED))
        return
    known = ctx.node.metadata.image.topic(topic.name)
    count = 0 if known is None else len(known.partitions)
    valid = [each for each in topic.partitions if 0 <= each.partition_index < count]
    invalid = [each for each in topic.partitions if not 0 <= each.partition_index < count]
    if invalid:
        refused.append(_refused(replace(topic, partitions=invalid), UNKNOWN_TOPIC_OR_PARTITION))
    if valid:
        wanted.append(replace(topic, partitions=valid))


def _refuse_all(request: TxnOffsetCommitRequest, error: ErrorCode) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(topics=[_refused(topic, error) for topic in request.topics])


def _refused(topic: Topic, error: ErrorCode) -> Result:
    return Result(
        name=topic.name,
        partitions=[
            PartitionResult(partition_index=each.partition_index, error_code=error.code) for each in topic.partitions
        ],
    )


def _merged(refused: list[Result], reply: TxnOffsetCommitResponse) -> TxnOffsetCommitResponse:
    """A topic whose partitions were refused in part stands once."""
    by_name = {topic.name: topic for topic in refused}
    for topic in reply.topics:
        known = by_name.get(topic.name)
        if known is None:
            refused.append(topic)
        else:
            known.partitions += topic.partitions
    reply.topics = refused
    return reply
