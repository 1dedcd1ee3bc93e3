"""AddOffsetsToTxn (25), versions 0-4: take a group's positions into a transaction.

Notes: 2 knows PRODUCER_FENCED; 3 flexible; 4 knows TRANSACTION_ABORTABLE.
"""

from __future__ import annotations

from penstock.protocol.wire import int16, int32, int64, message, string


@message(key=25, kind="request", versions="0-4", flexible="3+")
class AddOffsetsToTxnRequest:
    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    group_id: str = string()


@message(key=25, kind="response", versions="0-4", flexible="3+")
class AddOffsetsToTxnResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
