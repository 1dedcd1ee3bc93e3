"""Expectations on a real stream: what is kept, kept aside, left out, counted and refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from penstock.blocking import Admin
from penstock.cli.lake_output import description, description_text
from penstock.spark.lake.audit import audit
from penstock.spark.lake.opening import open_store
from penstock.spark.lake.options import LakeOptions
from penstock.spark.pipeline.flow import Flow
from penstock.spark.pipeline.reading import read_flow
from penstock.spark.pipeline.sql_check import sql_check
from penstock.spark.progress.records import ExpectationCount
from tests.spark.test_pipeline import count_of, run

FILE = """
name = "shop"
bootstrap = "{bootstrap}"
[sources.orders]
topic = "{topic}"
format = "json"
schema = "id BIGINT, amount DOUBLE"
start = "earliest"
dead_letters = "table:dead"
[sources.orders.expect]
cheap = "amount < 5"
[sources.orders.expect_or_drop]
positive = "amount > 0"
[[steps]]
name = "doubled"
sql = "SELECT id, amount * 2 AS amount FROM orders"
[steps.expect_or_drop]
odd = "id % 2 = 1"
[sinks.raw]
from = "orders"
table = "raw"
dead_letters = "table:raw_dead"
[sinks.raw.expect]
small = {{ rule = "id < 7", otherwise = "dead"{within} }}
[sinks.out]
from = "doubled"
topic = "{topic}-out"
"""


@pytest.fixture
def write(bootstrap: str, topic: str, scratch: Path) -> Callable[..., Flow]:
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topic(topic, 1)
        admin.create_topic(f"{topic}-out", 2)

    def make(more: str = "", within: str = "") -> Flow:
        path = scratch / "shop.toml"
        path.write_text((FILE + more).format(bootstrap=bootstrap, topic=topic, within=within))
        return read_flow(path).once()

    return make


def orders(**amounts: float | None) -> list[bytes | None]:
    return [json.dumps({"id": int(key[1:]), "amount": amount}).encode() for key, amount in amounts.items()]


def rows_in(path: Path, *columns: str) -> list[tuple[object, ...]]:
    found = ds.dataset(DeltaTable(str(path)).file_uris(), format="parquet").to_table(columns=list(columns))
    return sorted(zip(*found.to_pydict().values(), strict=True), key=repr)


def test_rows_that_break_rules_are_counted_in_the_commit_and_kept_aside(
    spark: SparkSession,
    bootstrap: str,
    topic: str,
    produce: Callable[..., None],
    write: Callable[..., Flow],
    scratch: Path,
) -> None:
    flow = write()
    produce(topic, [*orders(_1=1.0, _2=9.0, _3=-1.0, _4=None, _8=1.0, _9=-9.0), b"no JSON"])
    runner = run(flow, spark)
    assert runner.state == "finished", runner.progress()
    warehouse = scratch / "lake"
    assert rows_in(warehouse / "raw", "id") == [(1,), (2,)]
    letters = rows_in(warehouse / "dead", "offset", "error")
    assert [offset for offset, _ in letters] == [2, 3, 5, 6], "both sinks met them, and they are there once"
    assert letters[0][1] == "expectation positive does not hold: amount > 0"
    (row,) = rows_in(warehouse / "raw_dead", "column", "error", "row")
    assert row == ("small", "expectation small does not hold: id < 7", '{"id": 8, "amount": 1.0}')

    store = open_store(LakeOptions(path=str(warehouse / "raw")))
    store.refresh()
    commit = next(each for each in store.commits() if each.ranges)
    assert (commit.rows, commit.dead, commit.dropped) == (2, 5, 0)
    assert commit.expectations == {"cheap": 2, "positive": 3, "small": 2}
    found = audit(store)
    assert found.clean, found.findings
    assert count_of(bootstrap, f"{topic}-out") == 1, "of the doubled ones only the first has an odd number"
    observed = {}
    for each in runner.sinks:
        for progress in each.query.recentProgress if each.query else []:
            observed.update(json.loads(progress.json).get("observedMetrics", {}))
    assert observed["expect.doubled"] == {"rows": 3, "odd": 2}
    assert observed["expect.sinks.raw"] == {"rows": 6, "small": 2}
    told = {sink.sink: sink.expectations for sink in runner.progress().sinks}
    assert {(each.place, each.name, each.rows, each.broken) for each in told["raw"]} == {
        ("orders", "cheap", 6, 2), ("orders", "positive", 6, 3), ("sinks.raw", "small", 6, 2)
    }  # fmt: skip
    assert ExpectationCount("doubled", "odd", 3, 2) in told["out"]
    shown = description("raw", store)
    assert (shown["expectations"], shown["dropped"]) == (
        [{"name": "cheap", "broken": 2}, {"name": "positive", "broken": 3}, {"name": "small", "broken": 2}], 0
    )  # fmt: skip
    assert [line.split() for line in description_text(shown).splitlines() if "positive" in line] == [["positive", "3"]]


def test_a_row_that_must_not_be_fails_its_batch_for_good(
    spark: SparkSession, topic: str, produce: Callable[..., None], write: Callable[..., Flow], scratch: Path
) -> None:
    flow = write('[sinks.out.expect_or_fail]\nfew = "id < 5"\n').only(("out",))
    produce(topic, orders(_1=1.0, _7=2.0))
    runner = run(flow, spark)
    (sink,) = runner.sinks
    assert runner.state == "failed"
    assert 'expectation few does not hold: id < 5 (sinks.out). Nothing of the batch was written. The row: {"id":7' in (
        sink.error
    )


def test_too_many_broken_rows_fail_the_batch_before_its_commit(
    spark: SparkSession, topic: str, produce: Callable[..., None], write: Callable[..., Flow], scratch: Path
) -> None:
    flow = write(within=', within = "40 %"').only(("raw",))
    produce(topic, orders(_1=1.0, _8=1.0, _9=1.0))
    runner = run(flow, spark)
    assert "2 of 3 rows" in runner.sinks[0].error
    assert "within allows 40" in runner.sinks[0].error
    assert not DeltaTable.is_deltatable(str(scratch / "lake" / "raw"))
    produce(topic, orders(_2=1.0, _3=1.0))
    assert run(flow, spark).state == "failed", "the batch is the one that failed, and it does not get better by waiting"


def test_rules_are_asked_of_the_analyzer(spark: SparkSession, write: Callable[..., Flow]) -> None:
    flow = write(
        '[sinks.out.expect]\nodd = "nobody > 3"\ntext = "concat(id, \'a\')"\n[sinks.raw.expect_or_drop]\nbad = "id >"\n'
    )
    words = [each.words for each in sql_check(flow, spark)]
    assert any("the expectation odd cannot be asked of its rows" in each and "nobody" in each for each in words), words
    assert any("the expectation text cannot" in each for each in words), words
    assert any("sink raw: the expectation bad cannot" in each for each in words), words
