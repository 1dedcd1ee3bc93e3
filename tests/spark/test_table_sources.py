"""Tables as streams: rows once, versions after, removals as the user says; one table made of another, exactly once."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock.spark.lake.opening import open_store
from penstock.spark.lake.options import LakeOptions
from penstock.spark.pipeline.flow import Flow
from penstock.spark.pipeline.reading import read_flow
from penstock.spark.pipeline.running import Runner
from tests.patience import Patience
from tests.spark.test_pipeline import ONE_TRY, run

FILE = """
name = "hop"
[sources.orders]
table = "orders"
table_format = "{format}"
{more}
[[steps]]
name = "large"
sql = "SELECT id, amount * 2 AS amount FROM orders WHERE amount > 1"
[sinks.silver]
from = "large"
table = "silver"
table_format = "{format}"
"""

JOINED = """
name = "joined"
[sources.orders]
table = "orders"
[references.rates]
table = "rates"
refresh = "1 second"
[[steps]]
name = "priced"
sql = "SELECT o.id, r.amount FROM orders o LEFT JOIN rates r ON o.amount = r.id * 2"
[sinks.priced]
from = "priced"
table = "priced"
trigger = "continuous"
"""


def flow_of(scratch: Path, table_format: str = "delta", more: str = "", text: str = FILE) -> Flow:
    path = scratch / "hop.toml"
    path.write_text(text.format(format=table_format, more=more))
    return read_flow(path).once()


def write(
    spark: SparkSession, place: Path, rows: list[tuple[int, float]], table_format: str, mode: str = "append"
) -> None:
    made = spark.createDataFrame(rows, "id BIGINT, amount DOUBLE").coalesce(1)
    made.write.format("penstock-lake").option("table.format", table_format).mode(mode).save(str(place))


def read(spark: SparkSession, place: Path, table_format: str) -> list[tuple[object, ...]]:
    rows = spark.read.format("penstock-lake").option("table.format", table_format).load(str(place)).collect()
    return sorted(tuple(row) for row in rows)


@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_a_table_made_of_a_table_has_each_row_once(spark: SparkSession, scratch: Path, table_format: str) -> None:
    flow, lake = flow_of(scratch, table_format), scratch / "lake"
    write(spark, lake / "orders", [(1, 1.0), (2, 2.0)], table_format)
    write(spark, lake / "orders", [(3, 3.0)], table_format)
    assert run(flow, spark).state == "finished"
    store = open_store(LakeOptions(path=str(lake / "orders"), table_format=table_format))
    store.refresh()
    store.compact(1 << 20)
    write(spark, lake / "orders", [(4, 4.0)], table_format)
    shutil.rmtree(flow.checkpoint(flow.sinks[0]))
    assert run(flow, spark).state == "finished", "without its checkpoint it goes on at the version that silver has"
    assert run(flow, spark).state == "finished"
    assert read(spark, lake / "silver", table_format) == [(2, 4.0), (3, 6.0), (4, 8.0)]
    silver = open_store(LakeOptions(path=str(lake / "silver"), table_format=table_format))
    silver.refresh()
    ranges = [(each.start, each.end) for commit in silver.commits() for each in commit.ranges]
    assert [start for start, _ in ranges] == [0, ranges[0][1]]
    assert all(each.topic_id.startswith("table:") for commit in silver.commits() for each in commit.ranges)


def test_rows_that_go_end_the_stream_or_become_changes(spark: SparkSession, scratch: Path) -> None:
    lake = scratch / "lake"
    write(spark, lake / "orders", [(1, 2.0), (2, 2.0)], "delta")
    flow = flow_of(scratch)
    assert run(flow, spark).state == "finished"
    changes = flow_of(
        scratch,
        text='name = "hop2"\n[sources.orders]\ntable = "orders"\nchanges = true\n'
        '[sinks.log]\nfrom = "orders"\ntable = "log"\n',
    )
    assert run(changes, spark).state == "finished"
    write(spark, lake / "orders", [(1, 2.0), (2, 5.0), (3, 9.0)], "delta", "overwrite")
    failed = run(flow, spark)
    assert "took rows away that a stream has given already" in failed.sinks[0].error
    assert failed.state == "failed"
    ignoring = flow_of(scratch, more='removals = "ignore"')
    write(spark, lake / "orders", [(4, 9.0)], "delta")
    assert run(ignoring, spark).state == "finished"
    assert read(spark, lake / "silver", "delta") == [(1, 4.0), (2, 4.0), (4, 18.0)]

    assert run(changes, spark).state == "finished"
    told = [row[:3] for row in read(spark, lake / "log", "delta")]
    assert sorted(told, key=repr) == [
        (1, 2.0, "insert"),
        (2, 2.0, "delete"),
        (2, 2.0, "insert"),
        (2, 5.0, "insert"),
        (3, 9.0, "insert"),
        (4, 9.0, "insert"),
    ]


def test_a_table_that_was_made_anew_is_not_taken_for_the_old_one(spark: SparkSession, scratch: Path) -> None:
    lake = scratch / "lake"
    write(spark, lake / "orders", [(1, 2.0)], "delta")
    flow = flow_of(scratch)
    assert run(flow, spark).state == "finished"
    shutil.rmtree(lake / "orders")
    write(spark, lake / "orders", [(9, 2.0)], "delta")
    assert "was deleted and made anew" in run(flow, spark).sinks[0].error


def test_what_a_step_joins_is_seen_anew_when_it_has_moved(spark: SparkSession, scratch: Path) -> None:
    lake = scratch / "lake"
    write(spark, lake / "orders", [(1, 2.0)], "delta")
    write(spark, lake / "rates", [(1, 10.0)], "delta")
    path = scratch / "hop.toml"
    path.write_text(JOINED)
    runner, stop, patience = Runner(read_flow(path), spark, patience=ONE_TRY), threading.Event(), Patience(60)
    seen: list[object] = []

    def heed(_: Runner) -> None:
        """One step after another, each when what it waits for is there."""
        query = runner.sinks[0].query
        rows = read(spark, lake / "priced", "delta") if (lake / "priced" / "_delta_log").exists() else []
        if not seen and rows == [(1, 10.0)]:
            write(spark, lake / "rates", [(1, 11.0)], "delta", "overwrite")
            seen.append(query)
        elif len(seen) == 1 and query is not seen[0]:
            write(spark, lake / "orders", [(2, 2.0)], "delta")
            seen.append(query)
        if len(rows) == 2 or patience.over() or runner.done:
            stop.set()

    runner.run(stop, heed=heed)
    assert read(spark, lake / "priced", "delta") == [(1, 10.0), (2, 11.0)], runner.progress()
