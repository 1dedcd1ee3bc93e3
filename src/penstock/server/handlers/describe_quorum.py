"""DescribeQuorum (55), versions 0-2. Leader, voters and observers of the metadata log, and how far each of them is.

Behaviour: there is one such log, `__cluster_metadata` partition 0; anything else is unknown here. The leader is among
the voters with its own log end and the present time. A broker that does not lead asks the one that does.
Notes: v1 times of the last fetch; v2 directory ids, the voters' endpoints and error messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.model.errors import CLUSTER_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION
from penstock.model.ids import METADATA_TOPIC, ZERO_UUID
from penstock.protocol.messages.describe_quorum import DescribeQuorumResponse
from penstock.server.doors import Operation, ResourceType

if TYPE_CHECKING:
    from penstock.protocol.messages.describe_quorum import DescribeQuorumRequest
    from penstock.server.doors import Context, Outcome

Partition = DescribeQuorumResponse.PartitionData
Topic = DescribeQuorumResponse.TopicData

_DIRECTORIES_SINCE: Final = 2


def handle(ctx: Context, request: DescribeQuorumRequest) -> Outcome:
    if not ctx.allow(Operation.DESCRIBE, ResourceType.CLUSTER):
        return DescribeQuorumResponse(
            error_code=CLUSTER_AUTHORIZATION_FAILED.code, error_message="Cluster authorization failed."
        )
    asked = [(topic.topic_name, [each.partition_index for each in topic.partitions]) for topic in request.topics]
    if asked != [(METADATA_TOPIC, [0])]:
        return DescribeQuorumResponse(
            error_message=None, topics=[Topic(topic_name=name, partitions=_unknown(indexes)) for name, indexes in asked]
        )
    if not ctx.listener.for_controllers and not ctx.node.quorum.leading:
        return ctx.node.controller.forward(request, ctx)
    return _described(ctx)


async def _described(ctx: Context) -> DescribeQuorumResponse:
    described: DescribeQuorumResponse = await ctx.node.quorum.describe()
    if ctx.api_version < _DIRECTORIES_SINCE:
        _leave_out_directories(described)
    return described


def _leave_out_directories(described: DescribeQuorumResponse) -> None:
    described.nodes = []
    for topic in described.topics:
        for partition in topic.partitions:
            for replica in (*partition.current_voters, *partition.observers):
                replica.replica_directory_id = ZERO_UUID


def _unknown(indexes: list[int]) -> list[Partition]:
    return [
        Partition(
            partition_index=index,
            error_code=UNKNOWN_TOPIC_OR_PARTITION.code,
            error_message=f"Only partition 0 of {METADATA_TOPIC} has a quorum.",
        )
        for index in indexes
    ]
