"""ListTransactions (66), versions 0-2: list the transactions of a coordinator.

Notes: 1 filter by duration; 2 filter by a pattern of the id.
"""

from __future__ import annotations

from penstock.protocol.wire import array, int16, int32, int64, message, string, struct


@message(key=66, kind="request", versions="0-2", flexible="0+")
class ListTransactionsRequest:
    state_filters: list[str] = array(string)
    producer_id_filters: list[int] = array(int64)
    duration_filter: int = int64(since=1, default=-1)
    transactional_id_pattern: str | None = string(since=2, nullable=True, default=None)


@message(key=66, kind="response", versions="0-2", flexible="0+")
class ListTransactionsResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    unknown_state_filters: list[str] = array(string)
    transaction_states: list[TransactionState] = array("TransactionState")

    @struct()
    class TransactionState:
        transactional_id: str = string()
        producer_id: int = int64()
        transaction_state: str = string()
