"""BrokerHeartbeat (63), versions 0-2. Keeps a broker's session alive; asks to be unfenced, fenced or let go.

Behaviour: STALE_BROKER_EPOCH for a process that another one has replaced; NOT_CONTROLLER from a controller that is not
the active one, so that the broker goes on with the new one.
Notes: v1 offline log directories; v2 cordoned log directories.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.protocol.messages.broker_heartbeat import BrokerHeartbeatResponse
from penstock.server.doors import Operation
from penstock.server.handlers.shared.controller_requests import decided

if TYPE_CHECKING:
    from penstock.model.errors import ErrorCode
    from penstock.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
    from penstock.server.doors import Context


async def handle(ctx: Context, request: BrokerHeartbeatRequest) -> BrokerHeartbeatResponse:
    return await decided(ctx, request, Operation.CLUSTER_ACTION, BrokerHeartbeatResponse, _refused)


def _refused(error: ErrorCode, _why: str) -> BrokerHeartbeatResponse:
    return BrokerHeartbeatResponse(error_code=error.code)
