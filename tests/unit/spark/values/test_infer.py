"""A schema from a sample says how sure it is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from penstock.spark.errors import BadOption
from penstock.spark.values.ddl import struct_of
from penstock.spark.values.infer import infer_schema
from penstock.spark.values.inference_report import InferenceReport
from penstock.spark.values.options import ValueOptions

JSON = ValueOptions("json", schema="infer")
CSV = ValueOptions("csv", schema="infer")


def inferred(*documents: Any) -> InferenceReport:
    struct, report = infer_schema(JSON, [json.dumps(document).encode() for document in documents])
    assert struct_of(report.to_ddl()) == struct
    return report


def notes(report: InferenceReport) -> dict[str, str]:
    return {field.path: field.note for field in report.fields if field.note}


def test_types_are_merged() -> None:
    report = inferred(
        {"i": 1, "x": 1, "big": 1 << 70, "s": "a", "b": True, "n": None, "o": {"p": 1}, "l": [1, None]},
        {"i": 2, "x": 0.5, "big": 1, "b": None, "o": {"q": "z"}, "l": [0.5]},
    )
    assert report.to_ddl() == (
        "i BIGINT, x DOUBLE, big DECIMAL(38,0), s STRING, b BOOLEAN, n STRING, o STRUCT<p: BIGINT, q: STRING>, "
        "l ARRAY<DOUBLE>"
    )
    assert {field.path: field.share for field in report.fields if field.share != "always"} == {
        "s": "50.0 %",
        "n": "50.0 %",
        "o.p": "50.0 %",
        "o.q": "50.0 %",
    }


def test_a_conflict_becomes_a_string_with_a_note() -> None:
    report = inferred({"a": 1, "b": {"c": 1}}, {"a": "x", "b": [1]}, {"a": "y"})
    assert report.to_ddl() == "a STRING, b STRING"
    assert notes(report) == {"a": "conflict: 2 string, 1 bigint", "b": "conflict: 1 object, 1 array"}
    assert [field.path for field in report.conflicts] == ["a", "b"]


def test_texts_that_look_like_times_stay_texts_and_are_noted() -> None:
    report = inferred({"t": "2026-03-04T05:06:07Z", "d": "2026-03-04", "x": "2026-03-04"}, {"t": "", "x": "soon"})
    assert report.to_ddl() == "t STRING, d STRING, x STRING"
    assert notes(report) == {"t": "looks like TIMESTAMP", "d": "looks like DATE"}


def test_names_that_spark_cannot_tell_apart_are_left_out() -> None:
    report = inferred({"id": 1, "ID": 2, "": 3, "a b": 4, "e": {}})
    assert report.to_ddl() == "id BIGINT, `a b` BIGINT, e STRING"
    assert notes(report) == {
        "ID": "left out: differs from id only in case",
        "": "left out: it has no name",
        "e": "always an empty object: kept as its text",
    }


def test_an_object_with_many_rare_names_is_a_map() -> None:
    report = inferred(*({"by": {f"k{at}": at, f"j{at}": 0.5}} for at in range(60)))
    assert report.to_ddl() == "by MAP<STRING, DOUBLE>"
    assert notes(report) == {"by": "120 names, each rare: a map; 60 bigint, 60 double"}


def test_fields_of_csv_are_numbered() -> None:
    lines = [b"1,x,2.5,true,2026-03-04,2026-03-04 05:06:07,", b'2,"y, z",3,FALSE,2026-03-05,2026-03-05,', b'"', None]
    struct, report = infer_schema(CSV, lines)
    assert struct_of(report.to_ddl()) == struct
    assert report.to_ddl() == ("_c0 BIGINT, _c1 STRING, _c2 DOUBLE, _c3 BOOLEAN, _c4 DATE, _c5 TIMESTAMP, _c6 STRING")
    assert (report.looked_at, report.unreadable) == (4, 1)


def test_the_report_reads_well() -> None:
    _, report = infer_schema(JSON, [b'{"id": 1, "who": {"name": "Ada"}, "mixed": 1}', b'{"mixed": "x"}', b"oops", None])
    assert str(report).splitlines() == [
        "4 records looked at, 1 could not be read; the first: Expecting value: line 1 column 1 (char 0), in oops",
        "  field     type                  present  example  note",
        "  id        BIGINT                50.0 %   1",
        "  who       STRUCT<name: STRING>  50.0 %",
        '  who.name  STRING                always   "Ada"',
        "  mixed     STRING                always   1        conflict: 1 bigint, 1 string",
        "value.schema = id BIGINT, who STRUCT<name: STRING>, mixed STRING",
    ]


@pytest.mark.parametrize(
    ("sample", "said"),
    [
        ([], "there are none"),
        ([None, b"x"], "no columns in 2 records; the first says"),
        ([b"{}"], "in 1 records. Give"),
    ],
)
def test_nothing_to_infer_from_is_told(sample: list[bytes | None], said: str) -> None:
    with pytest.raises(BadOption) as told:
        infer_schema(JSON, sample)
    assert said in str(told.value)
