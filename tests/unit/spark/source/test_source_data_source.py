"""The door: which columns a read has, and which schemas of the user's are taken."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Iterator

import pytest
from pyspark.sql import types as T  # noqa: N812 - as everybody calls it

from penstock.blocking import Admin, Producer
from penstock.spark.errors import BadOption, Missing
from penstock.spark.source.batch import TopicBatchReader
from penstock.spark.source.data_source import TopicDataSource
from penstock.spark.source.stream import TopicStreamReader
from penstock.testing import broker

NEEDED = {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t"}
JSON = {"value.format": "json", "value.schema": "id BIGINT, name STRING"}


def source(**given: str) -> TopicDataSource:
    return TopicDataSource(options=NEEDED | {name.replace("__", "."): value for name, value in given.items()})


def shape(schema: T.StructType | str) -> str:
    assert isinstance(schema, T.StructType)
    return schema.simpleString()


def test_raw_rows_have_the_columns_of_the_kafka_connector() -> None:
    assert TopicDataSource.name() == "penstock"
    raw = "key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,timestampType:int"
    assert shape(source().schema()) == f"struct<{raw}>"
    headers = "headers:array<struct<key:string,value:binary>>"
    assert shape(source(includeHeaders="true").schema()) == f"struct<{raw},{headers}>"
    assert shape(source(columns="value,offset").schema()) == "struct<value:binary,offset:bigint>"


def test_typed_rows_have_the_columns_of_their_value_and_the_metadata_that_is_wanted() -> None:
    assert shape(source(**JSON).schema()) == "struct<id:bigint,name:string>"
    headers = "_headers:array<struct<key:string,value:binary>>"
    assert (
        shape(source(**JSON, metadataColumns="_offset,_headers,_timestamp").schema())
        == f"struct<id:bigint,name:string,_offset:bigint,{headers},_timestamp:timestamp>"
    )
    assert shape(source(value__format="text", metadataColumns="_key").schema()) == "struct<value:string,_key:binary>"


def test_options_are_checked_before_anything_runs() -> None:
    with pytest.raises(BadOption, match="did you mean 'startingOffsets'"):
        source(startingOffset="earliest").schema()
    with pytest.raises(BadOption, match="endingOffsets is for batch reads"):
        source(endingOffsets="latest").streamReader(T.StructType())


def test_columns_are_inferred_from_what_was_committed_however_much_was_aborted_after_it() -> None:
    with broker() as node, Producer(node.bootstrap_servers, transactional_id="sampled") as producer:
        given = {"kafka.bootstrap.servers": node.bootstrap_servers, "subscribe": "t"}
        infer = TopicDataSource(given | {"value.format": "json", "value.schema": "infer", "value.schema.sample": "4"})
        with producer.transaction():
            producer.send("t", b'{"id": 1}')
        producer.begin()
        for _ in range(100):
            producer.send("t", b"of nobody's business")
        producer.abort()
        assert shape(infer.schema()) == "struct<id:bigint>"


def test_a_schema_of_ones_own_is_for_typed_rows_only() -> None:
    made = source()
    schema = made.schema()
    assert isinstance(schema, T.StructType)
    assert isinstance(made.reader(schema), TopicBatchReader)
    assert isinstance(made.streamReader(schema), TopicStreamReader)
    own = T.StructType([T.StructField("a", T.IntegerType())])
    with pytest.raises(BadOption, match=r"raw records have the columns key, value, .* leave \.schema\(\) out"):
        made.reader(own)
    with pytest.raises(BadOption, match="raw records have the columns"):
        made.streamReader(own)


def test_a_schema_of_ones_own_says_the_columns_of_values_and_their_order() -> None:
    own = T.StructType(
        [
            T.StructField("_offset", T.LongType()),
            T.StructField("a", T.IntegerType()),
            T.StructField("_key", T.BinaryType()),
        ]
    )
    reader = source(value__format="json").streamReader(own)
    assert isinstance(reader, TopicStreamReader)
    assert reader.options.metadata_columns == ("_offset", "_key")
    assert reader.options.values == {"value.format": "json", "value.schema": "a INT"}


@pytest.mark.parametrize(
    ("given", "ddl", "words"),
    [
        ({"value__format": "json", "metadataColumns": "_key"}, [("a", T.IntegerType())], "metadataColumns names _key"),
        ({"value__format": "json"}, [("_key", T.StringType())], "column _key is string in the schema; it is binary"),
        (JSON, [("id", T.LongType())], "give one of them"),
        ({"value__format": "json"}, [("a", T.VariantType())], "json values cannot fill"),
        ({"value__format": "json", "deadLetters": "bin"}, [("a", T.IntegerType())], "deadLetters=bin is unknown"),
    ],
)
def test_what_does_not_go_together_is_told(
    given: dict[str, str], ddl: list[tuple[str, T.DataType]], words: str
) -> None:
    schema = T.StructType([T.StructField(name, kind) for name, kind in ddl])
    with pytest.raises(BadOption) as told:
        source(**given).reader(schema)
    assert words in str(told.value)


def test_a_value_may_not_have_a_column_that_is_named_like_metadata() -> None:
    with pytest.raises(BadOption, match="values have a column _offset"):
        source(value__format="json", value__schema="_offset BIGINT").schema()


def test_readers_of_typed_rows_travel_small() -> None:
    made = source(**JSON)
    schema = made.schema()
    assert isinstance(schema, T.StructType)
    assert len(pickle.dumps(made.streamReader(schema))) < 4000
    assert len(pickle.dumps(made)) < 1000


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with broker() as node:
        yield node.bootstrap_servers


def test_columns_are_inferred_from_the_newest_values_and_told(bootstrap: str, caplog: pytest.LogCaptureFixture) -> None:
    with Admin(bootstrap_servers=bootstrap) as admin, Producer(bootstrap_servers=bootstrap) as producer:
        admin.create_topic("guess", partitions=2)
        for partition in (0, 1):
            producer.send_batch("guess", [b'{"old": true}'] * 50, partition=partition).result()
            producer.send_batch("guess", [b'{"id": 1, "name": "a"}', None] * 5, partition=partition).result()
    made = TopicDataSource(
        options={
            "kafka.bootstrap.servers": bootstrap,
            "subscribe": "guess",
            "value.format": "json",
            "value.schema": "infer",
            "value.schema.sample": "20",
        }
    )
    with caplog.at_level(logging.WARNING):
        schema = made.schema()
    assert shape(schema) == "struct<id:bigint,name:string>"
    assert "20 records looked at" in caplog.text
    assert isinstance(schema, T.StructType)
    reader = made.reader(schema)
    assert isinstance(reader, TopicBatchReader)
    assert reader.options.values == {"value.format": "json", "value.schema": "id BIGINT, name STRING"}


def test_an_empty_topic_has_nothing_to_infer_from(bootstrap: str) -> None:
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topic("empty", partitions=1)
    made = TopicDataSource(
        options={
            "kafka.bootstrap.servers": bootstrap,
            "subscribe": "empty",
            "value.format": "json",
            "value.schema": "infer",
        }
    )
    with pytest.raises(Missing, match="has no records to infer columns from"):
        made.schema()
