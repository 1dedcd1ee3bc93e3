"""Envelope (58), version 0. A broker passes a client's request on to the active controller.

Behaviour: the request inside runs as if its client had sent it here: same handler, the client's principal and host.
A controller that is not the active one, or stops being it before it has decided, sends the envelope back with
NOT_CONTROLLER, so that the broker looks for the other. A request that cannot be read comes back with
UNSUPPORTED_VERSION, one that is no business of a controller with INVALID_REQUEST.
Notes: only brokers may send envelopes (CLUSTER_ACTION), because they speak for others.
"""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import replace
from typing import TYPE_CHECKING, Final, cast

from penstock.model.errors import (
    CLUSTER_AUTHORIZATION_FAILED,
    INVALID_REQUEST,
    NOT_CONTROLLER,
    UNKNOWN_SERVER_ERROR,
    UNSUPPORTED_VERSION,
    ErrorCode,
    Refused,
)
from penstock.protocol.codec import decode
from penstock.protocol.envelopes import client_of, host_of
from penstock.protocol.frame import read_request_header
from penstock.protocol.messages.envelope import EnvelopeResponse
from penstock.protocol.wire import Malformed
from penstock.server.doors import ByToken, Context, Operation, ResourceType

if TYPE_CHECKING:
    from penstock.protocol.messages.envelope import EnvelopeRequest
    from penstock.server.doors import ControllerDoor, Message, Outcome, RouteDoor

FORWARDABLE: Final = frozenset(
    {
        "CreateTopics",
        "DeleteTopics",
        "CreatePartitions",
        "AlterConfigs",
        "IncrementalAlterConfigs",
        "ElectLeaders",
        "AlterPartitionReassignments",
        "ListPartitionReassignments",
        "DescribeQuorum",
        "UpdateFeatures",
        "UnregisterBroker",
        "AddRaftVoter",
        "RemoveRaftVoter",
        "CreateAcls",
        "DeleteAcls",
        "AlterClientQuotas",
        "AlterUserScramCredentials",
        "CreateDelegationToken",
        "RenewDelegationToken",
        "ExpireDelegationToken",
    }
)
"""What may come in an envelope; everything else a client asks is a broker's business."""

_SIZE_BYTES = 4


def handle(ctx: Context, request: EnvelopeRequest) -> Outcome:
    if not ctx.allow(Operation.CLUSTER_ACTION, ResourceType.CLUSTER):
        return _returned(CLUSTER_AUTHORIZATION_FAILED)
    if not ctx.node.quorum.leading:
        return _returned(NOT_CONTROLLER)
    try:
        route, body, client = _read(ctx, request)
    except Refused as refusal:
        return _returned(refusal.error)
    return _run(client, route, body)


def _read(ctx: Context, request: EnvelopeRequest) -> tuple[RouteDoor, Message, Context]:
    """(route, request inside, its client's surroundings)."""
    data = request.request_data
    try:
        header, position = read_request_header(data)
        route = ctx.node.apis.route(header.request_api_key, header.request_api_version)
        if route is None:
            raise Refused(UNSUPPORTED_VERSION)
        if route.api.name not in FORWARDABLE:
            raise Refused(INVALID_REQUEST)
        inside, _ = decode(route.request_class, route.version, data, position)
    except Malformed as broken:
        raise Refused(UNSUPPORTED_VERSION, str(broken)) from broken
    asker = client_of(request.request_principal)
    client = (ByToken if asker.by_token else Context)(
        replace(ctx.node, controller=_Noting(ctx.node.controller)),
        route.api.key,
        route.version,
        header.client_id,
        ctx.received_ms,
        ctx.deadline,
        asker.principal,
        ctx.listener,
        host_of(request.client_host_address),
        ctx.dialled,
        None,
    )
    return route, inside, client


async def _run(client: Context, route: RouteDoor, inside: Message) -> EnvelopeResponse:
    noting = client.node.controller
    assert isinstance(noting, _Noting), "what runs inside an envelope is watched"
    try:
        outcome = route.handle(client, inside)
        reply = await outcome if isinstance(outcome, Awaitable) else outcome
    except Refused as refusal:
        return _returned(refusal.error)
    if noting.lost_the_lead:
        return _returned(NOT_CONTROLLER)
    if reply.__class__ is not route.response_class:
        return _returned(UNKNOWN_SERVER_ERROR)
    whole = b"".join(cast("list[bytes]", route.encode(0, reply)))  # nothing that is forwarded holds records
    return EnvelopeResponse(response_data=whole[_SIZE_BYTES:])


def _returned(error: ErrorCode) -> EnvelopeResponse:
    return EnvelopeResponse(error_code=error.code)


class _Noting:
    """The controller's door, and whether it turned somebody away: handlers write that into single results."""

    __slots__ = ("_door", "lost_the_lead")

    def __init__(self, door: ControllerDoor) -> None:
        self._door = door
        self.lost_the_lead = False

    def submit(self, request: Message, ctx: Context) -> Awaitable[Message]:
        return self._noted(request, ctx)

    def forward(self, request: Message, ctx: Context) -> Awaitable[Message]:
        return self._door.forward(request, ctx)

    async def _noted(self, request: Message, ctx: Context) -> Message:
        try:
            return await self._door.submit(request, ctx)
        except Refused as refusal:
            self.lost_the_lead = self.lost_the_lead or refusal.error is NOT_CONTROLLER
            raise
