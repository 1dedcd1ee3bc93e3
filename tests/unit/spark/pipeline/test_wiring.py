"""What a file says becomes the options that sources and sinks know."""

from __future__ import annotations

import json
from dataclasses import replace

from penstock.spark.pipeline.wiring import (
    lake_options,
    millis_of,
    once_settings,
    source_options,
    start_options,
    topic_options,
)
from penstock.spark.source.options import SourceOptions
from penstock.spark.topic_sink.options import SinkOptions
from tests.unit.spark.pipeline.files import changed, complaints, flow_of


def test_a_source() -> None:
    flow = flow_of()
    assert source_options(flow, flow.sources[0], sink=flow.sink("lake")) == {
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


def test_how_transactions_are_read_is_a_matter_of_sources() -> None:
    flow = flow_of(changed(("[spark]", '[kafka]\n"isolation.level" = "read_uncommitted"\n[spark]')))
    options = source_options(flow, flow.sources[0])
    assert not SourceOptions.of(options, streaming=True).read_committed
    assert "kafka.isolation.level" not in topic_options(flow, flow.sinks[2])
    SinkOptions.of(topic_options(flow, flow.sinks[2]))
    # The table says how it is fed, so that its log is read in the same way beside it.
    feed = json.loads(lake_options(flow, flow.sink("lake"))["feed"])
    assert feed["options"]["kafka.isolation.level"] == "read_uncommitted"


def test_settings_of_the_client_go_to_sources_and_topics() -> None:
    flow = flow_of(changed(("[spark]", '[kafka]\n"client.rack" = "a"\n[spark]')))
    assert source_options(flow, flow.sources[0])["kafka.client.rack"] == "a"
    assert topic_options(flow, flow.sinks[2]) == {
        "kafka.bootstrap.servers": "broker:9092",
        "kafka.client.rack": "a",
        "topic": "totals",
    }


def test_a_topic_sink_writes_in_transactions_when_it_says_so() -> None:
    flow = flow_of(changed(('mode = "update"', "exactly_once = true")))
    assert SinkOptions.of(topic_options(flow, flow.sinks[2])).exactly_once
    assert not SinkOptions.of(topic_options(flow_of(), flow_of().sinks[2])).exactly_once
    assert once_settings(flow) == {"spark.stage.maxConsecutiveAttempts": "1"}
    assert once_settings(flow_of()) == {}
    assert SinkOptions.of(topic_options(flow, flow.sinks[2])).stages_once
    retried = {"spark.sql.shuffle.partitions": 4, "spark.stage.maxConsecutiveAttempts": 3}
    flow = replace(flow, spark=replace(flow.spark, settings=retried))
    assert not SinkOptions.of(topic_options(flow, flow.sinks[2])).stages_once, "then attempts have ids of their own"


def test_transactions_that_cannot_be_are_told_at_their_key() -> None:
    acks = changed(('mode = "update"', 'exactly_once = true\noptions = { "kafka.acks" = "1" }'))
    assert complaints(acks) == ["35:1: exactly.once=true: transactions need acks='all'"]


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


def test_the_letters_of_a_source_are_sent_by_one_of_its_queries() -> None:
    flow = flow_of()
    told = {sink.name: source_options(flow, flow.sources[0], sink=sink)["deadLetters"] for sink in flow.sinks}
    assert told == {"lake": "topic:orders.dead", "raw": "drop", "totals": "drop"}
    alone = flow.only(("raw", "totals"))
    told = {sink.name: source_options(alone, alone.sources[0], sink=sink)["deadLetters"] for sink in alone.sinks}
    assert told == {"raw": "topic:orders.dead", "totals": "drop"}, "of those that run, whichever those are"


def test_a_table_carries_letters_before_others_do_wherever_it_stands() -> None:
    text = changed(
        ('[sinks.lake]\nfrom = "paid"', '[sinks.first]\nfrom = "paid"\nconsole = true\n[sinks.lake]\nfrom = "paid"')
    )
    flow = flow_of(text)
    assert flow.sinks[0].name == "first"
    carrier = flow.carrier(flow.sources[0])
    assert carrier is not None
    assert carrier.name == "lake"


def test_other_ways_with_letters_are_every_querys_own() -> None:
    for way in ("table:dead", "fail", "drop"):
        flow = flow_of(changed(("topic:orders.dead", way)))
        told = {source_options(flow, flow.sources[0], sink=sink)["deadLetters"] for sink in flow.sinks}
        assert len(told) == 1, way
    given = flow_of(changed(("maxOffsetsPerTrigger = 100000", 'DEADLETTERS = "topic:x"')))
    assert source_options(given, given.sources[0], sink=given.sink("raw"))["DEADLETTERS"] == "drop"


def test_dead_letters_in_a_table_lie_in_the_warehouse() -> None:
    flow = flow_of(changed(("topic:orders.dead", "table:dead")))
    assert source_options(flow, flow.sources[0])["deadLetters"] == "table:/somewhere/lake/dead"
