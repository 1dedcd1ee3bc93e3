"""Avro values, plain and with a registry's number before them."""

from __future__ import annotations

import io
import json
import sys
import uuid
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from pyspark.sql import types as T  # noqa: N812

from penstock.spark.errors import BadOption, Missing
from penstock.spark.values.avro_schema import struct_of_avro
from penstock.spark.values.ddl import ddl_of, struct_of
from penstock.spark.values.decoding import decoder_of
from penstock.spark.values.options import ValueOptions
from tests.unit.spark.values.decoding_words import decoded, rows

ORDER: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "seen", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 8, "scale": 2}},
        {"name": "key", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "DONE"]}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "sizes", "type": {"type": "map", "values": ["null", "double"]}},
        {
            "name": "who",
            "type": {"type": "record", "name": "Person", "fields": [{"name": "name", "type": "string"}]},
        },
        {"name": "also", "type": ["null", "Person"]},
    ],
}
KEY = uuid.UUID(int=7)
WHEN = datetime(2026, 3, 4, 5, 6, 7, 123_000, tzinfo=UTC)
RECORD: dict[str, Any] = {
    "id": 1,
    "note": None,
    "at": WHEN,
    "seen": WHEN,
    "day": date(2026, 3, 4),
    "price": Decimal("12.50"),
    "key": str(KEY),
    "state": "DONE",
    "tags": ["a", "b"],
    "sizes": {"x": 1.5, "y": None},
    "who": {"name": "Ada"},
    "also": None,
}


def written(record: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(json.dumps(ORDER))), record)
    return out.getvalue()


def read(*values: bytes | None, **more: str) -> Any:
    return decoded({"value.format": "avro", "value.avro.schema": json.dumps(ORDER), **more}, *values)


def test_columns_follow_from_the_schema() -> None:
    assert ddl_of(struct_of_avro(json.dumps(ORDER))) == (
        "id BIGINT, note STRING, at TIMESTAMP, seen TIMESTAMP, day DATE, price DECIMAL(8,2), key STRING, state STRING, "
        "tags ARRAY<STRING>, sizes MAP<STRING, DOUBLE>, who STRUCT<name: STRING NOT NULL>, "
        "also STRUCT<name: STRING NOT NULL>"
    )


def test_records_become_rows() -> None:
    found = read(written(RECORD), None)
    assert found.bad == []
    assert rows(found) == [{**RECORD, "sizes": [("x", 1.5), ("y", None)]}, dict.fromkeys(RECORD)]


def test_broken_bytes_are_bad() -> None:
    whole = written(RECORD)
    found = read(whole[:5], whole, whole + b"\0", b"")
    assert [row for row, _ in found.bad] == [0, 2, 3]
    assert found.bad[0][1].startswith("not Avro of this schema: ")
    assert found.bad[1][1] == "not Avro of this schema: 1 bytes are left over"
    assert [row["id"] for row in rows(found)] == [1]


def framed(number: int, value: bytes) -> bytes:
    """As Confluent's serializers send it."""
    return b"\0" + number.to_bytes(4, "big") + value


def test_values_of_the_schemas_that_were_named_become_rows() -> None:
    whole = written(RECORD)
    found = read(framed(7, whole), framed(70_000, whole), whole, b"\0", **{"value.avro.schema.id": "7, 70000"})
    assert [row["id"] for row in rows(found)] == [1, 1]
    assert [row for row, _ in found.bad] == [2, 3]
    assert found.bad[1][1] == "not Avro with a schema's number before it: begins with 00"


def test_a_value_of_another_schema_is_no_row_however_well_it_would_decode() -> None:
    found = read(framed(8, written(RECORD)), framed(9, b""), **{"value.avro.schema.id": "7"})
    assert found.bad == [
        (0, "written with schema 8 of the registry, and value.avro.schema is that of value.avro.schema.id=7"),
        (1, "written with schema 9 of the registry, and value.avro.schema is that of value.avro.schema.id=7"),
    ]


