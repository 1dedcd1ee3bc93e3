"""A table by key and changes that it does not have yet, as one DataFrame: what the table will be when they are merged.

Which change wins is decided as `reduction.py` does, here in SQL. Where the log's order decides, and no value is ever
left out, rows of the changed keys need not be looked at: any change is later than they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.spark.lake.keyed.changes import DELETE, IGNORED, KIND, UPSERT, ChangeColumns, unavailable_list
from penstock.spark.lake.keyed.envelopes import UNAVAILABLE, UNAVAILABLE_BYTES
from penstock.spark.lake.keyed.shape import quoted

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

_LATEST: Final = "__latest"
_FROM_BATCH: Final = "__from_batch"
_WITH: Final = "__with_"


def followed(rows: DataFrame, changes: DataFrame, columns: ChangeColumns, graves: pa.Table | None) -> DataFrame:
    """`rows` of the table as `changes` leave them; `graves` are the deletes that the table remembers, if it does."""
    from pyspark.sql import functions as f

    given = _aligned(changes.where(f.col(KIND) != IGNORED), rows.schema)
    keys = list(columns.keys)
    if columns.in_log_order and not columns.lacking:
        # Read once: it is needed for what goes and for what comes.
        latest = settled_in_sql(given.withColumn(_FROM_BATCH, f.lit(1)), columns).localCheckpoint()
        return rows.join(f.broadcast(latest.select(*keys)), keys, "left_anti").unionByName(_live(latest, rows.schema))
    read = given.localCheckpoint()
    touched = f.broadcast(read.select(*keys).distinct())
    before = rows.join(touched, keys, "left_semi").withColumn(KIND, f.lit(UPSERT).cast("tinyint"))
    pool = read.withColumn(_FROM_BATCH, f.lit(1)).unionByName(before.withColumn(_FROM_BATCH, f.lit(0)))
    if graves is not None and graves.num_rows:
        dead = rows.sparkSession.createDataFrame(graves).withColumn(KIND, f.lit(DELETE).cast("tinyint"))
        of_them = _aligned(dead, rows.schema).join(touched, keys, "left_semi").withColumn(_FROM_BATCH, f.lit(0))
        pool = pool.unionByName(of_them)
    latest = settled_in_sql(pool, columns)
    return rows.join(touched, keys, "left_anti").unionByName(_live(latest, rows.schema))


def settled_in_sql(changes: DataFrame, columns: ChangeColumns) -> DataFrame:
    """The latest change of each key, with the values that it lacks from those before it."""
    from pyspark.sql import functions as f

    order = f.struct(*(f.col(name) for name in columns.order), f.col(_FROM_BATCH))
    kept = [name for name in changes.columns if name not in (*columns.keys, _FROM_BATCH)]
    told = [f.max_by(f.struct(*(f.col(quoted(name)) for name in kept)), order).alias(_LATEST)]
    for name in columns.lacking:
        value = f.when((f.col(KIND) == DELETE) | ~_lacks(f.col(quoted(name)), columns.kind(name)), order)
        told.append(f.max_by(f.struct(f.col(quoted(name)), f.col(KIND)), value).alias(_WITH + name))
    found = changes.groupBy(*(f.col(quoted(name)) for name in columns.keys)).agg(*told)

    def settled(name: str) -> Column:
        latest = f.col(_LATEST).getField(name)
        if name not in columns.lacking:
            return latest.alias(name)
        before = f.col(quoted(_WITH + name))
        known = before.isNotNull() & (before.getField(KIND) != DELETE)
        return f.when(known & _lacks(latest, columns.kind(name)), before.getField(name)).otherwise(latest).alias(name)

    return found.select(*(f.col(quoted(name)) for name in columns.keys), *(settled(name) for name in kept))


def _lacks(value: Column, kind: pa.DataType) -> Column:
    from pyspark.sql import functions as f

    left_out = unavailable_list(kind)
    if left_out is not None:
        return f.coalesce(value == f.array(*map(f.lit, left_out)), f.lit(False))
    text = value.cast("string")
    return f.coalesce(text.isin(UNAVAILABLE, UNAVAILABLE_BYTES.decode()), f.lit(False))


def _live(latest: DataFrame, schema: StructType) -> DataFrame:
    from pyspark.sql import functions as f

    return latest.where(f.col(KIND) == UPSERT).select(*(f.col(quoted(name)) for name in schema.names))


def _aligned(changes: DataFrame, schema: StructType) -> DataFrame:
    """With the table's columns: those that changes do not have are null."""
    from pyspark.sql import functions as f

    there = set(changes.columns)
    columns = [
        (
            f.col(quoted(field.name)).try_cast(field.dataType)
            if field.name in there
            else f.lit(None).cast(field.dataType)
        ).alias(field.name)
        for field in schema.fields
    ]
    return changes.select(*columns, KIND)
