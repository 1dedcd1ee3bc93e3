"""OffsetForLeaderEpoch (23), versions 2-4. Where a leader epoch ended, so that a peer can tell a diverged log.

Behaviour: answers the largest epoch not above the asked one and its end offset; -1 and -1 when none is known.
Brokers may ask for every topic, others for those that they may describe.
Notes: v2 takes the peer's current leader epoch and fences stale peers; v3 replica id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.model.errors import TOPIC_AUTHORIZATION_FAILED, Refused
from penstock.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochResponse
from penstock.server.doors import Operation, ResourceType

if TYPE_CHECKING:
    from penstock.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
    from penstock.server.doors import Context

Reply = OffsetForLeaderEpochResponse.EpochEndOffset


def handle(ctx: Context, request: OffsetForLeaderEpochRequest) -> OffsetForLeaderEpochResponse:
    response = OffsetForLeaderEpochResponse()
    trusted = ctx.may(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)
    for topic in request.topics:
        allowed = trusted or ctx.allow(Operation.DESCRIBE, ResourceType.TOPIC, topic.topic)
        answers = [
            _answer(ctx, topic.topic, wanted)
            if allowed
            else Reply(partition=wanted.partition, error_code=TOPIC_AUTHORIZATION_FAILED.code)
            for wanted in topic.partitions
        ]
        result = OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult(topic=topic.topic, partitions=answers)
        response.topics.append(result)
    return response


def _answer(ctx: Context, topic: str, wanted: OffsetForLeaderEpochRequest.OffsetForLeaderPartition) -> Reply:
    try:
        hosted = ctx.node.partitions.named(topic, wanted.partition)
        hosted.state.check_read(wanted.current_leader_epoch)
        epoch, end = hosted.require_log().epochs.end_of(wanted.leader_epoch)
    except Refused as refusal:
        return Reply(partition=wanted.partition, error_code=refusal.error.code)
    return Reply(partition=wanted.partition, leader_epoch=epoch, end_offset=end)
