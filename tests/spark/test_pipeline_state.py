"""Windows, joins and dedupe in a pipeline are Spark's own, with state in RocksDB; every kind of sink takes rows."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from pyspark.sql import SparkSession

from penstock.blocking import Admin
from penstock.spark.lake.audit import audit
from penstock.spark.lake.opening import open_store
from penstock.spark.lake.options import LakeOptions
from penstock.spark.pipeline import home
from penstock.spark.pipeline.reading import read_flow
from penstock.spark.pipeline.retrying import Patience
from penstock.spark.pipeline.running import Runner

Produce = Callable[..., None]

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)

FILE = """
name = "state"
bootstrap = "{bootstrap}"
[sources.clicks]
topic = "{topic}-clicks"
format = "json"
schema = "id BIGINT, page STRING, at TIMESTAMP"
start = "earliest"
watermark = {{ column = "at", delay = "1 minute" }}
[sources.orders]
topic = "{topic}-orders"
format = "json"
schema = "click BIGINT, amount DOUBLE, ordered TIMESTAMP"
start = "earliest"
watermark = {{ column = "ordered", delay = "1 minute" }}
[[steps]]
name = "minutes"
sql = \"\"\"
SELECT window.start AS minute, page, count(*) AS clicks
FROM clicks GROUP BY window(at, '1 minute'), page
\"\"\"
[[steps]]
name = "bought"
sql = \"\"\"
SELECT page, amount FROM clicks JOIN orders
ON id = click AND ordered BETWEEN at AND at + INTERVAL 5 MINUTES
\"\"\"
[[steps]]
name = "once"
python = "{steps}:once"
from = "clicks"
[sinks.minutes]
from = "minutes"
table = "minutes"
table_format = "iceberg"
[sinks.bought]
from = "bought"
parquet = "bought"
[sinks.seen]
from = "once"
foreach_batch = "{steps}:keep"
[sinks.look]
from = "clicks"
console = true
"""

STEPS = """
from pathlib import Path

def once(rows):
    return rows.dropDuplicatesWithinWatermark(["id"])

def keep(rows, batch):
    with (Path(__file__).parent / "seen.txt").open("a") as kept:
        kept.writelines(f"{{row.id}}\\n" for row in rows.collect())
"""


def at(minutes: float) -> str:
    return (NOON + timedelta(minutes=minutes)).isoformat()


@pytest.mark.timeout(240)
def test_windows_joins_and_dedupe_reach_every_kind_of_sink(
    spark: SparkSession, bootstrap: str, topic: str, scratch: Path, produce: Produce
) -> None:
    steps = f"steps_{topic.replace('-', '_')}"
    (scratch / f"{steps}.py").write_text(STEPS.format())
    path = scratch / "state.toml"
    path.write_text(FILE.format(bootstrap=bootstrap, topic=topic, steps=steps))
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topic(f"{topic}-clicks", 1)
        admin.create_topic(f"{topic}-orders", 1)
    clicks = [(1, "home", 0.1), (1, "home", 0.2), (2, "cart", 0.5), (3, "home", 1.5), (9, "late", 60)]
    orders = [(2, 12.5, 3.0), (3, 99.0, 30.0), (8, 1.0, 60)]
    produce(f"{topic}-clicks", [line(id=id, page=page, at=at(when)) for id, page, when in clicks])
    produce(f"{topic}-orders", [line(click=click, amount=paid, ordered=at(when)) for click, paid, when in orders])

    runner = Runner(read_flow(path).once(), spark, patience=Patience(tries=1))
    runner.run(threading.Event())

    assert runner.state == home.FINISHED, runner.progress()
    lake = scratch / "lake"
    store = open_store(LakeOptions(path=str(lake / "minutes"), table_format="iceberg"))
    store.refresh()
    minutes = pl.read_parquet([file.path for file in store.files()]).sort("minute", "page")
    assert minutes.rows() == [(NOON, "cart", 1), (NOON, "home", 2), (NOON + timedelta(minutes=1), "home", 1)]
    assert audit(store).clean
    assert pl.read_parquet(str(lake / "bought" / "*.parquet")).rows() == [("cart", 12.5)]
    assert sorted(map(int, (scratch / "seen.txt").read_text().split())) == [1, 2, 3, 9]

    produce(f"{topic}-clicks", [line(id=4, page="home", at=at(0.3))])
    again = Runner(read_flow(path).only(("minutes",)).once(), spark, patience=Patience(tries=1))
    again.run(threading.Event())
    assert (again.state, again.progress().sinks[0].late_rows) == (home.FINISHED, 1), again.progress()


def line(**fields: object) -> bytes:
    return json.dumps(fields).encode()
