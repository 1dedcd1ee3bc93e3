"""What can be set on a read: every rule, and what is said when it is broken."""

from __future__ import annotations

import logging
import os
import pickle
from dataclasses import replace
from typing import Any

import pytest

from penstock.model.ids import TopicPartition
from penstock.spark.errors import BadOption
from penstock.spark.offsets import EARLIEST, LATEST
from penstock.spark.source import client_settings
from penstock.spark.source.options import RAW_COLUMNS, SourceOptions

NEEDED = {"kafka.bootstrap.servers": "here:9092", "subscribe": "t"}
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def options(streaming: bool | None = True, **given: str) -> SourceOptions:
    """Keywords with `__` for a dot; `without=` takes one away."""
    named = NEEDED | {name.replace("__", "."): value for name, value in given.items()}
    dropped = named.pop("without", "")
    return SourceOptions.of({name: value for name, value in named.items() if name not in dropped}, streaming=streaming)


def test_the_defaults_are_those_of_the_kafka_connector() -> None:
    stream, batch = options(True), options(False)
    assert (stream.start.otherwise, batch.start.otherwise, batch.end.otherwise) == (LATEST, EARLIEST, LATEST)
    assert stream.fail_on_data_loss
    assert not stream.include_headers
    assert stream.columns == RAW_COLUMNS
    assert (stream.max_offsets_per_trigger, stream.min_offsets_per_trigger) == (None, None)
    assert stream.max_trigger_delay_ms == 15 * 60 * 1000
    assert (stream.retries, stream.retry_interval_ms) == (3, 1000)
    assert stream.publish_progress
    assert stream.metadata_ttl_ms == 0
    assert stream.read_committed


def test_names_know_no_case() -> None:
    found = options(STARTINGOFFSETS="earliest", INCLUDEheaders="TRUE", **{"KAFKA.Isolation.Level": "read_uncommitted"})
    assert found.start.otherwise == EARLIEST
    assert found.include_headers
    assert not found.read_committed


