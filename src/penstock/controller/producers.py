"""Producer ids: handed to brokers in blocks, so that no two producers of a cluster ever share one."""

from __future__ import annotations

from typing import Final

from penstock.controller.decision import Decision, World
from penstock.model.errors import UNKNOWN_SERVER_ERROR, Refused
from penstock.protocol.disk.metadata_features import ProducerIdsRecord
from penstock.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse

BLOCK_IDS: Final = 1_000
_LAST_ID: Final = (1 << 63) - 1


def decide_allocate(world: World, request: AllocateProducerIdsRequest) -> Decision:
    """AllocateProducerIds: the next block, for the broker that asks."""
    try:
        world.check_broker_epoch(request.broker_id, request.broker_epoch)
        start = 0 if world.image.producer_ids is None else world.image.producer_ids.next
        if start > _LAST_ID - BLOCK_IDS:
            raise Refused(UNKNOWN_SERVER_ERROR, "all producer ids have been handed out")
    except Refused as refused:
        return Decision([], AllocateProducerIdsResponse(error_code=refused.error.code))
    record = ProducerIdsRecord(
        broker_id=request.broker_id, broker_epoch=request.broker_epoch, next_producer_id=start + BLOCK_IDS
    )
    reply = AllocateProducerIdsResponse(producer_id_start=start, producer_id_len=BLOCK_IDS)
    return Decision([world.versioned(record)], reply)
