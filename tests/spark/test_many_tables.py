"""One stream into many sinks and many tables, read once, each row once, whatever breaks off."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from penstock.blocking import Admin
from penstock.spark.lake.audit import audit
from penstock.spark.lake.opening import open_store
from penstock.spark.lake.options import LakeOptions
from penstock.spark.pipeline import batches, together
from penstock.spark.pipeline.deep_check import deep_check
from penstock.spark.pipeline.flow import Flow, Sink
from penstock.spark.pipeline.reading import read_flow
from tests.spark.test_exactly_once_topics import values_of
from tests.spark.test_expectations import rows_in
from tests.spark.test_pipeline import run

FILE = """
name = "shop"
bootstrap = "{bootstrap}"
[sources.orders]
topic = "{topic}"
format = "json"
schema = "id BIGINT, country STRING"
start = "earliest"
dead_letters = "table:dead"
[sources.orders.expect_or_drop]
numbered = "id IS NOT NULL"
[[steps]]
name = "dutch"
sql = "SELECT id FROM orders WHERE country = 'nl'"
[sinks.raw]
from = "orders"
table = "raw"
together = "all"
[sinks.dutch]
from = "dutch"
table = "dutch"
table_format = "iceberg"
together = "all"
[sinks.each]
from = "orders"
table = "orders_{{country}}"
max_tables = 2
dead_letters = "table:odd"
together = "all"
[sinks.out]
from = "dutch"
topic = "{topic}-out"
trigger = "10 seconds"
exactly_once = true
together = "all"
"""


@pytest.fixture
def write(bootstrap: str, topic: str, scratch: Path) -> Callable[..., Flow]:
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topic(topic, 1)
        admin.create_topic(f"{topic}-out", 2)

    def make(text: str = FILE) -> Flow:
        path = scratch / "shop.toml"
        path.write_text(text.format(bootstrap=bootstrap, topic=topic))
        return read_flow(path).once()

    return make


def orders(*rows: tuple[int | None, str | None]) -> list[bytes | None]:
    return [json.dumps({"id": id, "country": country}).encode() for id, country in rows]


def clean(path: Path) -> bool:
    store = open_store(LakeOptions(path=str(path)))
    store.refresh()
    found = audit(store)
    assert found.clean, found.findings
    return True


def test_a_batch_that_breaks_off_between_two_sinks_is_in_each_of_them_once(
    spark: SparkSession,
    bootstrap: str,
    topic: str,
    produce: Callable[..., None],
    write: Callable[..., Flow],
    scratch: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    flow, lake = write(), scratch / "lake"
    produce(topic, orders((1, "nl"), (2, "it"), (3, None), (4, "../x"), (5, "nl"), (None, "nl"), (6, "ua")))
    real = batches.writer_of

    def breaking(flow: Flow, sink: Sink) -> batches.BatchWriter:
        def write(rows: DataFrame, batch: int) -> None:
            if sink.name == "each":
                raise OSError("cut off")
            real(flow, sink)(rows, batch)

        return write

    monkeypatch.setattr(together, "writer_of", breaking)
    assert "cut off" in run(flow, spark).sinks[0].error
    assert rows_in(lake / "raw", "id") == [(1,), (2,), (3,), (4,), (5,), (6,)], "what came before has the batch"
    monkeypatch.setattr(together, "writer_of", real)
    produce(topic, orders((7, "it"), (8, "de")))
    # The batch that broke off is played again, and then comes the other one.
    assert run(flow, spark).state == "finished"
    assert run(flow, spark).state == "finished"

    assert rows_in(lake / "raw", "id") == [(1,), (2,), (3,), (4,), (5,), (6,), (7,), (8,)]
    assert rows_in(lake / "orders_nl", "id") == [(1,), (5,)]
    assert rows_in(lake / "orders_it", "id") == [(2,), (7,)]
    assert not (lake / "orders_ua").exists(), "two tables are the most"
    odd = rows_in(lake / "odd", "column", "error")
    assert [error for _, error in odd] == [
        "../x names no table: letters, digits, _ and -",
        "de would be one table more than max_tables = 2",
        "null names no table",
        "ua would be one table more than max_tables = 2",
    ]
    assert [offset for (offset,) in rows_in(lake / "dead", "offset")] == [5]
    assert sorted(each["id"] for each in values_of(bootstrap, f"{topic}-out", 2)) == [1, 5]
    index = rows_in(lake / "_fanned" / "each", "value", "rows", "batch")
    assert index == [("it", 1, 0), ("it", 1, 1), ("nl", 2, 0)]
    assert all(clean(lake / name) for name in ("raw", "orders_nl", "orders_it", "_fanned/each"))
    store = open_store(LakeOptions(path=str(lake / "dutch"), table_format="iceberg"))
    store.refresh()
    assert sum(file.rows for file in store.files()) == 2


def test_without_its_checkpoint_it_goes_on_where_all_tables_stand(
    spark: SparkSession, topic: str, produce: Callable[..., None], write: Callable[..., Flow], scratch: Path
) -> None:
    flow = write().only(("each",))
    import shutil

    produce(topic, orders((1, "nl"), (2, "it")))
    assert run(flow, spark).state == "finished"
    shutil.rmtree(flow.checkpoint(flow.sinks[0]))
    produce(topic, orders((3, "nl")))
    assert run(flow, spark).state == "finished"
    assert rows_in(scratch / "lake" / "orders_nl", "id") == [(1,), (3,)]
    assert rows_in(scratch / "lake" / "orders_it", "id") == [(2,)]


def test_steps_that_look_beyond_a_batch_do_not_stand_together(spark: SparkSession, write: Callable[..., Flow]) -> None:
    flow = write(FILE.replace("SELECT id FROM orders WHERE country = 'nl'", "SELECT count(*) AS id FROM orders"))
    words = [each.words for each in deep_check(flow, spark)]
    assert any("a step before it looks beyond one batch (Aggregate)" in each for each in words), words
