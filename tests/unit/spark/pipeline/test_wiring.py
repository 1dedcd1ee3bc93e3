"""What a file says becomes the options that sources and sinks know."""

from __future__ import annotations

import json

from penstock.spark.pipeline.wiring import lake_options, millis_of, source_options, start_options, topic_options
from tests.unit.spark.pipeline.files import changed, flow_of


def test_a_source() -> None:
    flow = flow_of()
    assert source_options(flow, flow.sources[0], query="orders-lake") == {
        "kafka.bootstrap.servers": "broker:9092",
        "subscribe": "orders",
        "startingOffsets": "earliest",
        "value.format": "json",
        "value.schema": "id BIGINT, country STRING, amount DOUBLE, at TIMESTAMP",
        "deadLetters": "topic:orders.dead",
        "queryName": "orders-lake",
        "maxOffsetsPerTrigger": "100000",
    }


def test_options_of_the_user_win_whatever_their_case_but_not_over_a_lost_checkpoint() -> None:
    flow = flow_of(changed(("maxOffsetsPerTrigger = 100000", 'STARTINGoffsets = "latest"')))
    source = flow.sources[0]
    assert "startingOffsets" not in source_options(flow, source)
    assert source_options(flow, source)["STARTINGoffsets"] == "latest"
    again = source_options(flow, source, start="table:/lake/orders")
    assert again["startingOffsets"] == "table:/lake/orders"
    assert "STARTINGoffsets" not in again


def test_settings_of_the_client_go_to_sources_and_topics() -> None:
    flow = flow_of(changed(("[spark]", '[kafka]\n"client.rack" = "a"\n[spark]')))
    assert source_options(flow, flow.sources[0])["kafka.client.rack"] == "a"
    assert topic_options(flow, flow.sinks[2]) == {
        "kafka.bootstrap.servers": "broker:9092",
        "kafka.client.rack": "a",
        "topic": "totals",
    }


def test_a_start_is_a_word_a_table_offsets_or_a_time() -> None:
    assert start_options('{"t": {"0": 5}}') == {"startingOffsets": '{"t": {"0": 5}}'}
    assert start_options("2026-11-01T00:00:00Z") == {
        "startingTimestamp": "1793491200000",
        "startingOffsetsByTimestampStrategy": "latest",
    }
    assert millis_of("2026-11-01T00:00:00") == millis_of("2026-11-01T00:00:00+00:00")


def test_a_table_says_where_its_rows_come_from() -> None:
    flow = flow_of()
    options = lake_options(flow, flow.sinks[0])
    feed = json.loads(options.pop("feed"))
    assert options == {
        "path": "/somewhere/lake/orders",
        "table.format": "delta",
        "rows": "any",
        "partition.by": "country",
    }
    assert (feed["bootstrap"], feed["topics"], feed["view"], feed["query"]) == (
        "broker:9092",
        ["orders"],
        "orders",
        "orders-lake",
    )
    assert feed["options"]["value.format"] == "json"
    assert feed["steps"] == [{"name": "paid", "sql": "SELECT * FROM orders WHERE amount > 0"}]


def test_dead_letters_in_a_table_lie_in_the_warehouse() -> None:
    flow = flow_of(changed(("topic:orders.dead", "table:dead")))
    assert source_options(flow, flow.sources[0])["deadLetters"] == "table:/somewhere/lake/dead"
