"""format("penstock-lake") on a real Spark: what a query writes is in the table once."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, count, count_distinct
from pyspark.sql.functions import sum as total

from penstock.spark.lake.data_source import LakeDataSource
from penstock.spark.lake.ledger import Ledger
from penstock.spark.lake.opening import open_store
from penstock.spark.lake.options import LakeOptions
from penstock.spark.lake.store import TableStore
from tests.patience import within
from tests.spark.starting import started

Produce = Callable[..., None]


def table_of(path: Path) -> TableStore:
    store = open_store(LakeOptions(path=str(path)))
    store.refresh()
    return store


def numbers(path: Path) -> list[int]:
    return sorted(pl.read_delta(str(path))["n"].to_list())


def stream(spark: SparkSession, bootstrap: str, topic: str, **options: object) -> DataFrame:
    reader = spark.readStream.format("penstock").option("kafka.bootstrap.servers", bootstrap)
    return reader.option("subscribe", topic).option("startingOffsets", "earliest").options(**options).load()


def rows_of(records: DataFrame) -> DataFrame:
    return records.select(col("value").cast("string").cast("long").alias("n"), "partition", "offset", "timestamp")


def run(
    frame: DataFrame, scratch: Path, *, sink: str = "penstock-lake", mode: str = "append", **options: object
) -> None:
    """Until everything there is has been written."""
    writer = frame.writeStream.format(sink).outputMode(mode).trigger(availableNow=True)
    named = {name.replace("_", "."): value for name, value in options.items()}
    writer = writer.option("checkpointLocation", str(scratch / "checkpoint")).options(**named)
    query = started(writer, str(scratch / "table"))
    assert query.awaitTermination(within(60)), "the query has not ended within a minute"


def register_faulty(spark: SparkSession, faults: Path) -> str:
    """A sink of ours whose commit of batch N fails once, before or after it, where a file says so."""

    class Faulty(LakeDataSource):
        @classmethod
        def name(cls) -> str:
            return "faulty-lake"

        def streamWriter(self, schema: Any, overwrite: bool) -> Any:
            writer = super().streamWriter(schema, overwrite)
            commit = writer.commit

            def failing(messages: list[Any], batch_id: int) -> None:
                before, after = faults / f"before-{batch_id}", faults / f"after-{batch_id}"
                if before.exists():
                    before.unlink()
                    raise ConnectionError("planted before the commit")
                commit(messages, batch_id)
                if after.exists():
                    after.unlink()
                    raise ConnectionError("planted after the commit")

            writer.commit = failing  # type: ignore[method-assign]
            return writer

    spark.dataSource.register(Faulty)
    return Faulty.name()


def test_a_stream_is_in_the_table_once_whichever_commits_fail(
    spark: SparkSession, bootstrap: str, topic: str, scratch: Path, produce: Produce
) -> None:
    produce(topic, [str(number).encode() for number in range(40)])
    (scratch / "before-1").touch()
    (scratch / "after-2").touch()
    sink = register_faulty(spark, scratch)
    rows = rows_of(stream(spark, bootstrap, topic, maxOffsetsPerTrigger=10))
    for planted in ("before", "after"):
        with pytest.raises(StreamingQueryException, match=f"planted {planted} the commit"):
            run(rows, scratch, sink=sink, rows="record", partition_by="partition")
    run(rows, scratch, sink=sink, rows="record", partition_by="partition")

    path = scratch / "table"
    assert numbers(path) == list(range(40))
    commits = [each for each in table_of(path).commits() if each.kind == "append"]
    assert [each.batch_id for each in commits] == [0, 1, 2, 3]
    spans = sorted((each.partition, each.start, each.end) for commit in commits for each in commit.ranges)
    for (partition, _, end), (other, start, _) in itertools.pairwise(spans):
        assert partition != other or end == start
    assert [(each.rows, each.dead, each.gaps) for each in commits] == [(10, 0, 0)] * 4
    assert [each.version for each in Ledger(str(path)).entries()] == list(range(table_of(path).version() + 1))

    files = [file.path for file in table_of(path).files()]
    assert duckdb.read_parquet(files).aggregate("count(*), sum(n)").fetchall() == [(40, sum(range(40)))]
    back = spark.read.format("penstock-lake").load(str(path))
    assert back.schema == rows.schema
    assert back.agg(count("*"), count_distinct("partition", "offset"), total("n")).collect()[0][:] == (40, 40, 780)


def test_a_new_checkpoint_is_refused_with_the_way_out(
    spark: SparkSession, bootstrap: str, topic: str, scratch: Path, produce: Produce
) -> None:
    produce(topic, [b"0", b"1", b"2"], partition=0)
    rows = rows_of(stream(spark, bootstrap, topic))
    run(rows, scratch)
    produce(topic, [b"3"], partition=0)
    (scratch / "checkpoint").rename(scratch / "lost")
    with pytest.raises(StreamingQueryException, match=r"an overlap of 3 offsets.*startingOffsets.*table:"):
        run(rows, scratch)
    assert numbers(scratch / "table") == [0, 1, 2]


def test_complete_mode_replaces_what_was_there(
    spark: SparkSession, bootstrap: str, topic: str, scratch: Path, produce: Produce
) -> None:
    produce(topic, [b"1", b"2", b"2"])
    counts = rows_of(stream(spark, bootstrap, topic, maxOffsetsPerTrigger=2)).groupBy("n").count()
    run(counts, scratch, mode="complete")
    found = pl.read_delta(str(scratch / "table")).sort("n").to_dicts()
    assert found == [{"n": 1, "count": 1}, {"n": 2, "count": 2}]
    assert sum(table_of(scratch / "table").committed().values()) == 3


def test_a_query_that_changed_goes_on_and_what_does_not_fit_is_kept(
    spark: SparkSession, bootstrap: str, topic: str, scratch: Path, produce: Produce
) -> None:
    produce(topic, [b"1"])
    records = stream(spark, bootstrap, topic)
    run(records.select(col("value").cast("string").cast("int").alias("n")), scratch)
    produce(topic, [b"2", str(1 << 40).encode()])
    wider = records.select(col("timestamp").alias("at"), col("value").cast("string").cast("long").alias("n"))
    with pytest.raises(StreamingQueryException, match=r"n is int64 and the table has int32.*deadLetters=table:PATH"):
        run(wider, scratch)
    run(wider, scratch, deadLetters=f"table:{scratch / 'dead'}")
    assert numbers(scratch / "table") == [1, 2]
    assert pl.read_delta(str(scratch / "table"))["at"].null_count() == 1
    [dead] = pl.read_delta(str(scratch / "dead")).to_dicts()
    assert (dead["batch"], json.loads(dead["row"])["n"]) == (1, 1 << 40)


def test_a_data_frame_is_appended_or_replaces(spark: SparkSession, scratch: Path) -> None:
    path = str(scratch / "table")
    for mode, first, last in (("append", 0, 3), ("append", 3, 5), ("overwrite", 7, 9)):
        frame = spark.range(first, last).select(col("id").alias("n"), (col("id") % 2).alias("odd"))
        frame.write.format("penstock-lake").option("partition.by", "odd").mode(mode).save(path)
        if last == 5:
            assert numbers(scratch / "table") == [0, 1, 2, 3, 4]
    assert numbers(scratch / "table") == [7, 8]
    assert [each.kind for each in table_of(scratch / "table").commits()] == ["other", "append", "append", "overwrite"]
