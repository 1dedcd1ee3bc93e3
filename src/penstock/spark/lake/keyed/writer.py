"""The way into a table by key: a function for foreachBatch, which is how Spark hands out batches with changes of rows.

A batch is known by its query's checkpoint: its offsets are in Spark's offset log before it runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.spark.errors import BadOption
from penstock.spark.lake import offset_log
from penstock.spark.lake.evolution import plain, plan_fit
from penstock.spark.lake.keyed.changes import KIND, SEEN, columns_of
from penstock.spark.lake.keyed.landing import Changes, Hands, merge
from penstock.spark.lake.keyed.rewriting import rewrite_buckets
from penstock.spark.lake.keyed.shaping import as_changes
from penstock.spark.lake.landing import write_down
from penstock.spark.lake.opening import open_store
from penstock.spark.lake.options import LakeOptions
from penstock.spark.lake.sink import explained
from penstock.spark.lake.store import BatchCommit, CannotEvolve, Commit, TableStore
from penstock.spark.lake.upkeep import after_commit

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from penstock.spark.lake.keyed.settings import KeyedSettings


def keyed_writer(options: LakeOptions, settings: KeyedSettings) -> Callable[[DataFrame, int], None]:
    """A function of (rows, batch id) that merges rows into the table, exactly once. `options` name the checkpoint."""
    if not options.checkpoint:
        raise BadOption(
            "a table by key reads the offsets of a batch from the query's checkpoint: give checkpointLocation among "
            "the options of the table, the same that the query has"
        )
    if options.partition_by or options.dead_letters_path:
        raise BadOption("a table by key has neither partition.by nor deadLetters: its keys split it, and its rows fit")

    def write(rows: DataFrame, batch_id: int) -> None:
        merge_batch(rows, batch_id, options, settings)

    return write


def merge_batch(rows: DataFrame, batch_id: int, options: LakeOptions, settings: KeyedSettings) -> Commit | None:
    """None when the batch was there already."""
    store = open_store(options)
    there = _columns_there(store)
    offsets = offset_log.ranges_of(options.checkpoint, batch_id)
    batch = BatchCommit(offset_log.query_id_of(options.checkpoint), batch_id, offsets.ranges)
    changes = as_changes(rows, settings, {name.lower(): name for name in there.names} if there is not None else None)
    brought = Changes(batch, _schema_for(store, there, changes, options), offsets.partitions)
    columns_of(settings, brought.schema)
    hands = Hands(
        run=lambda task: rewrite_buckets(changes, task),
        explain=lambda told: explained(told, offsets) if options.rows == "record" else told,
        now_ms=time.time_ns() // 1_000_000,
    )
    commit = merge(store, options, settings, brought, hands)
    write_down(store, commit)
    if commit is not None:
        after_commit(options, commit)
    return commit


def _columns_there(store: TableStore) -> pa.Schema | None:
    if not store.exists():
        return None
    store.refresh()
    return store.schema()


def _schema_for(store: TableStore, there: pa.Schema | None, changes: DataFrame, options: LakeOptions) -> pa.Schema:
    """What the table's columns have to be, so that it holds the changes' values."""
    from pyspark.sql.pandas.types import to_arrow_schema

    rows = to_arrow_schema(changes.drop(KIND, SEEN).schema, timezone="UTC")
    given = plain(rows, small_integers=store.layout().small_integers)
    fit = plan_fit(given, there, can_widen=store.can_widen, add=options.schema_evolution == "add")
    if fit.misfits:
        raise CannotEvolve(
            f"changes may not fit the {store.format} table {store.location}: {'; '.join(map(str, fit.misfits))}. Cast "
            "the column in a step, or write to another table"
            + ("; schema.evolution=add lets columns be added" if options.schema_evolution == "none" else "")
        )
    return fit.table
