"""InitProducerId (22), versions 0-6: get a producer id and epoch, and fence older producers of a transactional id.

Notes: 2 flexible; 3 bumps the epoch of a given id; 4 knows PRODUCER_FENCED; 5 knows TRANSACTION_ABORTABLE; 6 two-
phase commit (not stable).
"""

from __future__ import annotations

from penstock.protocol.wire import boolean, int16, int32, int64, message, string


@message(key=22, kind="request", versions="0-6", flexible="2+")
class InitProducerIdRequest:
    transactional_id: str | None = string(nullable=True)
    transaction_timeout_ms: int = int32()
    producer_id: int = int64(since=3, default=-1)
    producer_epoch: int = int16(since=3, default=-1)
    enable_2pc: bool = boolean(since=6)
    keep_prepared_txn: bool = boolean(since=6)


@message(key=22, kind="response", versions="0-6", flexible="2+")
class InitProducerIdResponse:
    throttle_time_ms: int = int32(ignorable=True)
    error_code: int = int16()
    producer_id: int = int64(default=-1)
    producer_epoch: int = int16()
    ongoing_txn_producer_id: int = int64(since=6, default=-1)
    ongoing_txn_producer_epoch: int = int16(since=6, default=-1)
