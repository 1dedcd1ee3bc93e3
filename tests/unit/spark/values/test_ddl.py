"""Spark's language of types, read without Spark; tests/spark holds it against Spark's own reader."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import types as T  # noqa: N812

from penstock.spark.errors import BadOption
from penstock.spark.values.ddl import ddl_of, struct_of


def test_columns_with_everything() -> None:
    found = struct_of(
        "id BIGINT NOT NULL COMMENT 'it\\'s the id', `a b``c` array<struct<x: int, y decimal(10,2) not null>>,"
        "m map<string, timestamp_ntz>, d decimal, t timestamp without time zone,\n i interval day to second"
    )
    assert found == T.StructType(
        [
            T.StructField("id", T.LongType(), False, {"comment": "it's the id"}),
            T.StructField(
                "a b`c",
                T.ArrayType(
                    T.StructType(
                        [T.StructField("x", T.IntegerType()), T.StructField("y", T.DecimalType(10, 2), nullable=False)]
                    )
                ),
            ),
            T.StructField("m", T.MapType(T.StringType(), T.TimestampNTZType())),
            T.StructField("d", T.DecimalType(10, 0)),
            T.StructField("t", T.TimestampNTZType()),
            T.StructField("i", T.DayTimeIntervalType(0, 3)),
        ]
    )
    assert struct_of(ddl_of(found)) == found


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("boolean", T.BooleanType()),
        ("tinyint", T.ByteType()),
        ("byte", T.ByteType()),
        ("smallint", T.ShortType()),
        ("short", T.ShortType()),
        ("integer", T.IntegerType()),
        ("long", T.LongType()),
        ("real", T.FloatType()),
        ("DOUBLE", T.DoubleType()),
        ("dec(5)", T.DecimalType(5, 0)),
        ("numeric(38, 38)", T.DecimalType(38, 38)),
        ("string", T.StringType()),
        ("string collate utf8_lcase", T.StringType("UTF8_LCASE")),
        ("char(3)", T.CharType(3)),
        ("varchar(30)", T.VarcharType(30)),
        ("binary", T.BinaryType()),
        ("date", T.DateType()),
        ("time", T.TimeType()),
        ("time(3)", T.TimeType(3)),
        ("timestamp", T.TimestampType()),
        ("timestamp_ltz", T.TimestampType()),
        ("timestamp_ntz", T.TimestampNTZType()),
        ("interval", T.CalendarIntervalType()),
        ("interval hour", T.DayTimeIntervalType(1, 1)),
        ("interval year to month", T.YearMonthIntervalType(0, 1)),
        ("variant", T.VariantType()),
        ("void", T.NullType()),
        ("struct<>", T.StructType([])),
        (
            "map<string,array<map<string,int>>>",
            T.MapType(T.StringType(), T.ArrayType(T.MapType(T.StringType(), T.IntegerType()))),
        ),
    ],
)
def test_every_type(text: str, kind: T.DataType) -> None:
    assert struct_of(f"a {text}") == T.StructType([T.StructField("a", kind)])
    assert struct_of(f"a: {text}") == struct_of(f"struct<a: {text}>") == struct_of(f"a {text}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "its end at character 1"),
        ("a", "a type is expected"),
        ("a int b", "'b' at character 7 where the end is expected"),
        ("a int,", "the name of a column"),
        ("a nt", "such as BIGINT"),
        ("a decimal(40)", "1 to 38"),
        ("a decimal(5,6)", "no greater"),
        ("a array<int", "where > is expected"),
        ("a map<string>", "where , is expected"),
        ("a int not", "where NULL is expected"),
        ("a int comment b", "a text in quotes"),
        ("a varchar", "a length"),
        ("a interval month to day", "from large to small"),
        ("a int, A string", "A twice"),
        ("s struct<x: int, X: int>", "s.X twice"),
        ("a int; b int", "'; b int' at character 6"),
    ],
)
def test_a_mistake_is_shown_where_it_is(text: str, said: str) -> None:
    with pytest.raises(BadOption) as told:
        struct_of(text)
    assert said in str(told.value)


NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=6)
TYPES = st.recursive(
    st.sampled_from(
        [T.LongType(), T.StringType(), T.DecimalType(12, 3), T.TimestampType(), T.TimestampNTZType(), T.BinaryType()]
    ),
    lambda inner: st.one_of(
        inner.map(T.ArrayType),
        inner.map(lambda kind: T.MapType(T.StringType(), kind)),
        st.lists(st.tuples(NAMES, inner, st.booleans()), max_size=3, unique_by=lambda field: field[0].lower()).map(
            lambda fields: T.StructType([T.StructField(*field) for field in fields])
        ),
    ),
    max_leaves=6,
)


@given(
    st.lists(st.tuples(NAMES, TYPES, st.booleans()), min_size=1, max_size=4, unique_by=lambda field: field[0].lower())
)
def test_what_is_written_is_read_back(fields: list[tuple[str, T.DataType, bool]]) -> None:
    struct = T.StructType([T.StructField(*field) for field in fields])
    assert struct_of(ddl_of(struct)) == struct
