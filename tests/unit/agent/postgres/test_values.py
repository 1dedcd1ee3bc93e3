"""Values as Postgres writes them, and the JSON that they become."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.agent.inputs.postgres.records.values import OIDS, converter, unavailable


@pytest.mark.parametrize(
    ("type_name", "text", "value"),
    [
        ("bool", "t", True),
        ("bool", "f", False),
        ("int8", "-9223372036854775808", -(2**63)),
        ("float8", "0.1", 0.1),
        ("float8", "1e-300", 1e-300),
        ("float8", "NaN", "NaN"),
        ("float4", "-Infinity", "-Infinity"),
        ("numeric", "1.50", "1.50"),
        ("date", "2024-02-29", "2024-02-29"),
        ("date", "infinity", "infinity"),
        ("timestamp", "2024-02-29 23:59:59.000001", "2024-02-29T23:59:59.000001"),
        ("timestamp", "0044-03-15 12:00:00 BC", "0044-03-15 12:00:00 BC"),
        ("timestamptz", "2024-02-29 23:59:59+00", "2024-02-29T23:59:59Z"),
        ("interval", "P1DT2H", "P1DT2H"),
        ("bytea", "\\xdeadbeef", "3q2+7w=="),
        ("bytea", "\\x", ""),
        ("jsonb", '{"a": 1}', '{"a": 1}'),
        ("uuid", "0b6c…", "0b6c…"),
        ("mood", "happy", "happy"),
        ("_int4", "{1,NULL,-3}", [1, None, -3]),
        ("_int4", "{}", []),
        ("_int4", "{{1,2},{3,4}}", [[1, 2], [3, 4]]),
        ("_int4", "[0:1]={1,2}", [1, 2]),
        ("_bool", "{t,f}", [True, False]),
        ("_text", '{"a,b","NULL",NULL,"say \\"hi\\" \\\\"}', ["a,b", "NULL", None, 'say "hi" \\']),
        ("_timestamptz", '{"2024-02-29 23:59:59+00"}', ["2024-02-29T23:59:59Z"]),
        ("_text", "{never closed", "{never closed"),
        ("_text", "{a}b", "{a}b"),
    ],
)
def test_a_value_is_what_json_has_for_it(type_name: str, text: str, value: Any) -> None:
    assert converter(type_name)(text) == value
    assert type(converter(type_name)(text)) is type(value)


def written(value: Any) -> str:
    """As Postgres writes an array of texts."""
    if isinstance(value, list):
        return "{" + ",".join(map(written, value)) + "}"
    if value is None:
        return "NULL"
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


LISTS = st.recursive(st.lists(st.none() | st.text(max_size=6), max_size=4), lambda inner: st.lists(inner, max_size=3))


@given(LISTS)
def test_an_array_is_the_list_that_it_was(value: list[Any]) -> None:
    assert converter("_text")(written(value)) == value


@given(st.sampled_from([name for name in OIDS.values() if name.startswith("_")]), st.text('{},"\\ab1\n ', max_size=12))
def test_what_is_no_array_is_handed_on(type_name: str, text: str) -> None:
    try:
        found = converter(type_name)(text)
    except ValueError:
        # An element of another type than the array's: the log would not hold it.
        return
    assert found == text or isinstance(found, list)


def test_what_stands_for_a_large_value_is_of_the_kind_of_its_column() -> None:
    """As Debezium has it, so that whoever reads columns of kinds can read it."""
    assert unavailable("text") == unavailable("jsonb") == "__debezium_unavailable_value"
    assert base64.b64decode(unavailable("bytea")) == b"__debezium_unavailable_value"
    assert unavailable("_text") == unavailable("_numeric") == ["__debezium_unavailable_value"]
    assert bytes(unavailable("_int4")) == bytes(unavailable("_float8")) == b"__debezium_unavailable_value"
