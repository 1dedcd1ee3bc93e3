"""ControllerRegistration (70), version 0. A controller tells the active one where it listens and what it supports.

Behaviour: UNSUPPORTED_VERSION while the cluster's metadata.version knows no controller registrations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.protocol.messages.controller_registration import ControllerRegistrationResponse
from penstock.server.doors import Operation
from penstock.server.handlers.shared.controller_requests import decided

if TYPE_CHECKING:
    from penstock.model.errors import ErrorCode
    from penstock.protocol.messages.controller_registration import ControllerRegistrationRequest
    from penstock.server.doors import Context


async def handle(ctx: Context, request: ControllerRegistrationRequest) -> ControllerRegistrationResponse:
    return await decided(ctx, request, Operation.CLUSTER_ACTION, ControllerRegistrationResponse, _refused)


def _refused(error: ErrorCode, why: str) -> ControllerRegistrationResponse:
    return ControllerRegistrationResponse(error_code=error.code, error_message=why or None)
