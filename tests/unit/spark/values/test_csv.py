"""One value is one row of CSV, whatever its neighbours hold."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.spark.values.csv import CsvDecoder
from penstock.spark.values.options import ValueOptions
from tests.properties import examples
from tests.unit.spark.values.decoding_words import decoded, rows


def read(schema: str, *values: bytes | None, **more: str) -> Any:
    named = {f"value.csv.{name}": text for name, text in more.items()}
    return decoded({"value.format": "csv", "value.schema": schema, **named}, *values)


def test_fields_become_columns_of_their_types() -> None:
    found = read(
        "a INT, b STRING, c DOUBLE, d BOOLEAN, e TIMESTAMP, f DATE, g DECIMAL(5,2), h BINARY",
        b'1,"x, ""y""",2.5,TRUE,2026-03-04T05:06:07Z,2026-03-04,1.255,hi',
        b"+2,plain,NaN,false,2026-03-04 05:06:07.5 Europe/Berlin,2026-3-4,1e1,\r\n",
        b",,,,,,,",
    )
    assert found.bad == []
    first, second, third = rows(found)
    assert first == {
        "a": 1,
        "b": 'x, "y"',
        "c": 2.5,
        "d": True,
        "e": datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC),
        "f": date(2026, 3, 4),
        "g": Decimal("1.26"),
        "h": b"hi",
    }
    assert (second["a"], second["d"], second["g"], second["h"]) == (2, False, Decimal("10.00"), None)
    assert second["e"] == datetime(2026, 3, 4, 4, 6, 7, 500_000, tzinfo=UTC)
    assert set(third.values()) == {None}


def test_lines_within_quotes_belong_to_their_value() -> None:
    found = read("a STRING, b INT", b'"x\ny",1', b'"u\r\nv",2\n', b"z,3")
    assert rows(found) == [{"a": "x\ny", "b": 1}, {"a": "u\r\nv", "b": 2}, {"a": "z", "b": 3}]


def test_an_empty_field_is_null_and_a_quoted_one_is_empty() -> None:
    assert rows(read("a STRING, b STRING", b',""')) == [{"a": None, "b": ""}]
    assert rows(read("a STRING, b STRING", b'NULL,"NULL"', null="NULL")) == [{"a": None, "b": "NULL"}]
    assert rows(read("a STRING", b"", b'""', None)) == [{"a": None}, {"a": ""}, {"a": None}]


def test_other_marks() -> None:
    assert rows(read("a STRING, b STRING", b"'x;y';2", delimiter=";", quote="'")) == [{"a": "x;y", "b": "2"}]
    assert rows(read("a STRING, b INT", rb'"x\"y",2', b"z,3", escape="\\")) == [
        {"a": 'x"y', "b": 2},
        {"a": "z", "b": 3},
    ]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (b"1", "wanted 2 columns, found 1, in 1"),
        (b"1,2,3", "wanted 2 columns, found 3, in 1,2,3"),
        (b"", "wanted 2 columns, found an empty line"),
        (b"x,2", "field a: wanted int, found x"),
        (b"0x10,2", "field a: wanted int, found 0x10"),
        (b"1.0,2", "field a: wanted int, found 1.0"),
        (b"2147483648,2", "field a: wanted int, found 2147483648"),
        (b"1,\xff", "not UTF-8: byte 0xff at 2"),
        (b'1,"2', "a quote that is not closed"),
        (b"1,2\n3,4", "more than one line"),
        (b"1,yes", "field b: wanted boolean, found yes"),
        (b"1,1", "field b: wanted boolean, found 1"),
    ],
)
def test_a_bad_line_spoils_no_other(value: bytes, said: str) -> None:
    found = read("a INT, b BOOLEAN", b"1,true", value, b"3,false")
    assert rows(found) == [{"a": 1, "b": True}, {"a": 3, "b": False}]
    assert found.bad[0][0] == 1
    assert said in found.bad[0][1]


def test_what_must_not_be_null_is_not() -> None:
    found = read("a INT NOT NULL, b INT", b"1,", b",2")
    assert found.bad == [(1, "field a: is NOT NULL, but null")]


LINES = st.one_of(
    st.none(),
    st.lists(st.sampled_from(["a", '"', ",", "\n", "\r", "\\", "7", " ", "é"]), max_size=9)
    .map("".join)
    .map(str.encode),
    st.sampled_from([b'x,"', b'"x,y",2', b'a"b,"c', b'd,e"', b"1,2", b'""', b"\xff,1", b'"a\n', b"\\"]),
)


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(LINES, min_size=1, max_size=9), st.sampled_from(["", "\\"]))
def test_a_value_means_the_same_alone_and_among_others(values: list[bytes | None], escape: str) -> None:
    schema = pa.schema([("a", pa.string()), ("b", pa.string())])
    decoder = CsvDecoder(schema, ValueOptions("csv", schema="given", csv_escape=escape))
    together = decoder.decode(pa.array(values, pa.binary()))
    alone = [decoder.decode(pa.array([value], pa.binary())) for value in values]
    assert together.columns.to_pylist() == [row for found in alone for row in found.columns.to_pylist()]
    assert together.bad == [(row, found.bad[0][1]) for row, found in enumerate(alone) if found.bad]
