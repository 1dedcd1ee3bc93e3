"""DescribeProducers (61), version 0. The idempotent and transactional producers a partition remembers.

Behaviour: any replica answers for its own log, so that a hanging transaction can be looked for on each of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.model.errors import INVALID_TOPIC_EXCEPTION, TOPIC_AUTHORIZATION_FAILED, Refused
from penstock.protocol.messages.describe_producers import DescribeProducersResponse
from penstock.server.doors import Operation, ResourceType
from penstock.server.handlers.shared.cluster_view import topic_name_problem

if TYPE_CHECKING:
    from penstock.protocol.messages.describe_producers import DescribeProducersRequest
    from penstock.server.doors import Context

Reply = DescribeProducersResponse.PartitionResponse


def handle(ctx: Context, request: DescribeProducersRequest) -> DescribeProducersResponse:
    response = DescribeProducersResponse()
    for topic in request.topics:
        allowed = ctx.allow(Operation.READ, ResourceType.TOPIC, topic.name)
        answers = [
            _answer(ctx, topic.name, index)
            if allowed
            else Reply(partition_index=index, error_code=TOPIC_AUTHORIZATION_FAILED.code)
            for index in topic.partition_indexes
        ]
        response.topics.append(DescribeProducersResponse.TopicResponse(name=topic.name, partitions=answers))
    return response


def _answer(ctx: Context, topic: str, index: int) -> Reply:
    problem = topic_name_problem(topic)
    if problem:
        return Reply(partition_index=index, error_code=INVALID_TOPIC_EXCEPTION.code, error_message=problem)
    try:
        hosted = ctx.node.partitions.named(topic, index)
        producers = hosted.require_log().producers.states()
    except Refused as refusal:
        return Reply(partition_index=index, error_code=refusal.error.code, error_message=refusal.why or None)
    return Reply(
        partition_index=index,
        active_producers=[
            DescribeProducersResponse.ProducerState(
                producer_id=state.producer_id,
                producer_epoch=state.epoch,
                last_sequence=state.last_sequence,
                last_timestamp=state.last_timestamp,
                coordinator_epoch=state.coordinator_epoch,
                current_txn_start_offset=state.transaction_first,
            )
            for state in producers
        ],
    )
