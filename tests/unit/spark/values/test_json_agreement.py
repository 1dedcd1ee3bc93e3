"""Whatever the fast path takes, the judge takes too, with the same meaning; together they lose and mix up nothing."""

from __future__ import annotations

import base64
import json
from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.spark.values.json import JsonDecoder, batch_of_rows
from penstock.spark.values.json_truth import JsonTruth, Wrong
from penstock.spark.values.options import ValueOptions
from tests.properties import examples

OPTIONS = ValueOptions("json", schema="given")

SCALARS = [
    pa.bool_(),
    pa.int8(),
    pa.int16(),
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.string(),
    pa.binary(),
    pa.date32(),
    pa.timestamp("us", "UTC"),
    pa.timestamp("us"),
    pa.decimal128(10, 2),
    pa.decimal128(38, 18),
]

NUMBERS = st.one_of(
    st.integers(-300, 300).map(str),
    st.integers(-(1 << 65), 1 << 65).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.sampled_from(["1.0", "1e2", "1e400", "-1e400", "-0", "-0.0", "1.50", "0.005", "12345678901234567890.5", "1E+2"]),
    st.sampled_from(["NaN", "Infinity", "-Infinity"]),
    st.decimals(allow_nan=False, allow_infinity=False, places=3).map(str),
    st.sampled_from([str(edge + by) for edge in (1 << 7, 1 << 15, 1 << 31, 1 << 63) for by in (-1, 0)]),
    st.sampled_from([str(-edge + by) for edge in (1 << 7, 1 << 15, 1 << 31, 1 << 63) for by in (-1, 0)]),
)

INSTANTS = st.builds(
    "{}{}{}{}".format,
    st.one_of(
        st.dates().map(str),
        st.sampled_from(["2024-02-29", "2023-02-29", "2024-2-9", "0000-01-01", "2024", "2024-13-01", "12024-01-01"]),
    ),
    st.sampled_from(["", "T00:00:00", " 23:59:59", "T24:00:00", " 7:5", "T07", " 10:00:60", "T10:00"]),
    st.sampled_from(["", ".1", ".123456", ".1234567", ".", ".000000001"]),
    st.sampled_from(["", "Z", "+02:00", "-0330", "+5", " Europe/Berlin", "UTC", "+25:00", " Z", "z"]),
)

TEXTS = st.one_of(
    st.text(max_size=8),
    INSTANTS,
    INSTANTS,
    st.binary(max_size=6).map(lambda found: base64.b64encode(found).decode()),
    st.sampled_from(["", "NaN", "INF", "-Infinity", "1.25", "1e2", "true", "null", " 1 ", "aGk", "1_000", "}{", "nan"]),
)


@st.composite
def types(draw: st.DrawFn, depth: int = 2) -> pa.DataType:
    shape = draw(st.sampled_from(["scalar"] * 4 + (["struct", "list", "map"] if depth else [])))
    if shape == "scalar":
        return draw(st.sampled_from(SCALARS))
    nullable = draw(st.sampled_from([True, True, True, False]))
    inner = draw(types(depth=depth - 1))
    if shape == "list":
        return pa.list_(pa.field("element", inner, nullable=nullable))
    if shape == "map":
        return pa.map_(pa.field("key", pa.string(), nullable=False), pa.field("value", inner, nullable=nullable))
    return pa.struct([pa.field("x", inner, nullable=nullable), pa.field("y y", draw(types(depth=depth - 1)))])


@st.composite
def schemas(draw: st.DrawFn) -> pa.Schema:
    names = draw(st.lists(st.sampled_from(["a", "B", "c d", "é", "class", "e.f"]), min_size=1, max_size=4, unique=True))
    return pa.schema(
        [pa.field(name, draw(types()), nullable=draw(st.sampled_from([True, True, False]))) for name in names]
    )


def spelled(text: str) -> str:
    return json.dumps(text)


