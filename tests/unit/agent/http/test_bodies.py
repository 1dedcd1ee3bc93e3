"""Events out of request bodies."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.agent.inputs.http.bodies import VALUES_MAX, BodyFormat, Refused, format_of, read_body

LIMIT = 100
FORMATS: tuple[BodyFormat, ...] = ("json", "ndjson", "raw", "lines")


def refusal(body: bytes, format: BodyFormat) -> str:
    with pytest.raises(Refused) as refused:
        read_body(body, format, LIMIT)
    return f"{refused.value.status} {refused.value}"


def test_an_object_or_an_array_of_objects() -> None:
    one = read_body(b' {"a": 1} ', "json", LIMIT)
    assert (one.values, one.fields) == ([b'{"a": 1}'], [{"a": 1}])
    two = read_body(b'[{"a": 1},\n {"b": [null, true, 1.5]}]', "json", LIMIT)
    assert (two.values, two.fields) == (
        [b'{"a": 1}', b'{"b": [null, true, 1.5]}'],
        [{"a": 1}, {"b": [None, True, 1.5]}],
    )
    assert read_body(b"[]", "json", LIMIT).values == []


def test_json_by_lines() -> None:
    found = read_body(b'{"a": 1}\r\n\n{"b": 2}', "ndjson", LIMIT)
    assert (found.values, found.fields) == ([b'{"a": 1}', b'{"b": 2}'], [{"a": 1}, {"b": 2}])


def test_lines_and_raw() -> None:
    found = read_body(b"a\r\n\nb\n" + b"x" * 101, "lines", LIMIT)
    assert (found.values, found.fields, found.cut) == ([b"a", b"b", b"x" * 100], None, [2])
    assert read_body(b"a\nb", "raw", LIMIT).values == [b"a\nb"]


@pytest.mark.parametrize(
    ("body", "format", "wanted"),
    [
        (b'{"a": 1}\n{"b": }\n', "ndjson", "400 line 2, column 7: this is not JSON"),
        (b'{"a": 1}\n\n[1]', "ndjson", "400 line 3, column 1: an event must be a JSON object"),
        (b'{"a": 1}\n{"b', "ndjson", "400 line 2, column 4: this is not JSON: Input data was truncated"),
        (b'{\n"a": oops}', "json", "400 line 2, column 6: this is not JSON"),
        (b'[{"a": 1}, 2]', "json", "400 event 2: an event must be a JSON object"),
        (b'[{"a": 1}, {"b": }]', "json", "400 line 1, column 18: this is not JSON"),
        (b'"text"', "json", "400 line 1, column 1: an event must be a JSON object"),
        (b"", "json", "400 line 1, column 1: this is not JSON"),
        (b"", "raw", "400 the body is empty"),
        (b'{"a": ' * 100_000, "ndjson", "400 line 1, column 1: it is nested too deeply"),
        (b'{"a":' + b"[" * 100_000, "json", "400 line 1, column 1: it is nested too deeply"),
        (b'{"a": "\xff"}', "json", "400 "),
        (b'{"a": "\\ud800"}', "json", "400 "),
        (b"[" + b"{}," * VALUES_MAX + b"{}]", "json", "413 "),
        (b"\n" * (VALUES_MAX + 1), "lines", "413 "),
    ],
)
def test_what_is_refused_and_where_it_is_wrong(body: bytes, format: BodyFormat, wanted: str) -> None:
    assert refusal(body, format).startswith(wanted)


def test_the_format_follows_the_content_type() -> None:
    assert [
        format_of(kind)
        for kind in ("application/json; charset=utf-8", "APPLICATION/JSON", "application/cloudevents+json")
    ] == ["json"] * 3
    assert [format_of(kind) for kind in ("application/x-ndjson", "application/jsonl")] == ["ndjson"] * 2
    assert [format_of(kind) for kind in ("", "application/octet-stream")] == ["raw"] * 2
    assert [format_of(kind) for kind in ("text/plain", "text/csv;x=y")] == ["lines"] * 2
    assert format_of("application/x-www-form-urlencoded") is None


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=5,
)


@given(st.lists(st.dictionaries(st.text(max_size=5), VALUES, max_size=2), max_size=4))
def test_what_was_encoded_is_understood(events: list[dict[str, object]]) -> None:
    lines = [json.dumps(event).encode() for event in events]
    assert read_body(b"\n".join(lines), "ndjson", LIMIT).fields == events
    assert read_body(b"[" + b",".join(lines) + b"]", "json", LIMIT).fields == events
    assert read_body(b"[" + b",".join(lines) + b"]", "json", LIMIT).values == lines


@given(st.binary(max_size=100), st.sampled_from(FORMATS))
def test_no_bytes_raise_anything_but_a_refusal(body: bytes, format: BodyFormat) -> None:
    try:
        found = read_body(body, format, LIMIT)
    except Refused:
        return
    assert found.fields is None or len(found.fields) == len(found.values)
