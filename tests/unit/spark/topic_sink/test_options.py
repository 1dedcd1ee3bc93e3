"""What can be set to write rows to topics, and which columns can be sent."""

from __future__ import annotations

import pytest

from penstock.spark.errors import BadOption
from penstock.spark.topic_sink.options import HEADERS, SinkOptions, check_columns

ADDRESS = {"kafka.bootstrap.servers": "localhost:9092"}


def test_settings_of_kafkas_producer_become_ours() -> None:
    given = {"KAFKA.bootstrap.servers": "a:1,b:2", "kafka.acks": "1", "kafka.compression.type": "zstd", "topic": "t"}
    assert SinkOptions.of(given) == SinkOptions(
        {"bootstrap_servers": "a:1,b:2", "acks": "1", "compression": "zstd"}, "t"
    )


def test_what_spark_adds_by_itself_is_fine() -> None:
    SinkOptions.of({**ADDRESS, "checkpointLocation": "/x", "queryName": "q"})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, r"kafka\.bootstrap\.servers is missing"),
        ({**ADDRESS, "topics": "t"}, "no option 'topics' to write; did you mean 'topic'"),
        ({**ADDRESS, "path": "t"}, "a topic has no path"),
        ({**ADDRESS, "topic": " "}, "topic is empty"),
        ({**ADDRESS, "kafka.ack": "1"}, r"no option 'kafka\.ack'; did you mean 'kafka\.acks'"),
        ({**ADDRESS, "kafka.acks": "2"}, r"kafka\.acks='2': expected 0, 1 or 'all'"),
        ({**ADDRESS, "kafka.key.serializer": "x"}, r"kafka\.key\.serializer cannot be set: keys are sent as they are"),
        ({**ADDRESS, "kafka.transactional.id": "x"}, "set exactly.once=true"),
        ({**ADDRESS, "exactly.once": "yes"}, "exactly.once='yes': expected true or false"),
        ({**ADDRESS, "exactly.one": "true"}, "no option 'exactly.one' to write; did you mean 'exactly.once'"),
        ({**ADDRESS, "exactly.once": "true", "kafka.acks": "1"}, "exactly.once=true: .*acks='all'"),
        ({**ADDRESS, "exactly.once": "true", "kafka.transaction.timeout.ms": "x"}, "transaction.timeout.ms='x'"),
        ({**ADDRESS, "kafka.transaction.timeout.ms": "1000"}, "is for transactions: set exactly.once=true as well"),
        ({**ADDRESS, "kafka.security.protocol": "TLS"}, "expected 'PLAINTEXT' or 'SSL'"),
        ({**ADDRESS, "kafka.sasl.login.class": "evil.Login"}, "loads no classes"),
        ({**ADDRESS, "kafka.sasl.oauthbearer.assertion.file": "x"}, "logs in by PLAIN, SCRAM and tokens"),
        ({**ADDRESS, "kafka.sasl.oauthbearer.token.endpoint.url": "https://x"}, "needs security_protocol"),
    ],
)
def test_what_cannot_be_right_is_refused(given: dict[str, str], words: str) -> None:
    with pytest.raises(BadOption, match=words):
        SinkOptions.of(given)


def test_settings_that_mean_nothing_here_are_left_out() -> None:
    given = {**ADDRESS, "kafka.send.buffer.bytes": "1", "kafka.ssl.protocol": "TLSv1.3"}
    assert SinkOptions.of(given).producer_settings == {"bootstrap_servers": "localhost:9092"}


ALL = [
    ("key", "string"),
    ("value", "binary"),
    ("topic", "string"),
    ("headers", HEADERS),
    ("partition", "int"),
    ("timestamp", "timestamp"),
]


def test_every_column_that_can_be_sent() -> None:
    check_columns(ALL, SinkOptions.of(ADDRESS))
    check_columns([("value", "string")], SinkOptions.of({**ADDRESS, "topic": "t"}))
    check_columns([*ALL, ("offset", "bigint"), ("more", "double")], SinkOptions.of(ADDRESS))
    check_columns([("value", "string"), ("topic", "int")], SinkOptions.of({**ADDRESS, "topic": "t"}))


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ([("key", "string"), ("topic", "string")], "'value' is needed, string or binary; there are key, topic"),
        ([("value", "string")], "option topic, or have a column 'topic'"),
        ([("value", "bigint"), ("topic", "string")], "column 'value' is bigint.*string or binary"),
        ([("value", "string"), ("topic", "binary")], "column 'topic' is binary.*make it string"),
        ([("value", "string"), ("topic", "string"), ("key", "int")], "column 'key' is int.*string or binary"),
        (
            [("value", "string"), ("topic", "string"), ("partition", "bigint")],
            "column 'partition' is bigint.*make it int",
        ),
        (
            [("value", "string"), ("topic", "string"), ("timestamp", "string")],
            "'timestamp' is string.*make it timestamp",
        ),
        (
            [("value", "string"), ("topic", "string"), ("headers", "map<string,binary>")],
            "'headers' is map.*array<struct",
        ),
    ],
)
def test_columns_that_cannot_be_sent_are_named_with_what_they_should_be(
    columns: list[tuple[str, str]], words: str
) -> None:
    with pytest.raises(BadOption, match=words):
        check_columns(columns, SinkOptions.of(ADDRESS))
