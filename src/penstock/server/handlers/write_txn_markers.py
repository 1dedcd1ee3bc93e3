"""WriteTxnMarkers (27), versions 1-2. Ends transactions in partitions that this broker leads.

Behaviour: for coordinators of transactions, which are brokers (CLUSTER_ACTION), and for operators who end one that
hangs (ALTER). One append for each marker and partition, answered when all of them are on the replicas in sync, by
producer id. A partition that is not here, or offline, is UNKNOWN_TOPIC_OR_PARTITION. In the offsets topic the group
coordinator has applied a marker before its reply leaves.
Notes: v2 tells the transaction version, by which the producer epoch is judged; without it the lenient rule holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.model.errors import CLUSTER_AUTHORIZATION_FAILED
from penstock.server.doors import Operation, ResourceType

if TYPE_CHECKING:
    from penstock.protocol.messages.write_txn_markers import WriteTxnMarkersRequest
    from penstock.server.doors import Context, Outcome


def handle(ctx: Context, request: WriteTxnMarkersRequest) -> Outcome:
    markers = ctx.node.produces.markers
    may_act = ctx.may(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)
    if not may_act and not ctx.allow(Operation.ALTER, ResourceType.CLUSTER):
        return markers.refuse_all(request, CLUSTER_AUTHORIZATION_FAILED)
    return markers.write(request, ctx.node.settings.number("request.timeout.ms"))
