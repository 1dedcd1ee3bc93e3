"""Values as columns in Spark: the meaning is Spark's own, and what cannot be decoded goes where the user wants it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable
from pyspark.errors import StreamingQueryException
from pyspark.sql import Row, SparkSession
from pyspark.sql.functions import col, from_json
from pyspark.sql.types import StructType

from penstock.blocking import Admin
from penstock.spark.values.ddl import ddl_of, struct_of
from penstock.spark.values.decoding import decoder_of
from penstock.spark.values.options import ValueOptions
from tests.spark.source_rows import Stream, consumed, read

Produce = Callable[..., None]

GOOD = [b'{"id": %d, "who": {"name": "n%d"}, "tags": ["a"]}' % (number, number) for number in range(20)]
SCHEMA = "id BIGINT, who STRUCT<name: STRING>, tags ARRAY<STRING>"
JSON = {"value.format": "json", "value.schema": SCHEMA}


def mixed() -> list[bytes | None]:
    """Twenty good values, two bad ones at offsets 3 and 13, a tombstone at the end."""
    values: list[bytes | None] = [*GOOD]
    values.insert(3, b'{"id": "three"}')
    values.insert(13, b"oops")
    return [*values, None]


def ids(rows: list[Row]) -> list[int | None]:
    return sorted((row.id for row in rows), key=lambda found: (found is None, found))


EVERY_ID = [*range(20), None]


DDL = [
    "a boolean, b tinyint, c byte, d smallint, e short, f int, g integer, h bigint, i long, j float, k real, l double",
    "a decimal, b dec(5), c numeric(12,3), d string, e binary, f date, g timestamp, h timestamp_ntz, i timestamp_ltz",
    "a interval, b interval day to second, c interval year to month, d interval hour, e variant, f void, g time(3)",
    "a array<struct<x: int, y: map<string, array<decimal(9,2)>>>>, `b c``d` struct<p: int not null comment 'it\\'s'>",
    "id BIGINT NOT NULL COMMENT 'the \"key\"', n: string, s struct<>",
]


@pytest.mark.parametrize("ddl", DDL)
def test_types_are_read_and_written_as_spark_does(spark: SparkSession, ddl: str) -> None:
    ours = struct_of(ddl)
    assert ours == StructType.fromDDL(ddl)
    assert StructType.fromDDL(ddl_of(ours)) == ours


MEANINGS = {
    "STRING": ['"x"', "12", "1.50", "true", '{"x" : [1, 2.0]}', '""', '"\\u00e9"'],
    "BIGINT": ["1", "-9223372036854775808", "9223372036854775808", "1.0", "1e2", '"1"', "true", "{}"],
    "INT": ["2147483647", "2147483648"],
    "DOUBLE": ["1", "1.5", "1e400", '"NaN"', '"Infinity"', '"-INF"', '"1.5"', '"x"', "12345678901234567890", "-0"],
    "FLOAT": ["0.1", "1e39"],
    "BOOLEAN": ["true", "false", '"true"', "1"],
    "DECIMAL(6,2)": ["1.255", "-1.255", '"1.5"', "1e2", "99999", "1e-9", '"x"'],
    "DATE": ['"2026-03-04"', '"2026-3-4"', '"2026"', '"2026-03-04T01:02:03"', '"2026-02-30"', '"x"'],
    "TIMESTAMP": [
        '"2026-03-04T05:06:07Z"',
        '"2026-03-04T05:06:07.123456789+02:00"',
        '"2026-03-04 05:06:07.5"',
        '"2026-03-04 05:06:07 Europe/Berlin"',
        '"2026-03-04"',
        '"2026-3-4 5:6:7"',
        '"2026-03-04T05:06"',
        "1772600767",
        '"2026-13-04"',
        '"x"',
    ],
    "TIMESTAMP_NTZ": ['"2026-03-04T05:06:07.5"', '"2026-03-04T05:06:07Z"', '"2026-03-04"'],
    "BINARY": ['"aGk="', '""'],
    "ARRAY<INT>": ["[1, null]", "[]", '[1, "x"]', "{}"],
    "MAP<STRING, INT>": ['{"a": 1, "b": null}', "{}", "[]", '{"a": "x"}'],
    "STRUCT<x: INT, y: STRING>": ['{"x": 1}', '{"y": 5, "z": 6}', "{}", "[]", '{"x": "x"}'],
}


def test_a_document_means_what_from_json_says(spark: SparkSession) -> None:
    """Where Spark finds a value we find the same; where it finds null although something is there, we say it is bad."""
    kinds = list(MEANINGS)
    schema = struct_of(", ".join(f"c{at} {kind}" for at, kind in enumerate(kinds)))
    documents = [f'{{"c{at}": {text}}}' for at, kind in enumerate(kinds) for text in MEANINGS[kind]]
    frame = spark.createDataFrame([(document,) for document in documents], "value string")
    theirs = [row.found for row in frame.select(from_json(col("value"), schema).alias("found")).collect()]

    decoder = decoder_of(ValueOptions("json", schema="given"), schema)
    ours = decoder.decode(pa.array([document.encode() for document in documents], pa.binary()))
    columns = spark.createDataFrame(pa.Table.from_batches([ours.columns])).collect()
    numbers = range(len(documents)) if ours.good is None else ours.good.to_pylist()
    found = dict(zip(numbers, columns, strict=True))
    different = []
    for number, document in enumerate(documents):
        at = int(document[3 : document.index('"', 2)])
        spark_says = None if theirs[number] is None else theirs[number][at]
        we_say = found[number][at] if number in found else None
        nulled = spark_says is None and number in found
        if (repr(spark_says) != repr(we_say) or nulled) and not lenient(document, spark_says):
            different.append((document, spark_says, we_say))
    assert different == []


def lenient(document: str, spark_says: Any) -> bool:
    """Where Spark keeps half of a value that is broken inside, or spells a number anew."""
    broken_inside = spark_says is not None and '"x"' in document and document.endswith(("]}", "}}"))
    return broken_inside or document == '{"c0": 1.50}'


def test_a_batch_has_columns_and_metadata_beside_them(
    spark: SparkSession, bootstrap: str, topic: str, produce: Produce
) -> None:
    produce(topic, mixed())
    frame = read(spark, bootstrap, subscribe=topic, deadLetters="drop", metadataColumns="_partition,_offset", **JSON)
    assert ddl_of(frame.schema.__class__(frame.schema.fields[:3])) == SCHEMA
    rows = frame.collect()
    assert ids(rows) == EVERY_ID
    assert sorted(row._offset for row in rows) == [offset for offset in range(23) if offset not in (3, 13)]
    assert {row.who.name for row in rows if row.id == 7} == {"n7"}


def test_columns_are_inferred_from_a_sample(spark: SparkSession, bootstrap: str, topic: str, produce: Produce) -> None:
    produce(topic, GOOD)
    options = {"value.format": "json", "value.schema": "infer", "value.schema.sample": "10"}
    frame = read(spark, bootstrap, subscribe=topic, **options)
    assert ddl_of(frame.schema) == SCHEMA
    assert ids(frame.collect()) == list(range(20))


def test_a_stream_leaves_dead_letters_in_a_topic(
    spark: SparkSession, bootstrap: str, topic: str, scratch: Path, produce: Produce
) -> None:
    produce(topic, mixed(), key=b"k", headers=[("h", b"1")])
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topic(f"{topic}-dead")
    stream = Stream(
        spark,
        bootstrap,
        scratch,
        subscribe=topic,
        startingOffsets="earliest",
        deadLetters=f"topic:{topic}-dead",
        **JSON,
    )
    assert ids(stream.drain()) == EVERY_ID
    letters = sorted(consumed(bootstrap, f"{topic}-dead"), key=lambda letter: letter.offset)
    told = [(letter.key, letter.value, dict(letter.headers)["penstock.offset"]) for letter in letters]
    assert sorted(told) == [(b"k", b"oops", b"13"), (b"k", b'{"id": "three"}', b"3")]
    assert {letter.headers[-1] for letter in letters} == {("h", b"1")}


def test_a_stream_leaves_each_dead_letter_in_a_table_once(
    spark: SparkSession, bootstrap: str, topic: str, scratch: Path, produce: Produce
) -> None:
    produce(topic, mixed())
    options = {"subscribe": topic, "startingOffsets": "earliest", "deadLetters": f"table:{scratch / 'dead'}", **JSON}
    assert ids(Stream(spark, bootstrap, scratch / "one", **options).drain()) == EVERY_ID
    # A lost checkpoint plays everything again, to the same table.
    assert ids(Stream(spark, bootstrap, scratch / "two", **options).drain()) == EVERY_ID
    found = ds.dataset(DeltaTable(str(scratch / "dead")).file_uris()).to_table().to_pylist()
    assert [(letter["offset"], letter["value"], letter["batch_id"]) for letter in found] == [
        (3, b'{"id": "three"}', 0),
        (13, b"oops", 0),
    ]
    assert {(letter["topic"], letter["partition"]) for letter in found} == {(topic, 0)}


def test_a_stream_that_shall_fail_says_which_record_it_was(
    spark: SparkSession, bootstrap: str, topic: str, scratch: Path, produce: Produce
) -> None:
    produce(topic, mixed()[10:])
    stream = Stream(spark, bootstrap, scratch, subscribe=topic, startingOffsets="earliest", **JSON)
    with pytest.raises(StreamingQueryException) as told:
        stream.drain()
    assert f"{topic}, partition 0, offset 3: not JSON: " in str(told.value)
