"""AddPartitionsToTxn (24), versions 0-5: take partitions into a transaction.

Notes: 2 knows PRODUCER_FENCED; 3 flexible; 4 is for brokers: several transactions, or only verification; 5 knows
TRANSACTION_ABORTABLE.
"""

from __future__ import annotations

from penstock.protocol.wire import array, boolean, int16, int32, int64, message, string, struct


@message(key=24, kind="request", versions="0-5", flexible="3+")
class AddPartitionsToTxnRequest:
    transactions: list[AddPartitionsToTxnTransaction] = array("AddPartitionsToTxnTransaction", since=4)
    v3_and_below_transactional_id: str = string(until=3)
    v3_and_below_producer_id: int = int64(until=3)
    v3_and_below_producer_epoch: int = int16(until=3)
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = array("AddPartitionsToTxnTopic", until=3)

    @struct(versions="4+")
    class AddPartitionsToTxnTransaction:
        transactional_id: str = string()
        producer_id: int = int64()
        producer_epoch: int = int16()
        verify_only: bool = boolean()
        topics: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic] = array("AddPartitionsToTxnTopic")

    @struct()
    class AddPartitionsToTxnTopic:
        name: str = string()
        partitions: list[int] = array(int32)


@message(key=24, kind="response", versions="0-5", flexible="3+")
class AddPartitionsToTxnResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16(since=4, ignorable=True)
    results_by_transaction: list[AddPartitionsToTxnResult] = array("AddPartitionsToTxnResult", since=4)
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = array("AddPartitionsToTxnTopicResult", until=3)

    @struct(versions="4+")
    class AddPartitionsToTxnResult:
        transactional_id: str = string()
        topic_results: list[AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult] = array(
            "AddPartitionsToTxnTopicResult"
        )

    @struct()
    class AddPartitionsToTxnTopicResult:
        name: str = string()
        results_by_partition: list[AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult] = array(
            "AddPartitionsToTxnPartitionResult"
        )

    @struct()
    class AddPartitionsToTxnPartitionResult:
        partition_index: int = int32()
        partition_error_code: int = int16()
