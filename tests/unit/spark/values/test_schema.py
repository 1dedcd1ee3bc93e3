"""The columns a format gives, and the Arrow types Spark expects for them."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema

from penstock.spark.errors import BadOption
from penstock.spark.values.ddl import ddl_of, struct_of
from penstock.spark.values.decoding import recipe_of
from penstock.spark.values.options import ValueOptions
from penstock.spark.values.schema import arrow_schema, columns_of


def test_arrow_types_are_those_spark_compares_with() -> None:
    struct = struct_of(
        "id BIGINT NOT NULL COMMENT 'key', t TIMESTAMP, n TIMESTAMP_NTZ, d DATE, x DECIMAL(9,2), b BINARY, f FLOAT,"
        "s STRUCT<a: ARRAY<INT>, m: MAP<STRING, DOUBLE>>, ok BOOLEAN, y TINYINT, z SMALLINT"
    )
    assert arrow_schema(struct).equals(to_arrow_schema(struct, timezone="UTC"), check_metadata=True)
    assert arrow_schema(struct).field("t").type == pa.timestamp("us", tz="UTC")
    assert arrow_schema(struct).field("id").nullable is False


@pytest.mark.parametrize(
    ("options", "ddl"),
    [
        (ValueOptions("text"), "value STRING"),
        (ValueOptions("raw"), "value BINARY"),
        (ValueOptions("regex", regex_pattern="(?P<b>x)(?P<a>y)"), "b STRING, a STRING"),
        (ValueOptions("json", schema="id bigint, tags array<string>"), "id BIGINT, tags ARRAY<STRING>"),
    ],
)
def test_the_columns_of_a_format(options: ValueOptions, ddl: str) -> None:
    assert ddl_of(columns_of(options)) == ddl


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (ValueOptions("json", schema="a variant"), "column a is variant, which json values cannot fill"),
        (ValueOptions("json", schema="s struct<x: array<interval day>>"), "column s.x[] is interval day"),
        (ValueOptions("json", schema="m map<int,string>"), "column m is map<int,string>"),
        (ValueOptions("json", schema="s struct<>"), "column s is struct<>"),
        (ValueOptions("csv", schema="a array<int>"), "column a is array<int>, which csv values cannot fill"),
        (ValueOptions("regex", schema="b int", regex_pattern="(?P<a>x)"), "no group of that name"),
    ],
)
def test_columns_that_a_format_cannot_fill_are_refused(options: ValueOptions, said: str) -> None:
    with pytest.raises(BadOption) as told:
        columns_of(options)
    assert said in str(told.value)


def test_a_recipe_refuses_them_too() -> None:
    with pytest.raises(BadOption):
        recipe_of(ValueOptions("csv", schema="given"), struct_of("a array<int>"))
