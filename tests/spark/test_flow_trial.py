"""The test kit for pipelines, on pipelines that use all of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock.testing.pipeline import Letter, PipelineTrial, SettleFailed, run_flow

FILE = """
name = "shop"
bootstrap = "real.example:9092"
warehouse = "s3://real/lake"
[kafka]
"security.protocol" = "SSL"
[sources.orders]
topic = "orders"
format = "json"
schema = "id BIGINT, country STRING, amount DOUBLE, at TIMESTAMP"
dead_letters = "topic:orders.dead"
watermark = { column = "at", delay = "5 minutes" }
[[steps]]
name = "totals"
sql = "SELECT window.start AS start, sum(amount) AS total FROM orders GROUP BY window(at, '10 minutes')"
[[steps]]
name = "priced"
python = "trial_steps:priced"
from = "orders"
[sinks.lake]
from = "priced"
table = "/real/place/orders"
dead_letters = "table:/real/place/dead"
[sinks.lake.expect]
small = { rule = "amount < 100", otherwise = "dead" }
[sinks.totals]
from = "totals"
topic = "totals"
key = "start"
exactly_once = true
[sinks.each]
from = "orders"
table = "orders_{country}"
"""


@pytest.fixture
def flow(spark: SparkSession, scratch: Path) -> Iterator[PipelineTrial]:
    (scratch / "trial_steps.py").write_text(
        "from pyspark.sql import functions as f\ndef priced(rows):\n"
        "    return rows.select('id', (f.col('amount') * 2).alias('amount'))\n"
    )
    (scratch / "shop.toml").write_text(FILE)
    with run_flow(scratch / "shop.toml", spark) as trial:
        yield trial


def test_rows_in_rows_out_and_time_moved(flow: PipelineTrial) -> None:
    assert flow.table("lake") == []
    assert flow.topic("totals") == []
    first = "2026-11-01T08:00:00Z"
    flow.give("orders", [{"id": 1, "country": "nl", "amount": 1.5, "at": first}], key="country")
    flow.give("orders", [{"id": 2, "country": "it", "amount": 60.0, "at": first}, "no JSON"], at=first)
    flow.settle()
    assert flow.table("lake") == [{"id": 1, "amount": 3.0}]
    assert flow.dead("orders")[0].value == "no JSON"
    (letter,) = flow.dead("lake")
    assert letter == Letter('{"id": 2, "amount": 120.0}', "expectation small does not hold: amount < 100")
    assert [row["id"] for row in flow.table("orders_it")] == [2]
    assert flow.topic("totals") == [], "the window is open"

    flow.advance(minutes=20)
    flow.give("orders", [{"id": 3, "country": "nl", "amount": 1.0, "at": "2026-11-01T08:20:00Z"}])
    flow.settle()
    (total,) = flow.topic("totals")
    assert total.json()["total"] == 61.5
    assert [row["id"] for row in flow.table("orders_nl")] == [1, 3]


def test_records_have_the_time_that_was_moved(flow: PipelineTrial, spark: SparkSession) -> None:
    flow.give("orders", ["{}"])
    flow.advance(hours=2)
    flow.give("orders", ["{}"])
    options = {"kafka.bootstrap.servers": flow.broker.bootstrap_servers, "subscribe": "orders"}
    times = spark.read.format("penstock").options(**options).load().orderBy("offset").select("timestamp").collect()
    assert 7200 <= (times[1][0] - times[0][0]).total_seconds() < 7260


def test_a_sink_that_fails_says_so_and_a_letter_without_a_place_too(flow: PipelineTrial) -> None:
    flow.give("orders", [{"id": 1, "country": None, "amount": 1.0, "at": "2026-11-01T08:00:00Z"}])
    with pytest.raises(SettleFailed, match=r"each.*null names no table"):
        flow.settle()
    with pytest.raises(LookupError, match="each keeps no dead letters"):
        flow.dead("each")
