"""A pipeline file on the shared session: sinks end to end, failures that stay where they are, lost checkpoints."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from penstock.blocking import Admin, Consumer
from penstock.model.ids import TopicPartition
from penstock.spark.pipeline import home
from penstock.spark.pipeline.backfilling import Backfill, backfill
from penstock.spark.pipeline.deep_check import deep_check
from penstock.spark.pipeline.flow import Flow
from penstock.spark.pipeline.reading import read_flow
from penstock.spark.pipeline.retrying import Patience
from penstock.spark.pipeline.running import Runner
from penstock.spark.pipeline.sql_check import sql_check

Produce = Callable[..., None]

ONE_TRY = Patience(tries=1)

FILE = """
name = "shop"
bootstrap = "{bootstrap}"
[sources.orders]
topic = "{topic}"
format = "json"
schema = "id BIGINT, country STRING, amount DOUBLE"
start = "earliest"
dead_letters = "topic:{topic}-dead"
[[steps]]
name = "doubled"
python = "{steps}:double"
from = "orders"
[[steps]]
name = "totals"
sql = \"\"\"
SELECT country, sum(amount) AS total
FROM doubled
GROUP BY country
\"\"\"
[sinks.lake]
from = "orders"
table = "orders"
partition_by = ["country"]
[sinks.totals]
from = "totals"
topic = "{topic}-totals"
mode = "update"
key = "country"
"""

STEPS = """
from pyspark.sql import functions as f

def double(rows):
    return rows.withColumn("amount", f.col("amount") * 2)

def explode(rows, batch):
    raise OSError("disk full")
