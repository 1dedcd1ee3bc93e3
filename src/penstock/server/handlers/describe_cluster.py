"""DescribeCluster (60), versions 0-2. The brokers of the cluster, or its controllers, and whom to take for the leader.

Behaviour: a broker's listener tells brokers, a controller's tells the controllers that have registered, each with its
address on a listener of the same name; whoever wants the others is told that it asked the wrong endpoint. Brokers pass
changes on, so each names itself as the controller; a controller names the active one. Everybody who is connected may
see the brokers; controllers are for those who may alter the cluster, and what may be done to it for those who may
describe it.
Notes: v1 endpoint type (1 brokers, 2 controllers); v2 fenced brokers on request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.model.errors import (
    CLUSTER_AUTHORIZATION_FAILED,
    INVALID_REQUEST,
    MISMATCHED_ENDPOINT_TYPE,
    UNSUPPORTED_ENDPOINT_TYPE,
)
from penstock.protocol.messages.describe_cluster import DescribeClusterResponse
from penstock.server.doors import OPERATIONS_NOT_ASKED, Operation, ResourceType
from penstock.server.handlers.shared.cluster_view import addresses, any_controller

if TYPE_CHECKING:
    from penstock.protocol.messages.describe_cluster import DescribeClusterRequest
    from penstock.server.doors import Context

Described = DescribeClusterResponse.DescribeClusterBroker

_KINDS_SINCE: Final = 1
_BROKERS: Final = 1
_CONTROLLERS: Final = 2
_KINDS: Final = {_BROKERS: "broker", _CONTROLLERS: "controller"}


def handle(ctx: Context, request: DescribeClusterRequest) -> DescribeClusterResponse:
    if ctx.listener.for_controllers and not ctx.allow(Operation.ALTER, ResourceType.CLUSTER):
        return DescribeClusterResponse(
            error_code=CLUSTER_AUTHORIZATION_FAILED.code, error_message="Cluster authorization failed."
        )
    own_kind = _CONTROLLERS if ctx.listener.for_controllers else _BROKERS
    if request.endpoint_type not in _KINDS:
        return DescribeClusterResponse(
            error_code=UNSUPPORTED_ENDPOINT_TYPE.code,
            error_message=f"Unsupported endpoint type {request.endpoint_type}",
        )
    if request.endpoint_type != own_kind:
        error = MISMATCHED_ENDPOINT_TYPE if ctx.api_version >= _KINDS_SINCE else INVALID_REQUEST
        return DescribeClusterResponse(
            error_code=error.code,
            error_message=f"This endpoint is a {_KINDS[own_kind]}; ask a {_KINDS[request.endpoint_type]}'s endpoint "
            f"for {_KINDS[request.endpoint_type]}s.",
        )
    operations = OPERATIONS_NOT_ASKED
    if request.include_cluster_authorized_operations:
        may_describe = ctx.may(Operation.DESCRIBE, ResourceType.CLUSTER)
        operations = ctx.authorized_operations(ResourceType.CLUSTER) if may_describe else 0
    controllers = own_kind == _CONTROLLERS
    return DescribeClusterResponse(
        endpoint_type=own_kind,
        cluster_id=ctx.node.metadata.cluster_id,
        controller_id=ctx.node.quorum.leader if controllers else any_controller(ctx, addresses(ctx)),
        brokers=_controllers(ctx) if controllers else _brokers(ctx, fenced_too=request.include_fenced_brokers),
        cluster_authorized_operations=operations,
    )


def _brokers(ctx: Context, *, fenced_too: bool) -> list[Described]:
    return [
        Described(
            broker_id=address.broker.id,
            host=address.host,
            port=address.port,
            rack=address.broker.rack,
            is_fenced=address.broker.fenced,
        )
        for address in addresses(ctx, fenced_too=fenced_too)
    ]


def _controllers(ctx: Context) -> list[Described]:
    return [
        Described(broker_id=controller.id, host=endpoint.host, port=endpoint.port, rack=None)
        for _, controller in sorted(ctx.node.metadata.image.controllers.items())
        for endpoint in controller.endpoints
        if endpoint.name == ctx.listener.name
    ]
