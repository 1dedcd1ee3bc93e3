"""Fetch (1), versions 4-18. Reads record batches: followers to the log end, consumers to the high watermark.

Behaviour: waits up to max_wait_ms for min_bytes; read_committed stops at the last stable offset and names aborted
transactions; at least one whole batch is returned however small the limits are. On a listener for controllers it is the
metadata log that is fetched. A consumer over its quota gets an empty reply, and what it asked for stays to be told.
Notes: v7 sessions; v9 leader epochs; v10 zstd; v11 rack; v12 diverging epochs; v13 topic ids; v15 replica state; v16
tells where a partition's leader is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.model.errors import CLUSTER_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED
from penstock.protocol.messages.fetch import FetchResponse
from penstock.server.doors import Operation, ResourceType

if TYPE_CHECKING:
    from penstock.model.errors import ErrorCode
    from penstock.protocol.messages.fetch import FetchRequest
    from penstock.server.doors import Context, Outcome

_ERROR_SUFFICES_SINCE: Final = 13


def handle(ctx: Context, request: FetchRequest) -> Outcome:
    if ctx.listener.for_controllers:
        if not ctx.allow(Operation.CLUSTER_ACTION, ResourceType.CLUSTER):
            return _no_replica(request, ctx.api_version)
        return ctx.node.quorum.fetch(ctx, request)
    if max(request.replica_id, request.replica_state.replica_id) >= 0:
        # A follower copies whole topics for the cluster; it is no reader of theirs.
        if not ctx.allow(Operation.CLUSTER_ACTION, ResourceType.CLUSTER):
            # There is no session either: followers' take the places of consumers' and give theirs to nobody.
            return FetchResponse(responses=_each(request, TOPIC_AUTHORIZATION_FAILED))
        return ctx.node.fetches.fetch(request, ctx.api_version, lambda _topic: True, ctx.listener.name)
    return ctx.node.fetches.fetch(
        request,
        ctx.api_version,
        lambda topic: ctx.allow(Operation.READ, ResourceType.TOPIC, topic),
        ctx.listener.name,
        ctx.toll_due(),
        ctx.rights(),
    )


def _no_replica(request: FetchRequest, version: int) -> FetchResponse:
    """To whoever is no node and wants the metadata log. Partitions are listed to those who may look nowhere else."""
    error = CLUSTER_AUTHORIZATION_FAILED
    responses = _each(request, error) if version < _ERROR_SUFFICES_SINCE else []
    return FetchResponse(error_code=error.code, session_id=request.session_id, responses=responses)


def _each(request: FetchRequest, error: ErrorCode) -> list[FetchResponse.FetchableTopicResponse]:
    """Every partition is refused, whether it is there or not."""
    made = FetchResponse

    def refused(partition: int) -> FetchResponse.PartitionData:
        return made.PartitionData(
            partition_index=partition,
            error_code=error.code,
            high_watermark=-1,
            aborted_transactions=[],
            records=None,
        )

    return [
        made.FetchableTopicResponse(
            topic=topic.topic,
            topic_id=topic.topic_id,
            partitions=[refused(each.partition) for each in topic.partitions],
        )
        for topic in request.topics
    ]