"""


@pytest.fixture
def write(bootstrap: str, topic: str, scratch: Path) -> Callable[..., Flow]:
    """write(more): the flow of a file in the scratch directory, whose topics are there."""
    steps = f"steps_{topic.replace('-', '_')}"
    (scratch / f"{steps}.py").write_text(STEPS)
    with Admin(bootstrap_servers=bootstrap) as admin:
        for name in (topic, f"{topic}-totals", f"{topic}-dead"):
            admin.create_topic(name, 2)

    def make(more: str = "") -> Flow:
        path = scratch / "shop.toml"
        path.write_text((FILE + more).format(bootstrap=bootstrap, topic=topic, steps=steps))
        return read_flow(path)

    return make


def orders(*ids: int) -> list[bytes | None]:
    return [json.dumps({"id": i, "country": "nl" if i % 2 else "de", "amount": 1.0}).encode() for i in ids]


def ids_in(path: str) -> list[int]:
    table = DeltaTable(path)
    files = ds.dataset(table.file_uris(), format="parquet")
    return sorted(files.to_table(columns=["id"]).column("id").to_pylist())


def records_of(bootstrap: str, topic: str, count: int) -> list[tuple[str, dict[str, object]]]:
    found = []
    with Consumer(topic, bootstrap_servers=bootstrap, group_id=None, offset_reset="earliest") as consumer:
        for record in consumer:
            found.append((record.key.decode(), json.loads(record.value)))
            if len(found) == count:
                break
    return found


def count_of(bootstrap: str, topic: str) -> int:
    with Admin(bootstrap_servers=bootstrap) as admin:
        partitions = [TopicPartition(topic, number) for number in range(2)]
        ends = admin.offsets(dict.fromkeys(partitions, "latest")).checked()
        return sum(each.offset for each in ends.values())


def run(flow: Flow, spark: SparkSession, patience: Patience = ONE_TRY) -> Runner:
    runner = Runner(flow, spark, patience=patience)
    runner.run(threading.Event())
    return runner


def test_two_sinks_go_on_from_their_checkpoints_and_a_table_without_one_from_its_own_offsets(
    spark: SparkSession, bootstrap: str, topic: str, produce: Produce, write: Callable[..., Flow]
) -> None:
    flow = write().once()
    table = flow.table_path(flow.sinks[0])
    produce(topic, [*orders(0, 1, 2), b"no JSON"])
    first = run(flow, spark)
    assert first.state == home.FINISHED, first.progress()
    assert [(sink.state, sink.rows) for sink in first.progress().sinks] == [("finished", 3), ("finished", 3)]
    assert ids_in(table) == [0, 1, 2]
    assert count_of(bootstrap, f"{topic}-dead") == 1, "both sinks met the bad record, and it is there once"

    produce(topic, orders(3, 4))
    assert run(flow, spark).state == home.FINISHED
    assert ids_in(table) == [0, 1, 2, 3, 4]
    assert sorted(records_of(bootstrap, f"{topic}-totals", 4), key=str) == [
        ("de", {"country": "de", "total": 4.0}),
        ("de", {"country": "de", "total": 6.0}),
        ("nl", {"country": "nl", "total": 2.0}),
        ("nl", {"country": "nl", "total": 4.0}),
    ]

    shutil.rmtree(flow.checkpoint(flow.sinks[0]))
    produce(topic, orders(5))
    again = run(flow.only(("lake",)), spark)
    assert (again.state, again.progress().sinks[0].rows) == (home.FINISHED, 1)
    assert ids_in(table) == [0, 1, 2, 3, 4, 5]


def test_one_sinks_failure_leaves_the_other_unharmed(
    spark: SparkSession, topic: str, produce: Produce, write: Callable[..., Flow]
) -> None:
    flow = write('[sinks.bad]\nfrom = "orders"\nforeach_batch = "{steps}:explode"\n').once().only(("lake", "bad"))
    produce(topic, orders(0, 1))
    runner = run(flow, spark, Patience(first_s=0.05, tries=2))
    lake, bad = runner.progress().sinks
    assert (runner.state, lake.state, bad.state) == (home.FAILED, "finished", "failed")
    assert bad.error.startswith("OSError: disk full (steps_")
    assert bad.failures == 2
    assert ids_in(flow.table_path(flow.sinks[0])) == [0, 1]


def test_spark_finds_what_names_alone_do_not_tell(spark: SparkSession, write: Callable[..., Flow]) -> None:
    assert deep_check(write(), spark) == []
    more = '[[steps]]\nname = "odd"\nsql = """\nSELECT id, amout\nFROM orders"""\n'
    more += '[sinks.x]\nfrom = "odd"\nconsole = true\n'
    more += '[sinks.y]\nfrom = "totals"\ntopic = "{topic}-totals"\n'
    odd, append = deep_check(write(more), spark)
    assert (odd.line, odd.column) == (33, 12)
    assert odd.words.startswith("step odd: the SQL names a column that its input has not")
    assert append.words.startswith("sink y: the rows are aggregates that may still change: say mode")


ODD_SQL = {
    "SELEC id FROM orders": "step odd: the SQL is no SQL ([PARSE_SYNTAX_ERROR] Syntax error at or near",
    "SELECT id, amout FROM orders": "step odd: the SQL names a column that its input has not",
    "SELECT id + map(1, 2) FROM orders": "step odd: [DATATYPE_MISMATCH",
    "SELECT country, _offset FROM orders": "step odd: the SQL names a column that its input has not",
    "SELECT id AS key FROM orders": "key = 'country' is no column of odd; there is 'key'",
    "SELECT nonsense FROM totals )": "step odd: the SQL is no SQL",
    # What reads a step in Python is parsed only: nobody runs that to see its columns.
    "SELECT nonsense FROM totals": "",
    "SELECT country, my_function(id) FROM orders": "",
    "SELECT country, sum(amount) AS total FROM orders GROUP BY country": "",
}


def test_sql_is_analyzed_against_the_columns_that_the_file_says(
    spark: SparkSession, write: Callable[..., Flow]
) -> None:
    sink = '[sinks.x]\nfrom = "odd"\ntopic = "{topic}-totals"\nkey = "country"\n'
    for sql, said in ODD_SQL.items():
        flow = write(f'[[steps]]\nname = "odd"\nsql = "{sql}"\n{sink}').on(bootstrap="127.0.0.1:1")
        found = sql_check(flow, spark)
        assert [each.words.startswith(said) for each in found] == ([True] if said else []), (sql, found)


def test_a_backfill_fills_a_table_of_its_own(
    spark: SparkSession, topic: str, produce: Produce, write: Callable[..., Flow]
) -> None:
    flow = write().only(("lake",))
    produce(topic, orders(0, 1, 2))
    run(flow.once(), spark)
    with pytest.raises(ValueError, match="--into orders_backfill"):
        backfill(spark, flow, Backfill("earliest"))
    for _ in range(2):
        backfill(spark, flow, Backfill("earliest", into="again"))
        assert ids_in(f"{flow.warehouse}/again") == [0, 1, 2]
