"""BrokerRegistration (62), versions 0-4. A broker process introduces itself to the controller and gets its epoch.

Behaviour: the broker is registered fenced; its epoch is an offset of the metadata log, so a later process always has a
higher one. DUPLICATE_BROKER_REGISTRATION while another process of the same id is in service; NOT_CONTROLLER from a
controller that is not the active one.
Notes: v2 log directories; v3 previous epoch, which proves a clean stop; v4 features may begin at level 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.protocol.messages.broker_registration import BrokerRegistrationResponse
from penstock.server.doors import Operation
from penstock.server.handlers.shared.controller_requests import decided

if TYPE_CHECKING:
    from penstock.model.errors import ErrorCode
    from penstock.protocol.messages.broker_registration import BrokerRegistrationRequest
    from penstock.server.doors import Context


async def handle(ctx: Context, request: BrokerRegistrationRequest) -> BrokerRegistrationResponse:
    return await decided(ctx, request, Operation.CLUSTER_ACTION, BrokerRegistrationResponse, _refused)


def _refused(error: ErrorCode, _why: str) -> BrokerRegistrationResponse:
    return BrokerRegistrationResponse(error_code=error.code)
