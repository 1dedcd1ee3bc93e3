"""UnregisterBroker (64), version 0. Forgets a broker that will not come back.

Behaviour: it leaves every ISR and leads nothing any more; partitions keep it as a replica until they are moved. A
process that still runs as this broker has to register again. BROKER_ID_NOT_REGISTERED for an id that nobody has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.protocol.messages.unregister_broker import UnregisterBrokerResponse
from penstock.server.doors import Operation
from penstock.server.handlers.shared.controller_requests import decided

if TYPE_CHECKING:
    from penstock.model.errors import ErrorCode
    from penstock.protocol.messages.unregister_broker import UnregisterBrokerRequest
    from penstock.server.doors import Context


async def handle(ctx: Context, request: UnregisterBrokerRequest) -> UnregisterBrokerResponse:
    return await decided(ctx, request, Operation.ALTER, UnregisterBrokerResponse, _refused)


def _refused(error: ErrorCode, why: str) -> UnregisterBrokerResponse:
    return UnregisterBrokerResponse(error_code=error.code, error_message=why or None)
