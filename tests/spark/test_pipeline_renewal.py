"""A table made anew by a changed file takes the place of the old one, and its sink goes on with its state."""

from __future__ import annotations

import json
import threading
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock.blocking import Admin, Producer
from penstock.spark.errors import BadOption
from penstock.spark.lake.audit import audit
from penstock.spark.lake.query import dataset_of
from penstock.spark.lake.warehouse import Warehouse
from penstock.spark.pipeline import home, swapping
from penstock.spark.pipeline.flow import Flow
from penstock.spark.pipeline.reading import read_flow
from penstock.spark.pipeline.renewing import Renewal, renewed
from penstock.spark.pipeline.retrying import Patience
from penstock.spark.pipeline.running import Runner
from penstock.spark.pipeline.swapping import carry_out, plan_swap
from penstock.spark.recount import recount_for

FILE = """
name = "shop"
bootstrap = "{bootstrap}"
[sources.orders]
topic = "{topic}"
format = "json"
schema = "id BIGINT, country STRING, at TIMESTAMP"
start = "earliest"
[[steps]]
name = "first"
sql = "SELECT id, {columns} FROM orders"
[[steps]]
name = "unique"
python = "unique_{module}:unique"
from = "first"
[sinks.lake]
from = "unique"
table = "orders"
"""
STEPS = """
def unique(rows):
    return rows.dropDuplicates([name for name in ("id", "country") if name in rows.columns])
"""


@pytest.fixture
def shop(bootstrap: str, topic: str, scratch: Path) -> Shop:
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topic(topic, 2)
    return Shop(bootstrap, topic, scratch)


class Shop:
    """The file, its topic and its warehouse. An order that comes twice is one row: that takes state."""

    def __init__(self, bootstrap: str, topic: str, folder: Path) -> None:
        self.bootstrap, self.topic, self.folder = bootstrap, topic, folder

    def flow(self, columns: str) -> Flow:
        module = self.topic.replace("-", "_")
        (self.folder / f"unique_{module}.py").write_text(STEPS)
        text = FILE.format(bootstrap=self.bootstrap, topic=self.topic, columns=columns, module=module)
        path = self.folder / "shop.toml"
        path.write_text(text)
        return read_flow(path)

    def send(self, *ids: int) -> None:
        with Producer(bootstrap_servers=self.bootstrap) as producer:
            for each in ids:
                row = {"id": each, "country": "nl", "at": "2026-11-01T00:00:00Z"}
                producer.send(self.topic, json.dumps(row).encode(), partition=each % 2)
            producer.flush()

    def rows(self, table: str) -> tuple[Counter[int], list[str]]:
        found = dataset_of(Warehouse(str(self.folder / "lake")).find(table).open()).to_table()
        return Counter(found["id"].to_pylist()), found.column_names

    def clean(self, table: str) -> bool:
        store = Warehouse(str(self.folder / "lake")).find(table).open()
        return audit(store, recount_for(store)).clean


def drained(flow: Flow, spark: SparkSession) -> str:
    runner = Runner(flow.once(), spark, patience=Patience(tries=1))
    state = runner.run(threading.Event())
    return home.failures_of(runner.progress().sinks) or state


def test_a_changed_query_is_told_what_to_do_and_the_way_there_works(
    shop: Shop, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.send(1, 2, 2, 3)
    assert drained(shop.flow("at"), spark) == home.FINISHED
    shop.send(3)
    changed = shop.flow("country, at")
    said = drained(changed, spark)
    assert "the steps of sink lake are not those that its checkpoint was made by" in said
    for command in (
        "penstock pipeline backfill shop.toml --sink lake --into orders_new",
        "penstock pipeline swap shop.toml --sink lake --with orders_new",
        "penstock pipeline reset shop --sink lake",
    ):
        assert f"`{command}`" in said

    work = Renewal("lake", "orders_new", "earliest")
    assert drained(renewed(changed, work), spark) == home.FINISHED
    shop.send(4)
    assert drained(renewed(changed, work), spark) == home.FINISHED, "begun again it goes on"
    assert shop.rows("orders_new") == (Counter([1, 2, 3, 4]), ["id", "country", "at"])
    assert shop.clean("orders_new")

    plan = plan_swap(changed, "lake", "orders_new")
    assert plan.words == "orders_new becomes orders; the old one is orders_before from then on"
    # Broken off between its moves, it is gone on with.
    moved: list[str] = []
    true_rename = swapping.os.rename

    def rename(old: str, new: str) -> None:
        if len(moved) in (1, 3):
            moved.append("broken off")
            raise KeyboardInterrupt
        moved.append(old)
        true_rename(old, new)

    monkeypatch.setattr(swapping.os, "rename", rename)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            carry_out(plan_swap(changed, "lake", "orders_new"))
    carry_out(plan_swap(changed, "lake", "orders_new"))
    monkeypatch.undo()
    with pytest.raises(BadOption, match="there is no table orders_new"):
        plan_swap(changed, "lake", "orders_new")

    shop.send(2, 4, 5)
    assert drained(changed, spark) == home.FINISHED
    assert shop.rows("orders") == (Counter([1, 2, 3, 4, 5]), ["id", "country", "at"])
    assert shop.rows("orders_before") == (Counter([1, 2, 3]), ["id", "at"])
    assert shop.clean("orders")
