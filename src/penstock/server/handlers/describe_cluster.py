"""DescribeCluster (60), versions 0-2. The brokers of the cluster and whom to take for its controller.

Behaviour: brokers are told with their address on the request's listener. This is a broker's listener, so a client that
wants controllers is told that it asked the wrong endpoint.
Notes: v1 endpoint type (1 brokers, 2 controllers); v2 fenced brokers on request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.model.errors import MISMATCHED_ENDPOINT_TYPE, UNSUPPORTED_ENDPOINT_TYPE
from penstock.protocol.messages.describe_cluster import DescribeClusterResponse
from penstock.server.cluster_view import addresses, any_controller
from penstock.server.context import OPERATIONS_NOT_ASKED, Operation, ResourceType

if TYPE_CHECKING:
    from penstock.protocol.messages.describe_cluster import DescribeClusterRequest
    from penstock.server.context import Context

_BROKERS: Final = 1
_CONTROLLERS: Final = 2


def handle(ctx: Context, request: DescribeClusterRequest) -> DescribeClusterResponse:
    if request.endpoint_type == _CONTROLLERS:
        return DescribeClusterResponse(
            error_code=MISMATCHED_ENDPOINT_TYPE.code,
            error_message="This endpoint is a broker; ask a controller's endpoint for controllers.",
        )
    if request.endpoint_type != _BROKERS:
        return DescribeClusterResponse(
            error_code=UNSUPPORTED_ENDPOINT_TYPE.code,
            error_message=f"Unsupported endpoint type {request.endpoint_type}",
        )
    operations = OPERATIONS_NOT_ASKED
    # Everybody who is connected may see the brokers; only what may be done to the cluster is a secret.
    may_describe = ctx.allow(Operation.DESCRIBE, ResourceType.CLUSTER)
    if request.include_cluster_authorized_operations:
        operations = ctx.authorized_operations(ResourceType.CLUSTER) if may_describe else 0
    return DescribeClusterResponse(
        cluster_id=ctx.node.metadata.cluster_id,
        controller_id=any_controller(addresses(ctx)),
        brokers=[
            DescribeClusterResponse.DescribeClusterBroker(
                broker_id=address.broker.id,
                host=address.host,
                port=address.port,
                rack=address.broker.rack,
                is_fenced=address.broker.fenced,
            )
            for address in addresses(ctx, fenced_too=request.include_fenced_brokers)
        ],
        cluster_authorized_operations=operations,
    )