def test_tasks_are_as_many_as_the_session_says_or_the_user_wants(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_SPARK_TASKS", "24")
    assert options().max_tasks == 24
    assert options(maxTasks="3").max_tasks == 3
    monkeypatch.delenv("PENSTOCK_SPARK_TASKS")
    assert options().max_tasks == (os.cpu_count() or 1)


def test_options_travel_small() -> None:
    assert len(pickle.dumps(options())) < 1500
    assert pickle.loads(pickle.dumps(options())) == options()


@pytest.mark.parametrize(
    ("given", "streaming", "words"),
    [
        # What to read.
        ({"without": "subscribe"}, True, "say what to read with one of subscribe, subscribePattern, assign"),
        ({"assign": '{"t": [0]}'}, True, "only one of subscribe, subscribePattern, assign can be given"),
        ({"subscribe": " , "}, True, "subscribe names no topic"),
        ({"without": "subscribe", "subscribePattern": " "}, True, "subscribePattern is empty"),
        ({"without": "subscribe", "subscribePattern": "a("}, True, "is no regular expression"),
        ({"without": "subscribe", "assign": "[]"}, True, 'JSON such as {"topicA": {"0": 23'),
        ({"without": "subscribe", "assign": '{"t": 0}'}, True, 'JSON such as {"topicA": [0, 1], "topicB": [2]}'),
        ({"without": "subscribe", "assign": '{"t": [-1]}'}, True, "assign="),
        ({"without": "subscribe", "assign": "{}"}, True, "assign names no partition"),
        # Where to begin and end.
        ({"startingOffsets": "first"}, True, "expected earliest, latest or JSON"),
        ({"startingOffsets": '{"t": {"x": 1}}'}, True, "expected earliest, latest or JSON"),
        ({"startingOffsets": '{"t": {"0": true}}'}, True, "expected earliest, latest or JSON"),
        ({"startingOffsets": '{"t": {"0": -3}}'}, True, "the offset of t-0 is -3"),
        ({"startingOffsets": "table:"}, True, "say which table, as in table:/lake/orders"),
        ({"startingOffsets": "latest"}, False, "startingOffsets=latest leaves a batch read nothing"),
        ({"startingOffsets": '{"t": {"0": -1}}'}, False, "t-0 cannot begin at -1 (latest) in a batch read"),
        ({"startingTimestamp": "noon"}, True, "startingTimestamp='noon': expected milliseconds since 1970"),
        ({"startingTimestamp": "-5"}, True, "expected milliseconds since 1970"),
        ({"startingOffsetsByTimestamp": '{"t": {"0": -5}}'}, True, "the time of t-0 is -5"),
        ({"startingOffsetsByTimestamp": "7"}, True, "startingOffsetsByTimestamp='7': expected JSON"),
        ({"startingOffsetsByTimestampStrategy": "guess"}, True, "expected error or latest"),
        ({"endingOffsets": "latest"}, True, "endingOffsets is for batch reads: a stream has no end"),
        ({"endingTimestamp": "5"}, True, "endingTimestamp is for batch reads"),
        ({"endingOffsetsByTimestamp": "{}"}, True, "endingOffsetsByTimestamp is for batch reads"),
        ({"endingOffsets": "earliest"}, False, "endingOffsets=earliest leaves nothing to read"),
        ({"endingOffsets": '{"t": {"0": -2}}'}, False, "t-0 cannot end at -2 (earliest)"),
        ({"endingOffsets": "table:/x"}, False, "endingOffsets cannot be a table"),
        # How much.
        ({"maxOffsetsPerTrigger": "0"}, True, "maxOffsetsPerTrigger='0': expected a whole number of at least 1"),
        ({"maxOffsetsPerTrigger": "many"}, True, "expected a whole number"),
        ({"minOffsetsPerTrigger": "5", "maxOffsetsPerTrigger": "4"}, True, "is more than maxOffsetsPerTrigger (4)"),
        ({"maxTriggerDelay": "soon"}, True, "expected a time such as 15m, 30s or 500ms"),
        ({"maxTriggerDelay": "5 fortnights"}, True, "expected a time such as 15m"),
        ({"minPartitions": "0"}, True, "minPartitions='0'"),
        ({"maxRecordsPerPartition": "-1"}, True, "maxRecordsPerPartition='-1'"),
        ({"maxTasks": "0"}, True, "maxTasks='0'"),
        ({"fetchOffset__numRetries": "-1"}, True, "fetchOffset.numRetries='-1': expected a whole number of at least 0"),
        ({"partition__metadata__cache__ttl__ms": "0"}, True, "expected -1 (ask on every trigger) or a number of ms"),
        # Which rows.
        ({"failOnDataLoss": "maybe"}, True, "failOnDataLoss='maybe': expected true or false"),
        ({"columns": "key,worth"}, True, "there is no column 'worth'; there are key, value, topic"),
        ({"columns": "headers"}, True, "need includeHeaders=true"),
        ({"columns": "key,KEY"}, True, "each once"),
        ({"columns": ""}, True, "expected names with commas between"),
        ({"value__schema": "a INT"}, True, "value.schema needs value.format"),
        ({"metadataColumns": "_key"}, True, "metadataColumns is for typed rows"),
        ({"deadLetters": "drop"}, True, "deadLetters is for typed rows"),
        ({"value__format": "text", "columns": "key"}, True, "columns is for raw rows"),
        ({"value__format": "text", "includeHeaders": "true"}, True, "includeHeaders is for raw rows"),
        ({"value__format": "text", "metadataColumns": "_ofset"}, True, "did you mean '_offset'?"),
        ({"value__format": "text", "metadataColumns": "_key,_key"}, True, "names a column twice"),
        # Names.
        ({"path": "/somewhere"}, True, "a topic has no path"),
        ({"startingOffset": "earliest"}, True, "there is no option 'startingoffset'; did you mean 'startingOffsets'?"),
        ({"bootstrap.servers": "x:1"}, True, "did you mean 'kafka.bootstrap.servers'?"),
        ({"zzz": "1"}, True, "there is no option 'zzz'"),
        # kafka.*
        ({"without": "kafka.bootstrap.servers"}, True, "kafka.bootstrap.servers is missing"),
        ({"kafka.bootstrap.servers": " "}, True, "kafka.bootstrap.servers is missing"),
        ({"kafka.auto.offset.reset": "latest"}, True, "cannot be set: say where to begin with startingOffsets"),
        ({"kafka.key.deserializer": "x"}, True, "kafka.key.deserializer cannot be set"),
        ({"kafka.value.deserializer": "x"}, True, "kafka.value.deserializer cannot be set"),
        ({"kafka.enable.auto.commit": "true"}, True, "offsets are kept in the query's checkpoint"),
        ({"kafka.interceptor.classes": "x"}, True, "kafka.interceptor.classes cannot be set"),
        ({"kafka.fetch.max.byte": "5"}, True, "did you mean 'kafka.fetch.max.bytes'?"),
        ({"kafka.fetch.max.bytes": "lots"}, True, "fetch_max_bytes='lots': expected a whole number"),
        ({"kafka.isolation.level": "serializable"}, True, "isolation_level='serializable': expected"),
        ({"kafka.security.protocol": "SASL_SSL"}, True, "needs username and password, or sasl_jaas_config"),
        ({"kafka.ssl.truststore.location": "/x"}, True, "needs security_protocol: SSL or SASL_SSL"),
    ],
)
def test_what_cannot_be_right_is_said(given: dict[str, Any], streaming: bool, words: str) -> None:
    with pytest.raises(BadOption) as told:
        options(streaming, **given)
    assert words in str(told.value)


def test_the_nearest_to_the_partition_wins_among_starts() -> None:
    every = {
        "startingOffsets": "earliest",
        "startingOffsetsByTimestamp": '{"t": {"0": 5}}',
        "startingTimestamp": "7",
    }
    assert options(**every).start.time_ms == 7
    del every["startingTimestamp"]
    assert options(**every).start.times_ms == {T0: 5}
    del every["startingOffsetsByTimestamp"]
    assert options(**every).start.otherwise == EARLIEST


def test_and_among_ends() -> None:
    every = {"endingOffsets": '{"t": {"0": 3}}', "endingOffsetsByTimestamp": '{"t": {"0": 5}}', "endingTimestamp": "7"}
    assert options(False, **every).end.time_ms == 7
    del every["endingTimestamp"]
    assert options(False, **every).end.times_ms == {T0: 5}
    del every["endingOffsetsByTimestamp"]
    assert options(False, **every).end.offsets == {T0: 3}


@pytest.mark.parametrize(("streaming", "default"), [(True, LATEST), (False, EARLIEST)])
def test_partitions_that_json_does_not_name_begin_at_the_default(streaming: bool, default: int) -> None:
    start = options(streaming, startingOffsets='{"t": {"0": 23}}').start
    assert start.resolve([T0, T1], {}, {}) == {T0: 23, T1: default}


@pytest.mark.parametrize(
    ("text", "ms"), [("15m", 900_000), ("30s", 30_000), ("250", 250), ("1h", 3_600_000), ("2 min", 120_000)]
)
def test_times_are_written_as_spark_writes_them(text: str, ms: int) -> None:
    assert options(maxTriggerDelay=text).max_trigger_delay_ms == ms


def test_kafka_settings_become_ours(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_settings, "_READING", replace(client_settings._READING))  # has told nothing yet
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            found = options(
                **{
                    "kafka.max.partition.fetch.bytes": "99",
                    "kafka.client.id": "me",
                    "kafka.session.timeout.ms": "5",
                    "kafka.security.protocol": "plaintext",
                }
            )
    assert found.client_settings == {
        "bootstrap_servers": "here:9092",
        "max_partition_fetch_bytes": "99",
        "client_id": "me",
        "security_protocol": "plaintext",
        "isolation_level": "read_committed",
    }
    assert found.admin_settings == {
        "bootstrap_servers": "here:9092",
        "client_id": "me",
        "security_protocol": "plaintext",
        "default_api_timeout_ms": "30000",
    }
    # Kafka's client knows it, to us it means nothing: that is told, once.
    assert [record.getMessage().split()[0] for record in caplog.records] == ["kafka.session.timeout.ms"]


def test_how_long_to_wait_is_for_the_user_to_say() -> None:
    assert options(**{"kafka.default.api.timeout.ms": "1500"}).patience_ms == 1500
    assert options(**{"kafkaConsumer.pollTimeoutMs": "700"}).client_settings["default_api_timeout_ms"] == "700"
    assert options(**{"kafkaConsumer.pollTimeoutMs": "700"}).patience_ms == 30_000


def test_limits_of_triggers_mean_nothing_to_a_batch(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        options(False, maxOffsetsPerTrigger="5")
    assert "maxOffsetsPerTrigger is not used by a batch read" in caplog.text


def test_columns_are_given_in_the_order_they_are_named() -> None:
    assert options(columns="OFFSET, value").columns == ("offset", "value")
    assert options(columns="headers,key", includeHeaders="true").columns == ("headers", "key")
    assert options(includeHeaders="true").columns == (*RAW_COLUMNS, "headers")


def test_typed_rows_keep_what_was_said_about_values() -> None:
    found = options(**{"value.format": "json", "VALUE.Schema": "a INT", "metadataColumns": "_offset,_key"})
    assert found.typed
    assert found.values == {"value.format": "json", "value.schema": "a INT"}
    assert found.metadata_columns == ("_offset", "_key")
    assert found.dead_letters == "fail"


def test_assigned_partitions_and_names_are_sorted() -> None:
    found = options(without="subscribe", assign='{"u": [1, 0], "t": [0]}').topics
    assert found.assigned == (T0, TopicPartition("u", 0), TopicPartition("u", 1))
    assert options(subscribe="b, a,b").topics.names == ("a", "b")


@pytest.mark.parametrize(
    ("pattern", "matched"),
    [
        ("orders", ["my-orders", "orders", "orders-eu"]),
        ("^orders$", ["orders"]),
        ("orders-.*|pay", ["orders-eu", "payments"]),
        # Look-around and possessive quantifiers are Java's too.
        ("^(?!orders)", ["my-orders", "payments"]),
        (r"^o\w++$", ["orders"]),
    ],
)
def test_patterns_are_found_anywhere_in_a_name(pattern: str, matched: list[str]) -> None:
    choice = options(without="subscribe", subscribePattern=pattern).topics
    assert choice.matching({"orders", "orders-eu", "my-orders", "payments"}) == matched
