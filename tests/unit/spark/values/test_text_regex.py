"""Values as text, as bytes, and taken apart by a pattern."""

from __future__ import annotations

from datetime import UTC, datetime

from tests.unit.spark.values.decoding_words import decoded, rows


def test_text_is_checked() -> None:
    found = decoded({"value.format": "text"}, "é".encode(), b"a\xff", None, b"")
    assert rows(found) == [{"value": "é"}, {"value": None}, {"value": ""}]
    assert found.bad == [(1, "not UTF-8: byte 0xff at 1, in a\ufffd")]


def test_raw_bytes_cannot_be_wrong() -> None:
    found = decoded({"value.format": "raw"}, b"\xff", None)
    assert (rows(found), found.bad) == ([{"value": b"\xff"}, {"value": None}], [])


LINE = r"^(?P<when>\S+) (?P<level>[A-Z]+)(?: in (?P<ms>\d+) ms)?: (?P<text>.*)$"


def test_groups_become_columns() -> None:
    found = decoded(
        {"value.format": "regex", "value.regex.pattern": LINE}, b"now INFO in 5 ms: hello", b"now WARN: ", None
    )
    assert rows(found) == [
        {"when": "now", "level": "INFO", "ms": "5", "text": "hello"},
        {"when": "now", "level": "WARN", "ms": "", "text": ""},
        {"when": None, "level": None, "ms": None, "text": None},
    ]


def test_groups_take_the_types_of_a_schema() -> None:
    found = decoded(
        {"value.format": "regex", "value.regex.pattern": LINE, "value.schema": "ms INT, when TIMESTAMP, level STRING"},
        b"2026-03-04T05:06:07Z INFO in 5 ms: x",
        b"nothing of the kind",
        b"2026-03-04T05:06:07Z INFO: x",
        b"later INFO: x",
        b"\xff",
    )
    when = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
    assert rows(found) == [{"ms": 5, "when": when, "level": "INFO"}, {"ms": None, "when": when, "level": "INFO"}]
    assert [row for row, _ in found.bad] == [1, 3, 4]
    assert found.bad[0][1].endswith("in nothing of the kind")
    assert found.bad[1][1] == "field when: wanted timestamp, found later"
