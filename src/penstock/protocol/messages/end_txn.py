"""EndTxn (26), versions 0-5: commit or abort a transaction.

Notes: 2 knows PRODUCER_FENCED; 3 flexible; 4 knows TRANSACTION_ABORTABLE; 5 bumps the epoch and tells the new one.
"""

from __future__ import annotations

from penstock.protocol.wire import boolean, int16, int32, int64, message, string


@message(key=26, kind="request", versions="0-5", flexible="3+")
class EndTxnRequest:
    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    committed: bool = boolean()


@message(key=26, kind="response", versions="0-5", flexible="3+")
class EndTxnResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    producer_id: int = int64(since=5, default=-1, ignorable=True)
    producer_epoch: int = int16(since=5, default=-1, ignorable=True)
