"""What is published about queries and pipelines, as values."""

from __future__ import annotations

import json

from penstock.model.ids import TopicPartition
from penstock.spark.offsets import StreamOffset
from penstock.spark.progress.records import PartitionProgress, PipelineRecord, ProgressRecord, our_offsets, record_of

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)
END = StreamOffset({A0: 5, A1: 7}, {"a": "id"}, bootstrap="localhost:9092").to_json()


def progress(**changed: object) -> dict[str, object]:
    """What Spark tells of a batch, as its JSON has it."""
    return {
        "id": "q-1",
        "runId": "r-1",
        "name": "orders",
        "timestamp": "1970-01-01T00:00:02.500Z",
        "batchId": 3,
        "batchDuration": 120,
        "durationMs": {"addBatch": 80, "triggerExecution": 120},
        "eventTime": {"watermark": "2026-01-01T00:00:00.000Z"},
        "stateOperators": [
            {"numRowsTotal": 2, "memoryUsedBytes": 30, "numRowsDroppedByWatermark": 4},
            {"numRowsTotal": 3, "memoryUsedBytes": 70, "numRowsDroppedByWatermark": 1},
        ],
        "sources": [
            {"description": "files", "endOffset": {"logOffset": 4}},
            {"description": "ours", "endOffset": END, "latestOffset": {"a": {"0": 9, "1": 7}}},
        ],
        "sink": {"description": "a table", "numOutputRows": -1},
        "numInputRows": 12,
        "inputRowsPerSecond": 6.0,
        "processedRowsPerSecond": 100.5,
        **changed,
    }


def test_a_batch_is_told_with_its_lag_by_partition() -> None:
    record = record_of("shop", progress())
    assert record == ProgressRecord(
        owner="shop",
        query="orders",
        query_id="q-1",
        run_id="r-1",
        batch_id=3,
        at_ms=2_500,
        rows=12,
        input_rows_per_s=6.0,
        processed_rows_per_s=100.5,
        batch_ms=120,
        durations_ms={"addBatch": 80, "triggerExecution": 120},
        watermark="2026-01-01T00:00:00.000Z",
        state_rows=5,
        state_bytes=100,
        late_rows=5,
        sink="a table",
        partitions=(PartitionProgress("a", 0, 5, 9), PartitionProgress("a", 1, 7, 7)),
    )
    assert record.lag == 4
    assert record.key == "progress/shop/orders"


def test_a_query_without_a_name_goes_by_its_id() -> None:
    assert record_of("shop", progress(name=None)).query == "q-1"


def test_offsets_that_are_text_or_absent_are_read_too() -> None:
    text = [{"endOffset": json.dumps(END), "latestOffset": None}, {"endOffset": None}, {"endOffset": "null"}]
    assert [(offset.ends, ends) for offset, ends in our_offsets({"sources": text})] == [({A0: 5, A1: 7}, {})]


def test_an_end_that_is_not_known_is_no_lag() -> None:
    record = record_of("shop", progress(sources=[{"endOffset": END, "latestOffset": None}]))
    assert [(item.end, item.lag) for item in record.partitions] == [(-1, 0), (-1, 0)]


def test_rates_that_json_cannot_hold_are_zero() -> None:
    record = record_of("shop", progress(inputRowsPerSecond=float("nan"), processedRowsPerSecond="Infinity"))
    assert (record.input_rows_per_s, record.processed_rows_per_s) == (0.0, 0.0)


def test_records_survive_json_and_fields_of_later_versions() -> None:
    query = record_of("shop", progress())
    assert ProgressRecord.of_json({**json.loads(json.dumps(query.to_json())), "newer": 1}) == query
    pipeline = PipelineRecord("shop", "running", "host", 7, 1, 2, master="local[2]", digest="d")
    assert PipelineRecord.of_json({**json.loads(json.dumps(pipeline.to_json())), "newer": 1}) == pipeline
