"""When Spark's own Parquet reader may read a table."""

from __future__ import annotations

from pyspark.sql.types import LongType, StringType, StructType, TimestampType

from penstock.spark.lake.store import TableFile
from penstock.spark.union.snapshot import parquet_will_do

SCHEMA = StructType().add("id", LongType()).add("region", StringType()).add("at", TimestampType())


def will_do(path: str, partition: dict[str, str | None] | None = None, *, in_files: bool = False) -> bool:
    return parquet_will_do([TableFile(path, 1, 1, partition or {})], "/lake/t", SCHEMA, in_files=in_files)


def test_files_without_partitions_will_do() -> None:
    assert will_do("/lake/t/part-1.parquet")
    assert will_do("/lake/t/data/part-1.parquet")


def test_directories_must_say_what_the_table_says() -> None:
    assert will_do("/lake/t/region=eu%2Fwest/f.parquet", {"region": "eu/west"})
    assert will_do("/lake/t/region=__HIVE_DEFAULT_PARTITION__/f.parquet", {"region": None})
    assert not will_do("/lake/t/region=us/f.parquet", {"region": "eu"})
    assert not will_do("/lake/t/f.parquet", {"region": "eu"})
    assert not will_do("/lake/t/region=eu/f.parquet", {})
    assert not will_do("/elsewhere/region=eu/f.parquet", {"region": "eu"})


def test_values_that_text_does_not_carry_over_are_left_to_the_lake() -> None:
    assert not will_do("/lake/t/at=2026-01-01/f.parquet", {"at": "2026-01-01"})


def test_partition_columns_in_the_files_need_no_directories() -> None:
    assert will_do("/lake/t/data/at_day=7/f.parquet", {"at_day": "7"}, in_files=True)


def test_places_that_spark_would_not_find_are_left_to_the_lake() -> None:
    assert not will_do("s3://lake/t/f.parquet")
    assert not will_do("/lake/t/region={eu}/f.parquet", {"region": "{eu}"})
