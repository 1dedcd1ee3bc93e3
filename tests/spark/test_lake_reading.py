"""Tables are read back as they were written: by Spark, polars and DuckDB; a batch that is played again adds nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from penstock.spark.asking import ask_spark
from penstock.spark.lake.audit import audit
from penstock.spark.lake.opening import open_store
from penstock.spark.lake.options import LakeOptions
from penstock.spark.lake.query import ask_duckdb
from penstock.spark.lake.warehouse import NoSuchTable, Warehouse
from tests.patience import within
from tests.spark.starting import started
from tests.unit.spark.lake.tables import append, made, rows, written


def pour(spark: SparkSession, bootstrap: str, topic: str, scratch: Path) -> None:
    """Everything that is in the topic now, into an Iceberg table by day."""
    source = spark.readStream.format("penstock").option("kafka.bootstrap.servers", bootstrap)
    found = source.option("subscribe", topic).option("startingOffsets", "earliest").load()
    sink = found.writeStream.format("penstock-lake").option("table.format", "iceberg").option("rows", "record")
    sink = sink.option("partition.by", "day(timestamp)").option("checkpointLocation", str(scratch / "checkpoint"))
    query = started(sink.trigger(availableNow=True), str(scratch / "lake" / "clicks"))
    assert query.awaitTermination(within(60))


def test_an_iceberg_stream_lands_once_and_everybody_reads_it(
    spark: SparkSession,
    bootstrap: str,
    topic: str,
    produce: Callable[..., None],
    scratch: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Or polars warns that a plugin of its own would plan faster.
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")
    for batch in range(2):
        produce(topic, [f"{batch}-{number}".encode() for number in range(20)])
        pour(spark, bootstrap, topic, scratch)
    # Spark forgets that it finished the last batch, and plays it again.
    newest = max((scratch / "checkpoint" / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    newest.unlink()
    pour(spark, bootstrap, topic, scratch)

    path = scratch / "lake" / "clicks"
    store = open_store(LakeOptions.of({"path": str(path), "table.format": "iceberg"}))
    store.refresh()
    assert [(commit.kind, commit.rows) for commit in store.commits()] == [("append", 20), ("append", 20)]
    assert list(store.committed().values()) == [40]
    found = audit(store)
    assert found.clean, str(found)

    wanted = sorted(f"{batch}-{number}".encode() for batch in range(2) for number in range(20))
    reader = spark.read.format("penstock-lake").option("table.format", "iceberg")
    read = reader.load(str(path)).select("value", "offset").toArrow()
    assert sorted(read.column("value").to_pylist()) == wanted
    assert sorted(read.column("offset").to_pylist()) == list(range(40))
    assert reader.option("version", "1").load(str(path)).count() == 20

    lake = Warehouse(str(path.parent))
    by_duckdb = ask_duckdb(lake, "select value from clicks").rows
    assert sorted(by_duckdb.column("value").to_pylist()) == wanted
    frame = polars.scan_iceberg(store.table).collect()  # type: ignore[attr-defined]
    assert sorted(frame["value"].to_list()) == wanted
    by_spark = ask_spark(lake, "select count(*) c, max(offset) m from clicks where offset >= 20")
    assert by_spark.rows.to_pylist() == [{"c": 20, "m": 39}]
    with pytest.raises(NoSuchTable, match=r"did you mean clicks\?"):
        ask_spark(lake, "select * from click")


@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_partitions_and_columns_that_came_later_are_read(spark: SparkSession, scratch: Path, table_format: str) -> None:
    store = made(scratch / "clicks", table_format, partition_by=["country"])
    for batch, country in enumerate(("is", None)):
        file = written(store, rows(batch * 3, batch * 3 + 3, country=country), {"country": country})
        append(store, batch * 3, batch * 3 + 3, batch=batch, files=[file])
        store.refresh()
    more = pa.schema([*store.schema(), ("inner", pa.struct([("a", pa.int64()), ("tags", pa.list_(pa.string()))]))])
    store.evolve(more)
    store.refresh()
    inner = pa.array([{"a": 1, "tags": ["x"]}], more.field("inner").type)
    late = rows(6, 7, country="de").append_column(more.field("inner"), inner)
    append(store, 6, 7, batch=2, files=[written(store, late, {"country": "de"})])

    read = spark.read.format("penstock-lake").option("table.format", table_format).load(str(scratch / "clicks"))
    assert read.columns == ["n", "word", "at", "country", "inner"]
    found: list[Any] = read.orderBy("n").select("n", "country", "inner", "at").collect()
    assert [row.country for row in found] == ["is", "is", "is", None, None, None, "de"]
    assert [row.inner for row in found[:6]] == [None] * 6
    assert found[6].inner.asDict() == {"a": 1, "tags": ["x"]}
    assert read.where("country = 'is' and n > 0").count() == 2
