"""A table of the lake as the source of a query."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.spark.lake.following.stores import followed_id
from penstock.spark.lake.following.versions import NAME_PREFIX
from penstock.spark.lake.opening import open_store
from penstock.spark.lake.options import LakeOptions
from penstock.spark.lake.ranges import RangeKey
from penstock.spark.naming import LAKE_FORMAT
from penstock.spark.pipeline.flow import EARLIEST, Flow, Source
from penstock.spark.pipeline.store_settings import source_settings
from penstock.spark.pipeline.table_sources import table_source_options
from penstock.spark.source.tables import lake_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def table_stream(spark: SparkSession, flow: Flow, source: Source, *, start: str | None = None) -> DataFrame:
    """The table's rows, and then what its versions bring. `start` may be another table, after whose rows it goes on."""
    if start is not None and start.startswith(NAME_PREFIX):
        start = _after(flow, source, start.removeprefix(NAME_PREFIX))
    options = table_source_options(flow, source, start=start)
    return spark.readStream.format(LAKE_FORMAT).options(**options).load()


def _after(flow: Flow, source: Source, filled: str) -> str:
    """The last version of the source that a table has; all rows where it has none."""
    read = open_store(LakeOptions.of(table_source_options(flow, source)))
    read.refresh()
    other = open_store(LakeOptions.of(lake_options(filled, source_settings(flow))))
    other.refresh()
    key = RangeKey(followed_id(read), 0)
    stands = other.committed([key]).get(key)
    return EARLIEST if stands is None else str(stands - 1)
