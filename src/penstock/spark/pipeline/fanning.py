"""One stream into many tables, by the values of a column; each row once in its table, whatever dies.

An index table keeps the offsets of the whole stream: how many rows of which batch went into which table. A batch is
written to its tables first, each commit with the batch's offsets, and to the index last. A batch that is played again
finds the tables that have it and goes on with the others. A table to which nothing went for a while stands further
back than the batch that brings it something: the index stands for what was in between.

What names no table (a null, a value that is no plain word, one table more than allowed) is a dead letter.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from penstock.spark.errors import BadOption, SparkRoomError
from penstock.spark.lake import offset_log
from penstock.spark.lake.landing import ensure_table, is_new
from penstock.spark.lake.opening import open_store
from penstock.spark.lake.options import LakeOptions
from penstock.spark.lake.store import BatchCommit, Conflicted
from penstock.spark.pipeline.flow import Flow, Sink
from penstock.spark.pipeline.handing import BatchWriter, write_table
from penstock.spark.pipeline.table_pattern import VALUE
from penstock.spark.pipeline.wiring import lake_options

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

TABLES_PROPERTY: Final = "penstock.tables"
"""Of the index: a JSON list of the values that have a table."""
INDEX_COLUMNS: Final = "table STRING, value STRING, rows BIGINT, batch BIGINT"
_TRIES: Final = 10

_log = logging.getLogger(__name__)


class NoTableForRow(SparkRoomError):
    """Rows of a batch name no table, and the user keeps none aside."""


def fan_writer(flow: Flow, sink: Sink) -> BatchWriter:
    return _Fan(flow, sink).write


class _Fan:
    """One sink and its tables."""

    def __init__(self, flow: Flow, sink: Sink) -> None:
        pattern = sink.many
        assert pattern is not None, "the sink has many tables"
        self._flow, self._sink, self._pattern = flow, sink, pattern
        self._checkpoint = flow.checkpoint(sink)
        made = lake_options(flow, sink)
        reached = {name: value for name, value in made.items() if name.startswith("storage.")}
        catalog = {name: value for name, value in made.items() if name.startswith("catalog.")}
        self._index = {"path": made["path"], "table.format": sink.table_format, **reached, **catalog}
        self._options = {name: value for name, value in made.items() if name.lower() not in ("path", "feed", "rows")}
        self._letters = LakeOptions.of(made).dead_letters_path
        self._letters_reached = reached

    def write(self, rows: DataFrame, batch: int) -> None:
        if self._is_there(batch):
            _log.info("batch %d of sink %s is in its tables already", batch, self._sink.name)
            return
        held = rows.persist()
        try:
            self._write(held, batch)
        finally:
            held.unpersist()

    def _write(self, rows: DataFrame, batch: int) -> None:
        from pyspark.sql import functions as f

        value = self._value(rows)
        plain = f.coalesce(value.rlike(f"^{VALUE}$"), f.lit(False))
        known = self._known()
        counts = self._counts(rows, value, plain, known)
        room = max(0, self._sink.max_tables - len(known))
        new = sorted(set(counts) - known)[:room]
        self._remember(known | set(new), known)
        taken = sorted(name for name in counts if name in known or name in new)
        self._put_aside(rows, value, plain, sorted(known | set(new)), batch)
        for each in taken:
            name = f"{self._pattern.before}{each}{self._pattern.after}"
            options = {**self._options, "path": self._flow.place_of(name)}
            write_table(rows.where(value == f.lit(each)), options, self._checkpoint, batch, fan=name)
        lines = [(f"{self._pattern.before}{each}{self._pattern.after}", each, counts[each], batch) for each in taken]
        index = rows.sparkSession.createDataFrame(lines, INDEX_COLUMNS)
        write_table(index, self._index, self._checkpoint, batch)

    def _is_there(self, batch: int) -> bool:
        """Whether the index has the batch. One that does not begin where it stands is refused, before any table has
        something of it."""
        store = open_store(LakeOptions.of(self._index))
        if not store.exists():
            return False
        store.refresh()
        ranges = offset_log.ranges_of(self._checkpoint, batch).ranges
        return not is_new(store, BatchCommit(offset_log.query_id_of(self._checkpoint), batch, ranges))

    def _value(self, rows: DataFrame) -> Column:
        from pyspark.sql import functions as f

        field = next((name for name in rows.columns if name.lower() == self._pattern.field.lower()), None)
        if field is None:
            raise BadOption(
                f"sink {self._sink.name}: table = {self._sink.target!r} goes by {self._pattern.field!r}, which is no "
                f"column; there is {', '.join(rows.columns)}"
            )
        return f.col(f"`{field}`").cast("string")

    def _counts(self, rows: DataFrame, value: Column, plain: Column, known: set[str]) -> dict[str, int]:
        """Rows by value, of those that have a table or may get one: never more than there may be tables."""
        from pyspark.sql import functions as f

        named = rows.where(plain).groupBy(value.alias("value")).agg(f.count(f.lit(1)).alias("rows"))
        old = value_in(f.col("value"), known)
        found = named.where(old).collect() if known else []
        found += named.where(~old).orderBy("value").limit(self._sink.max_tables).collect()
        return {row["value"]: row["rows"] for row in found}

    def _known(self) -> set[str]:
        store = open_store(LakeOptions.of(self._index))
        if not store.exists():
            return set()
        store.refresh()
        return set(json.loads(store.properties().get(TABLES_PROPERTY, "[]")))

    def _remember(self, values: set[str], known: set[str]) -> None:
        """Before a table is made, the index says that it will be: then a bound on them holds whatever dies."""
        if values == known:
            return
        store = open_store(LakeOptions.of(self._index))
        for _ in range(_TRIES):
            try:
                ensure_table(store, _index_schema())
                store.refresh()
                store.set_properties({TABLES_PROPERTY: json.dumps(sorted(values))})
                return
            except Conflicted as other:
                _log.info("the index of sink %s moved: %s", self._sink.name, other)
        raise SparkRoomError(f"the index {store.location} could not be told of a new table: others write to it")

    def _put_aside(self, rows: DataFrame, value: Column, plain: Column, tables: Iterable[str], batch: int) -> None:
        from pyspark.sql import functions as f

        why = (
            f.when(value.isNull(), f.lit("null names no table"))
            .when(~plain, f.concat(f.substring(value, 1, 100), f.lit(" names no table: letters, digits, _ and -")))
            .otherwise(f.concat(value, f.lit(f" would be one table more than max_tables = {self._sink.max_tables}")))
        )
        odd = rows.where(~(plain & value_in(value, tables)))
        if not self._letters:
            first = odd.select(why.alias("why")).limit(1).collect()
            if first:
                raise NoTableForRow(
                    f"sink {self._sink.name}: a row of batch {batch} has no table to go to, and nothing of the batch "
                    f'was written: {self._pattern.field}: {first[0]["why"]}. dead_letters = "table:PATH" keeps such '
                    "rows aside"
                )
            return
        letters = odd.select(
            f.lit(self._sink.target).alias("table"),
            f.lit(self._flow.query_name(self._sink)).alias("query"),
            f.lit(batch).cast("bigint").alias("batch"),
            f.lit(self._pattern.field).alias("column"),
            why.alias("error"),
            f.to_json(f.struct(*(f.col(f"`{name}`") for name in rows.columns))).alias("row"),
        )
        if letters.isEmpty():
            return
        # Its offsets are those of the index; here the query and the batch tell one that is played again.
        write_table(
            letters, {"path": self._letters, **self._letters_reached}, self._checkpoint, batch, apart=self._sink.name
        )


def _index_schema() -> pa.Schema:
    import pyarrow as pa

    return pa.schema([("table", pa.string()), ("value", pa.string()), ("rows", pa.int64()), ("batch", pa.int64())])


def value_in(value: Column, names: Iterable[str]) -> Column:
    from pyspark.sql import functions as f

    listed = sorted(names)
    return f.coalesce(value.isin(listed), f.lit(False)) if listed else f.lit(False)
