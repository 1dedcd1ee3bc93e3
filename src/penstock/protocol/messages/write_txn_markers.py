"""WriteTxnMarkers (27), versions 1-2: write the end of a transaction into its partitions; between brokers.

Notes: 1 flexible; 2 tells the transaction version.
"""

from __future__ import annotations

from penstock.protocol.wire import array, boolean, int8, int16, int32, int64, message, string, struct


@message(key=27, kind="request", versions="1-2", flexible="1+")
class WriteTxnMarkersRequest:
    markers: list[WritableTxnMarker] = array("WritableTxnMarker")

    @struct()
    class WritableTxnMarker:
        producer_id: int = int64()
        producer_epoch: int = int16()
        transaction_result: bool = boolean()
        topics: list[WriteTxnMarkersRequest.WritableTxnMarkerTopic] = array("WritableTxnMarkerTopic")
        coordinator_epoch: int = int32()
        transaction_version: int = int8(since=2, ignorable=True)

    @struct()
    class WritableTxnMarkerTopic:
        name: str = string()
        partition_indexes: list[int] = array(int32)


@message(key=27, kind="response", versions="1-2", flexible="1+")
class WriteTxnMarkersResponse:
    markers: list[WritableTxnMarkerResult] = array("WritableTxnMarkerResult")

    @struct()
    class WritableTxnMarkerResult:
        producer_id: int = int64()
        topics: list[WriteTxnMarkersResponse.WritableTxnMarkerTopicResult] = array("WritableTxnMarkerTopicResult")

    @struct()
    class WritableTxnMarkerTopicResult:
        name: str = string()
        partitions: list[WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult] = array(
            "WritableTxnMarkerPartitionResult"
        )

    @struct()
    class WritableTxnMarkerPartitionResult:
        partition_index: int = int32()
        error_code: int = int16()
