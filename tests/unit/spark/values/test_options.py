"""Every mistake in the options of values is told before anything runs."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from penstock.spark.errors import BadOption
from penstock.spark.values.options import ValueOptions, group_names


def test_without_a_format_values_stay_as_they_are() -> None:
    assert ValueOptions.of({"subscribe": "orders"}) is None


def test_names_know_no_case_and_others_are_passed_over() -> None:
    found = ValueOptions.of({"Value.Format": " JSON ", "VALUE.SCHEMA": "id BIGINT", "subscribe": "t", "path": "x"})
    assert found == ValueOptions("json", schema="id BIGINT")
    assert pickle.loads(pickle.dumps(found)) == found


def test_each_format_takes_its_own_options() -> None:
    csv = ValueOptions.of(
        {
            "value.format": "csv",
            "value.schema": "a INT",
            "value.csv.delimiter": "\\t",
            "value.csv.quote": "'",
            "value.csv.escape": "\\",
            "value.csv.null": "NULL",
            "value.csv.header": "false",
        }
    )
    assert csv == ValueOptions(
        "csv", schema="a INT", csv_delimiter="\t", csv_quote="'", csv_escape="\\", csv_null="NULL"
    )
    inferred = ValueOptions.of({"value.format": "json", "value.schema": "Infer", "value.schema.sample": "50"})
    assert inferred == ValueOptions("json", schema="infer", sample=50)
    assert inferred.inferred


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"value.schema": "a INT"}, "value.schema is given without value.format"),
        ({"value.format": "jsn", "value.schema": "a INT"}, "did you mean json"),
        ({"value.format": "protobuf"}, "known are json, csv"),
        ({"value.format": "json"}, "needs value.schema"),
        ({"value.format": "csv"}, "needs value.schema"),
        ({"value.format": "json", "value.shema": "a INT"}, "did you mean value.schema"),
        ({"value.format": "text", "value.schema": "a INT"}, "one column, value STRING"),
        ({"value.format": "raw", "value.schema": "a INT"}, "one column, value BINARY"),
        (
            {"value.format": "json", "value.schema": "a INT", "value.csv.quote": "'"},
            "is for value.format=csv, not json",
        ),
        ({"value.format": "json", "value.schema": "a INT", "value.schema.sample": "5"}, "is for value.schema=infer"),
        ({"value.format": "json", "value.schema": "infer", "value.schema.sample": "0"}, "from 1 to"),
        ({"value.format": "json", "value.schema": "infer", "value.schema.sample": "many"}, "from 1 to"),
        ({"value.format": "json", "value.schema": "a INT", "value.timestamp.unit": "hours"}, "seconds, millis, micros"),
        ({"value.format": "csv", "value.schema": "a INT", "value.csv.header": "true"}, "must be false"),
        ({"value.format": "csv", "value.schema": "a INT", "value.csv.delimiter": "::"}, "one ASCII character"),
        ({"value.format": "csv", "value.schema": "a INT", "value.csv.delimiter": "\n"}, "does not end a line"),
        ({"value.format": "csv", "value.schema": "a INT", "value.csv.delimiter": '"'}, "must differ"),
        ({"value.format": "regex"}, "needs value.regex.pattern"),
        ({"value.format": "regex", "value.regex.pattern": "("}, "not a pattern of RE2"),
        ({"value.format": "regex", "value.regex.pattern": "(?P<a>x)(?=y)"}, "not a pattern of RE2"),
        ({"value.format": "regex", "value.regex.pattern": "abc"}, "no named group"),
        ({"value.format": "regex", "value.regex.pattern": "(?P<a>x)(y)"}, "groups without a name"),
        ({"value.format": "regex", "value.regex.pattern": "(?P<a>x)", "value.schema": "infer"}, "for json and csv"),
        ({"value.format": "avro"}, "needs value.avro.schema"),
        ({"value.format": "avro", "value.avro.schema": "/nowhere/a.avsc"}, "neither JSON nor a file"),
        ({"value.format": "avro", "value.avro.schema": "{"}, "not JSON"),
        ({"value.format": "avro", "value.avro.schema": '"long"', "value.avro.wire": "glue"}, "none, or confluent"),
        ({"value.format": "avro", "value.avro.schema": '"long"', "value.avro.schema.id": "7,"}, "numbers with commas"),
        ({"value.format": "avro", "value.avro.schema": '"long"', "value.avro.schema.id": "-1"}, "numbers with commas"),
        (
            {
                "value.format": "avro",
                "value.avro.schema": '"long"',
                "value.avro.schema.id": "7",
                "value.avro.wire": "none",
            },
            "value.avro.wire=none says that values have none",
        ),
    ],
)
def test_a_mistake_is_named(options: dict[str, str], said: str) -> None:
    with pytest.raises(BadOption) as told:
        ValueOptions.of(options)
    assert said in str(told.value)


def test_an_avro_schema_may_be_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "orders.avsc"
    file.write_text('{"type": "record", "name": "Order", "fields": []}')
    for spelled in (str(file), f"file:{file}", f"file://{file}"):
        found = ValueOptions.of({"value.format": "avro", "value.avro.schema": spelled})
        assert found == ValueOptions("avro", avro_schema=file.read_text())


def test_groups_come_in_the_order_of_the_pattern() -> None:
    assert group_names(r"(?P<when>\S+) (?P<level>\w+) (?P<a>.*)") == ("when", "level", "a")
