"""Ids for idempotent producers."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from penstock.model.errors import COORDINATOR_LOAD_IN_PROGRESS, REQUEST_TIMED_OUT, Refused
from penstock.protocol.messages.init_producer_id import InitProducerIdRequest
from penstock.server.handlers import init_producer_id


def test_a_producer_tries_again_while_no_controller_can_be_asked() -> None:
    async def nobody_answers() -> int:
        raise Refused(REQUEST_TIMED_OUT)

    ctx: Any = SimpleNamespace(
        may=lambda *_: True, node=SimpleNamespace(producer_ids=SimpleNamespace(take=nobody_answers))
    )
    request = InitProducerIdRequest(transactional_id=None, producer_id=-1, producer_epoch=-1)
    reply = asyncio.run(init_producer_id.handle(ctx, request))
    assert (reply.error_code, reply.producer_id) == (COORDINATOR_LOAD_IN_PROGRESS.code, -1)
