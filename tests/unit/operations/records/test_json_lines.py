"""Records as JSON lines, and back without loss."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.operations.records.json_lines import read_line, read_lines, write_line
from penstock.operations.records.reading import BadInput, InputRecord
from tests.unit.operations.records.samples import Chunks, Sample, records


@given(st.lists(records, max_size=5), st.integers(1, 40))
def test_lines_read_back_what_was_written(given_records: list[Sample], chunk: int) -> None:
    data = b"".join(map(write_line, given_records))
    assert list(read_lines(Chunks(data, chunk))) == [
        InputRecord(r.topic, r.partition, r.key, r.value, list(r.headers), r.timestamp) for r in given_records
    ]


@given(records)
def test_a_record_is_one_line_of_utf_8(record: Sample) -> None:
    line = write_line(record)
    assert line.count(b"\n") == 1
    assert json.loads(line)["offset"] == record.offset


def test_the_shape() -> None:
    record = Sample("t", 1, 7, 99, 0, 4, b"\xff", None, (("h", b"1"), ("h", b"\x80"), ("n", None)))
    assert json.loads(write_line(record)) == {
        "topic": "t",
        "partition": 1,
        "offset": 7,
        "timestamp": 99,
        "key_base64": "/w==",
        "value": None,
        "headers": [{"key": "h", "value": "1"}, {"key": "h", "value_base64": "gA=="}, {"key": "n", "value": None}],
    }
    assert json.loads(write_line(Sample(key=b"", value=b"v")))["key"] == ""
    assert json.loads(write_line(record, meta_only=True)) == {
        "topic": "t",
        "partition": 1,
        "offset": 7,
        "timestamp": 99,
        "key_size": 1,
        "value_size": None,
        "leader_epoch": 4,
        "timestamp_type": "create",
    }
    assert write_line(Sample(), pretty=True).startswith(b'{\n  "topic": "t",\n')


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b'{"value": "v"}', InputRecord(value=b"v")),
        (b'{"value": {"a": [1]}}', InputRecord(value=b'{"a":[1]}')),
        (b'{"key": 7, "value": null}', InputRecord(key=b"7")),
        (b'{"value": "", "headers": {"a": "1"}}', InputRecord(value=b"", headers=[("a", b"1")])),
        (b"{}", InputRecord()),
    ],
)
def test_lines_by_hand_may_be_short(line: bytes, expected: InputRecord) -> None:
    assert read_line(line) == expected


def test_empty_lines_are_passed_over() -> None:
    assert list(read_lines(Chunks(b'\n{"value":"a"}\n\n', 5))) == [InputRecord(value=b"a")]


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        (b"{", "line 1: not JSON"),
        (b"\xff", "line 1: not JSON"),
        (b"[1]", "an object was expected"),
        (b'{"vlaue": 1}', "'vlaue' is no part of a record"),
        (b'{"value_base64": "?"}', "value_base64 is not base64"),
        (b'{"value_base64": 5}', "value_base64 is not base64"),
        (b'{"value": "a", "value_base64": "YQ=="}', "exclude each other"),
        (b'{"value": "\\ud800"}', "half of a surrogate pair"),
        (b'{"topic": 5}', "the topic is no text"),
        (b'{"partition": "5"}', "partition is no whole number"),
        (b'{"timestamp": true}', "timestamp is no whole number"),
        (b'{"headers": 5}', "headers are a list"),
        (b'{"headers": [5]}', "a header is an object"),
    ],
)
def test_lines_that_are_no_record_are_explained(line: bytes, hint: str) -> None:
    with pytest.raises(BadInput) as refused:
        list(read_lines(Chunks(line, 100)))
    assert hint.removeprefix("an ") in str(refused.value)
