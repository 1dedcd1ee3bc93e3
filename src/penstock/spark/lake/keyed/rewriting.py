"""Buckets of a table rewritten by Spark's tasks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.spark.lake.keyed.bucket_task import BucketDone, BucketTask
from penstock.spark.lake.keyed.changes import ChangeColumns
from penstock.spark.lake.keyed.spreading import BUCKET, marks, spread, spread_schema
from penstock.spark.lake.parquet_rows import fitted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PARTITIONS = "spark.sql.shuffle.partitions"


def rewrite_buckets(changes: DataFrame, task: BucketTask) -> list[BucketDone]:
    """Every bucket that has changes, or all of them where there are files in no bucket; each by one task."""
    from pyspark.sql.pandas.types import from_arrow_schema

    spark = changes.sparkSession
    columns, wanted = task.columns, from_arrow_schema(spread_schema(task.columns))
    sent = changes.mapInArrow(_spreading(columns, task.buckets), wanted)
    if task.foreign:
        sent = sent.unionByName(spark.createDataFrame(marks(columns, range(task.buckets)), wanted))
    at_once = min(task.buckets, int(spark.conf.get(_PARTITIONS) or 1))
    # Told to repartition, Spark leaves the parts as they are: it would else make one of small ones.
    grouped = sent.repartition(at_once, BUCKET).groupBy(BUCKET)
    told = grouped.applyInArrow(_rewriting(task), "done STRING").collect()
    return [BucketDone.of_json(json.loads(row["done"])) for row in told]


def _spreading(columns: ChangeColumns, buckets: int) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def spread_them(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return spread(batches, columns, buckets)

    return spread_them


def _rewriting(task: BucketTask) -> Any:
    # Spark tells by the types which of its four ways to call a function is meant, and reads them from here.
    def rewrite(key: tuple[pa.Scalar, ...], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        given = (fitted(batch, task.columns.schema, {}) for batch in batches)
        done = task.rewrite(int(key[0].as_py()), given)
        yield pa.RecordBatch.from_pydict({"done": [json.dumps(done.to_json())]})

    return rewrite
