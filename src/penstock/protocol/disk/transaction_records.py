"""Records of `__transaction_state`: one transactional id each. A null value forgets it."""

from __future__ import annotations

from penstock.protocol.wire import array, int8, int16, int32, int64, message, string, struct


@message(key=0, kind="coordinator-key", versions="0", flexible="none")
class TransactionLogKey:
    transactional_id: str = string()


@message(key=0, kind="coordinator-value", versions="0-1", flexible="1+")
class TransactionLogValue:
    producer_id: int = int64()
    previous_producer_id: int = int64(since=1, default=-1, tag=0)
    next_producer_id: int = int64(since=1, default=-1, tag=1)
    producer_epoch: int = int16()
    next_producer_epoch: int = int16(since=1, default=-1, tag=3)
    transaction_timeout_ms: int = int32()
    transaction_status: int = int8()
    transaction_partitions: list[PartitionsSchema] | None = array("PartitionsSchema", nullable=True)
    transaction_last_update_timestamp_ms: int = int64()
    transaction_start_timestamp_ms: int = int64()
    client_transaction_version: int = int16(since=1, tag=2)

    @struct()
    class PartitionsSchema:
        topic: str = string()
        partition_ids: list[int] = array(int32)
