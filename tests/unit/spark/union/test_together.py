"""Rows of the log with the columns of the table."""

from __future__ import annotations

from pyspark.sql.types import IntegerType, LongType, StringType, StructType

from penstock.spark.union.together import aligned_columns

TABLE = StructType().add("id", LongType()).add("Region", StringType())


def test_the_same_columns_stay_as_they_are() -> None:
    assert aligned_columns(StructType().add("Region", StringType()).add("id", LongType()), TABLE) is None


def test_columns_are_found_by_name_cast_or_null() -> None:
    have = StructType().add("region", StringType()).add("extra", StringType())
    assert aligned_columns(have, TABLE) == ["CAST(NULL AS bigint) AS `id`", "`region` AS `Region`"]
    have = StructType().add("id", IntegerType()).add("Region", StringType())
    assert aligned_columns(have, TABLE) == ["TRY_CAST(`id` AS bigint) AS `id`", "`Region` AS `Region`"]


def test_names_with_quotes_stay_names() -> None:
    odd = StructType().add("a`b", StringType()).add("c", StringType())
    assert aligned_columns(odd, StructType().add("a`b", StringType())) == ["`a``b` AS `a``b`"]