@pytest.mark.parametrize("wire", [{}, {"value.avro.wire": "confluent"}])
def test_without_a_number_framed_values_are_put_aside_with_the_one_that_was_seen(wire: dict[str, str]) -> None:
    (bad,) = read(framed(7, written(RECORD)), **wire).bad
    assert bad[0] == 0
    assert "written with schema 7 of the registry" in bad[1]
    assert "value.avro.schema.id=7" in bad[1]


TEXT = ["null", "string"]
WORDS = json.dumps(
    {
        "type": "record",
        "name": "Words",
        "fields": [
            {"name": "a", "type": TEXT},
            {"name": "b", "type": TEXT},
            {"name": "words", "type": {"type": "array", "items": "bytes"}},
        ],
    }
)


def test_a_value_that_decodes_with_and_without_a_frame_is_no_row_until_somebody_says_which() -> None:
    # Plainly: no a, no b, one word of the bytes 7, 0, 0. After a frame of schema 132615: no a, no b, no words.
    both = b"\0\0\2\6\7\0\0\0"
    options = {"value.format": "avro", "value.avro.schema": WORDS}
    assert decoded(options, both).bad == [
        (
            0,
            "written with schema 132615 of the registry, as it seems: say value.avro.schema.id=132615 if "
            "value.avro.schema is this one, or value.avro.wire=none if no number comes before values",
        )
    ]
    assert rows(decoded({**options, "value.avro.wire": "none"}, both)) == [{"a": None, "b": None, "words": [b"\7\0\0"]}]
    assert rows(decoded({**options, "value.avro.schema.id": "132615"}, both)) == [{"a": None, "b": None, "words": []}]


def test_plain_values_that_begin_with_zeros_are_rows() -> None:
    plain = [b"\0\0\0", b"\0\0\2\6abc\0", b"\0\2\2x\2\2y\0", b"\0\2\6abc\0"]
    assert decoded({"value.format": "avro", "value.avro.schema": WORDS}, *plain).bad == []


def test_columns_may_be_chosen_and_must_fit() -> None:
    assert rows(read(written(RECORD), **{"value.schema": "day DATE, id BIGINT"})) == [
        {"day": date(2026, 3, 4), "id": 1}
    ]
    assert read(written(RECORD), **{"value.schema": "tags INT"}).bad == [
        (0, "field tags: wanted int, found ['a', 'b']")
    ]
    assert read(written(RECORD), **{"value.schema": "note STRING NOT NULL"}).bad == [
        (0, "field note: is NOT NULL, but null")
    ]


def test_null_is_refused_at_any_depth() -> None:
    kinds = {
        "sizes": T.MapType(T.StringType(), T.DoubleType(), valueContainsNull=False),
        "who": struct_of("who STRUCT<name: STRING NOT NULL, nick: STRING NOT NULL>")["who"].dataType,
    }
    for name, kind in kinds.items():
        options = ValueOptions("avro", avro_schema=json.dumps(ORDER))
        decoder = decoder_of(options, T.StructType([T.StructField(name, kind)]))
        found = decoder.decode(pa.array([None, written(RECORD), None], pa.binary()))
        assert found.columns.num_rows == 2
        assert found.bad == [(1, f"field {name}: something in it is NOT NULL, but null")]


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ('"long"', "not a record"),
        ('{"type": "record", "name": "R", "fields": [{"name": "x", "type": ["int", "string"]}]}', "x may be one of 2"),
        ('{"type": "record", "name": "R", "fields": [{"name": "x", "type": ["null", "R"]}]}', "x contains itself"),
        ('{"type": "record", "name": "R", "fields": [{"name": "x", "type": "Q"}]}', "x has the unknown type Q"),
        ('{"type": "record", "name": "R", "fields": [{"name": "x"}]}', "x has no type"),
    ],
)
def test_a_schema_that_gives_no_columns_is_refused(schema: str, said: str) -> None:
    with pytest.raises(BadOption) as told:
        struct_of_avro(schema)
    assert said in str(told.value)


def test_without_fastavro_the_remedy_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastavro", None)
    with pytest.raises(Missing, match=r"pip install 'penstock\[avro\]'"):
        read(b"")