ANYTHING = st.recursive(
    st.one_of(NUMBERS, TEXTS.map(spelled), st.sampled_from(["true", "false", "null"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda found: "[" + ", ".join(found) + "]"),
        st.lists(st.tuples(st.sampled_from(["a", "x", "y y", "z"]), inner), max_size=3).map(
            lambda found: "{" + ",".join(f"{spelled(name)} :{item}" for name, item in found) + "}"
        ),
    ),
    max_leaves=5,
)


@st.composite
def fitting(draw: st.DrawFn, kind: pa.DataType) -> str:
    """A text that often fits the type."""
    if draw(st.integers(0, 11)) == 0:
        return draw(st.one_of(st.just("null"), ANYTHING))
    t = pa.types
    if t.is_struct(kind):
        fields = [f"{spelled(field.name)}:{draw(fitting(field.type))}" for field in kind]
        return "{" + ",".join(draw(st.permutations(fields))[: draw(st.integers(1, 3))]) + "}"
    if t.is_list(kind):
        return "[" + ",".join(draw(fitting(kind.value_type)) for _ in range(draw(st.integers(0, 3)))) + "]"
    if t.is_map(kind):
        keys = draw(st.lists(st.text(max_size=2), max_size=3))
        return "{" + ",".join(f"{spelled(key)}:{draw(fitting(kind.item_type))}" for key in keys) + "}"
    if t.is_boolean(kind):
        return draw(st.sampled_from(["true", "false"]))
    if t.is_integer(kind):
        return str(draw(st.integers(-128, 127)))
    if t.is_floating(kind) or t.is_decimal(kind):
        return draw(NUMBERS)
    if t.is_date(kind) or t.is_timestamp(kind):
        return draw(st.one_of(INSTANTS.map(spelled), INSTANTS.map(spelled), st.integers(-(1 << 45), 1 << 45).map(str)))
    if t.is_binary(kind):
        return spelled(base64.b64encode(draw(st.binary(max_size=5))).decode())
    return draw(st.one_of(TEXTS.map(spelled), NUMBERS))


@st.composite
def documents(draw: st.DrawFn, schema: pa.Schema) -> bytes | None:
    how = draw(st.integers(0, 19))
    if how == 0:
        return None
    if how == 1:
        return draw(
            st.one_of(ANYTHING.map(str.encode), st.binary(max_size=10), st.sampled_from([b"", b" ", b"null", b"\n"]))
        )
    fields = [f"{spelled(field.name)}: {draw(fitting(field.type))}" for field in schema]
    fields += [f'"extra":{draw(ANYTHING)}'] if draw(st.booleans()) else []
    fields += fields[:1] if how == 2 else []
    document = ("{" + ",".join(fields) + "}").encode()
    match how:
        case 3:
            return b"\xef\xbb\xbf" + document
        case 4:
            return document + draw(st.sampled_from([b"{}", b" {}", b"\n", b"\r\n", b",", b"\x00", b" null", b"x"]))
        case 5:
            return document[: draw(st.integers(0, len(document)))]
        case 6:
            at = draw(st.integers(0, len(document)))
            return (
                document[:at]
                + draw(st.sampled_from([b"\xff", b"\n", b"\x00", b'"', b"\\", b"\xed\xa0\x80"]))
                + document[at:]
            )
    return document


@st.composite
def cases(draw: st.DrawFn) -> tuple[pa.Schema, list[bytes | None]]:
    schema = draw(schemas())
    return schema, draw(st.lists(documents(schema), min_size=1, max_size=8))


def judged(schema: pa.Schema, values: list[bytes | None]) -> tuple[pa.RecordBatch, list[tuple[int, str]]]:
    truth = JsonTruth(schema, 1_000_000)
    rows: list[dict[str, Any]] = []
    bad = []
    for row, value in enumerate(values):
        try:
            rows.append(truth.row(value))
        except Wrong as why:
            bad.append((row, str(why)))
    return batch_of_rows(rows, schema), bad


def told(column: pa.Array) -> list[Any]:
    """What a column says, with years that Python's datetime does not know and with nan equal to itself."""
    t, kind = pa.types, column.type
    valid = column.is_valid().to_pylist()
    if t.is_temporal(kind):
        return column.cast(pa.int32() if t.is_date(kind) else pa.int64()).to_pylist()
    if t.is_floating(kind):
        return [repr(item) for item in column.to_pylist()]
    if t.is_struct(kind):
        fields = [told(column.field(index)) for index in range(kind.num_fields)]
        return [row if there else None for row, there in zip(zip(*fields, strict=True), valid, strict=True)]
    if t.is_list(kind):
        return [told(column[row].values) if there else None for row, there in enumerate(valid)]
    if t.is_map(kind):
        items = [(column[row].values if there else None) for row, there in enumerate(valid)]
        return [None if item is None else (told(item.field(0)), told(item.field(1))) for item in items]
    return column.to_pylist()


@settings(max_examples=examples(200), deadline=None, suppress_health_check=list(HealthCheck))
@given(cases())
def test_the_fast_path_agrees_with_the_judge(case: tuple[pa.Schema, list[bytes | None]]) -> None:
    schema, values = case
    decoded = JsonDecoder(schema, OPTIONS).decode(pa.array(values, pa.binary()))
    columns, bad = judged(schema, values)
    assert decoded.bad == bad
    decoded.columns.validate(full=True)
    assert decoded.columns.schema.equals(schema)
    for name in schema.names:
        assert told(decoded.columns.column(name)) == told(columns.column(name))
    refused = {row for row, _ in bad}
    assert decoded.good is None if not bad else decoded.good.to_pylist() == sorted(set(range(len(values))) - refused)
