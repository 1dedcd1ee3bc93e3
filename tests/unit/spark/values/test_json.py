"""What JSON values mean, and what is said of those that mean nothing."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from penstock.spark.values import json as fast
from tests.unit.spark.values.decoding_words import decoded, rows


def read(schema: str, *values: bytes | None, **more: str) -> Any:
    return decoded({"value.format": "json", "value.schema": schema, **more}, *values)


def one(schema: str, value: bytes, **more: str) -> Any:
    """The only column of the only row."""
    found = read(schema, value, **more)
    assert found.bad == []
    return rows(found)[0].popitem()[1]


def why(schema: str, value: bytes | None) -> str:
    """What is said of a value that is bad."""
    found = read(schema, value)
    assert found.columns.num_rows == 0
    return str(found.bad[0][1])


def test_documents_become_rows() -> None:
    found = read(
        "id BIGINT, who STRUCT<name: STRING, tags: ARRAY<STRING>>, by MAP<STRING, DOUBLE>",
        b'{"id": 1, "who": {"name": "Ada", "tags": ["a", null]}, "by": {"x": 1, "y": 2.5}, "more": [1, {}]}',
        b' {"who": null, "by": {}}\n',
    )
    assert found.good is None
    assert rows(found) == [
        {"id": 1, "who": {"name": "Ada", "tags": ["a", None]}, "by": [("x", 1.0), ("y", 2.5)]},
        {"id": None, "who": None, "by": []},
    ]


def test_a_tombstone_is_a_row_of_nulls() -> None:
    assert rows(read("a INT, b STRUCT<c: INT>", None, b'{"a": 1}', None)) == [
        {"a": None, "b": None},
        {"a": 1, "b": None},
        {"a": None, "b": None},
    ]


def test_good_rows_keep_their_order_and_their_numbers() -> None:
    values = [b'{"a": %d}' % row if row % 7 else b"?" for row in range(50)]
    values[10] = b'\xef\xbb\xbf{"a": 10}'
    found = read("a INT", *values)
    assert found.columns.column("a").to_pylist() == [row for row in range(50) if row % 7]
    assert found.good.to_pylist() == found.columns.column("a").to_pylist()
    assert [row for row, _ in found.bad] == list(range(0, 50, 7))


def test_chunks_are_joined_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fast, "CHUNK_ROWS", 3)
    values = [b'{"a": %d}' % row if row != 4 else b"[]" for row in range(8)]
    found = read("a INT", *values)
    assert found.columns.column("a").to_pylist() == [0, 1, 2, 3, 5, 6, 7]
    assert found.bad == [(4, "wanted one JSON object, found []")]


def test_no_values_are_no_rows() -> None:
    assert read("a INT, b STRUCT<c: ARRAY<INT>>").columns.num_rows == 0


@pytest.mark.parametrize(
    ("schema", "value", "found"),
    [
        ("a STRING", b'{"a": 12}', "12"),
        ("a STRING", b'{"a": 1.50}', "1.50"),
        ("a STRING", b'{"a": true}', "true"),
        ("a STRING", b'{"a": {"x" : [1]}}', '{"x" : [1]}'),
        ("a BIGINT", b'{"a": 1, "a": 2}', 2),
        ("a BIGINT", b'{"a": "x", "a": 2}', 2),
        ("a BIGINT", b'{"\\u0061": 3}', 3),
        ("`a b.c` BIGINT", b'{"a b.c": 3}', 3),
        ("a DOUBLE", b'{"a": 3}', 3.0),
        ("a DOUBLE", b'{"a": 1e400}', float("inf")),
        ("a DOUBLE", b'{"a": "-Infinity"}', float("-inf")),
        ("a DOUBLE", b'{"a": -Infinity, "b": "NaN"}', float("-inf")),
        ("a FLOAT", b'{"a": 1e39}', float("inf")),
        ("a DECIMAL(6,2)", b'{"a": 1.255}', Decimal("1.26")),
        ("a DECIMAL(6,2)", b'{"a": "-1.255"}', Decimal("-1.26")),
        (
            "a DECIMAL(38,0)",
            b'{"a": 12345678901234567890123456789012345678}',
            Decimal("12345678901234567890123456789012345678"),
        ),
        ("a BINARY", b'{"a": "aGk="}', b"hi"),
        ("a DATE", b'{"a": "2026-3-4"}', date(2026, 3, 4)),
        ("a TIMESTAMP", b'{"a": "2026-03-04T05:06:07.5+01:00"}', datetime(2026, 3, 4, 4, 6, 7, 500_000, tzinfo=UTC)),
        ("a TIMESTAMP", b'{"a": "2026-03-04 05:06:07"}', datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)),
        ("a TIMESTAMP", b'{"a": 1772600767}', datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)),
        ("a TIMESTAMP_NTZ", b'{"a": "2026-03-04T05:06:07"}', datetime(2026, 3, 4, 5, 6, 7)),
    ],
)
def test_a_value_means_what_it_means_to_spark(schema: str, value: bytes, found: Any) -> None:
    assert one(schema, value) == found


def test_numbers_in_a_column_of_instants_count_the_unit_that_was_chosen() -> None:
    when = datetime(2026, 3, 4, 5, 6, 7, 123_000, tzinfo=UTC)
    assert one("a TIMESTAMP", b'{"a": 1772600767123}', **{"value.timestamp.unit": "millis"}) == when
    assert one("a TIMESTAMP", b'{"a": 1772600767123000}', **{"value.timestamp.unit": "micros"}) == when


def test_instants_of_all_kinds_may_be_mixed() -> None:
    texts = [
        b'"2026-03-04T05:06:07Z"',
        b'"2026-03-04 05:06:07"',
        b"1772600767",
        b"null",
        b'"2026-03-04T05:06:07.1234567Z"',
    ]
    found = read("a TIMESTAMP", *(b'{"a": %s}' % text for text in texts))
    seconds = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
    assert found.columns.column("a").to_pylist() == [seconds] * 3 + [None, seconds.replace(microsecond=123_456)]


@pytest.mark.parametrize(
    ("schema", "value", "said"),
    [
        ("a BIGINT", b'{"a": 1.5}', "field a: wanted bigint, found 1.5"),
        ("a BIGINT", b'{"a": 1.0}', "field a: wanted bigint, found 1.0"),
        ("a BIGINT", b'{"a": "5"}', 'field a: wanted bigint, found "5"'),
        ("a BIGINT", b'{"a": 9223372036854775808}', "field a: wanted bigint, found 9223372036854775808"),
        ("a TINYINT", b'{"a": 128}', "field a: wanted tinyint, found 128"),
        ("a BOOLEAN", b'{"a": "true"}', 'field a: wanted boolean, found "true"'),
        ("a DOUBLE", b'{"a": "1.5"}', 'field a: wanted double, found "1.5"'),
        ("a DECIMAL(4,2)", b'{"a": 123.4}', "field a: wanted decimal(4,2), found 123.4"),
        ("a DATE", b'{"a": 18000}', "field a: wanted date, found 18000"),
        ("a DATE", b'{"a": "2026-02-30"}', 'field a: wanted date, found "2026-02-30"'),
        ("a TIMESTAMP", b'{"a": 1.5}', "field a: wanted timestamp, found 1.5"),
        ("a TIMESTAMP", b'{"a": ""}', 'field a: wanted timestamp, found ""'),
        (
            "a TIMESTAMP_NTZ",
            b'{"a": "2026-01-01T00:00:00Z"}',
            'field a: wanted timestamp_ntz, found "2026-01-01T00:00:00Z"',
        ),
        ("a BINARY", b'{"a": "aGk"}', 'field a: wanted binary, found "aGk"'),
        ("a STRUCT<b: INT>", b'{"a": []}', "field a: wanted struct, found []"),
        ("a STRUCT<b: ARRAY<INT>>", b'{"a": {"b": [1, "x"]}}', 'field a.b[1]: wanted int, found "x"'),
        ("a ARRAY<STRUCT<b: INT>>", b'{"a": [{}, {"b": {}}]}', "field a[1].b: wanted int, found {}"),
        ("a MAP<STRING, INT>", b'{"a": {"k": "x"}}', 'field a.k: wanted int, found "x"'),
        ("a INT NOT NULL", b"{}", "field a: is NOT NULL, but missing"),
        ("a STRUCT<b: INT NOT NULL>", b'{"a": {"b": null}}', "field a.b: is NOT NULL, but null"),
        ("a INT", b"", "the value is empty, not JSON"),
        ("a INT", b"null", "wanted one JSON object, found null"),
        ("a INT", b'[{"a": 1}]', 'wanted one JSON object, found [{"a": 1}]'),
        ("a INT", b'{"a": 1} {"a": 2}', "trailing characters"),
        ("a INT", b"{'a': 1}", "not JSON"),
        ("a INT", b'{"a": 1', "not JSON: Input data was truncated"),
        ("a INT", b'{"a": 1, "b": "\xff"}', "not UTF-8: byte 0xff at 15"),
        ("a INT", b'{"a": ' + b"[" * 100_000, "nested too deeply"),
        ("a STRING", b'{"a": "\\ud800"}', "not JSON"),
    ],
)
def test_what_is_wrong_is_named(schema: str, value: bytes, said: str) -> None:
    assert said in why(schema, value)


def test_a_tombstone_is_bad_where_null_is_not_allowed() -> None:
    assert why("a INT NOT NULL", None) == "field a: is NOT NULL, but missing"


def test_long_values_are_shortened() -> None:
    assert why("a INT", b'{"a": "%s"}' % (b"x" * 5000)).endswith("… (5,002 characters)")


def test_a_slice_of_an_array_is_decoded_as_such() -> None:
    from penstock.spark.values.json import JsonDecoder
    from penstock.spark.values.options import ValueOptions

    values = pa.array([b"?", b'{"a": 1}', b'{"a": 2}', b"?"], pa.binary()).slice(1, 2)
    found = JsonDecoder(pa.schema([("a", pa.int32())]), ValueOptions("json", schema="given")).decode(values)
    assert (found.columns.to_pylist(), found.good, found.bad) == ([{"a": 1}, {"a": 2}], None, [])
