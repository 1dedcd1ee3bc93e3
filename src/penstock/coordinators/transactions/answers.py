"""What a client is told, by the version of its request: versions that do not know a code get an older one.

Shards answer with today's codes; handlers pass them through here last. Brokers that ask on behalf of clients
(AddPartitionsToTxn from version 4 on) are told today's codes and translate for their own clients.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from penstock.coordinators.transactions.requests import Partition
from penstock.model.errors import INVALID_PRODUCER_EPOCH, NONE, OPERATION_NOT_ATTEMPTED, PRODUCER_FENCED, ErrorCode
from penstock.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnResponse
from penstock.protocol.messages.end_txn import EndTxnResponse
from penstock.protocol.messages.init_producer_id import InitProducerIdResponse

INIT_KNOWS_FENCED_SINCE: Final = 4
OTHERS_KNOW_FENCED_SINCE: Final = 2
"""AddPartitionsToTxn, AddOffsetsToTxn and EndTxn know PRODUCER_FENCED from this version on."""


def told_by_init(error: ErrorCode, version: int) -> ErrorCode:
    """An error of InitProducerId, as its `version` can say it."""
    return _fenced_in_old_words(error, version, INIT_KNOWS_FENCED_SINCE)


def told_by_add_partitions(error: ErrorCode, version: int) -> ErrorCode:
    """An error of AddPartitionsToTxn, as its `version` can say it."""
    return _fenced_in_old_words(error, version, OTHERS_KNOW_FENCED_SINCE)


def told_by_add_offsets(error: ErrorCode, version: int) -> ErrorCode:
    """An error of AddOffsetsToTxn, as its `version` can say it."""
    return _fenced_in_old_words(error, version, OTHERS_KNOW_FENCED_SINCE)


def told_by_end(error: ErrorCode, version: int) -> ErrorCode:
    """An error of EndTxn, as its `version` can say it."""
    return _fenced_in_old_words(error, version, OTHERS_KNOW_FENCED_SINCE)


def _fenced_in_old_words(error: ErrorCode, version: int, known_since: int) -> ErrorCode:
    return INVALID_PRODUCER_EPOCH if error is PRODUCER_FENCED and version < known_since else error


# Replies


def init_reply(reply: InitProducerIdResponse, version: int) -> InitProducerIdResponse:
    """A shard's reply in the words of `version`."""
    if reply.error_code == PRODUCER_FENCED.code:
        reply.error_code = told_by_init(PRODUCER_FENCED, version).code
    return reply


def add_offsets_reply(reply: AddOffsetsToTxnResponse, version: int) -> AddOffsetsToTxnResponse:
    """A shard's reply in the words of `version`."""
    if reply.error_code == PRODUCER_FENCED.code:
        reply.error_code = told_by_add_offsets(PRODUCER_FENCED, version).code
    return reply


def end_reply(reply: EndTxnResponse, version: int) -> EndTxnResponse:
    """A shard's reply in the words of `version`."""
    if reply.error_code == PRODUCER_FENCED.code:
        reply.error_code = told_by_end(PRODUCER_FENCED, version).code
    return reply


def init_refused(error: ErrorCode) -> InitProducerIdResponse:
    """InitProducerId was not served."""
    return InitProducerIdResponse(error_code=error.code, producer_id=-1, producer_epoch=-1)


def add_offsets_refused(error: ErrorCode) -> AddOffsetsToTxnResponse:
    """AddOffsetsToTxn was not served."""
    return AddOffsetsToTxnResponse(error_code=error.code)


def end_refused(error: ErrorCode) -> EndTxnResponse:
    """EndTxn was not served."""
    return EndTxnResponse(error_code=error.code, producer_id=-1, producer_epoch=-1)


def all_or_nothing(checked: Mapping[Partition, ErrorCode]) -> dict[Partition, ErrorCode] | None:
    """A client's AddPartitionsToTxn adds every partition or none.

    None when all may be added; else what each is told, because the others were not attempted.
    """
    if all(error is NONE for error in checked.values()):
        return None
    return {place: OPERATION_NOT_ATTEMPTED if error is NONE else error for place, error in checked.items()}
