"""Pipeline files for tests."""

from __future__ import annotations

from pathlib import Path

from penstock.spark.pipeline.flow import Flow
from penstock.spark.pipeline.reading import examine

WHOLE = '''\
name = "orders"
bootstrap = "broker:9092"
warehouse = "lake"
[spark]
master = "local[2,4]"
settings = { "spark.sql.shuffle.partitions" = 4, "spark.ui.enabled" = false }
[sources.orders]
topic = "orders"
format = "json"
schema = "id BIGINT, country STRING, amount DOUBLE, at TIMESTAMP"
start = "earliest"
dead_letters = "topic:orders.dead"
watermark = { column = "at", delay = "10 minutes" }
options = { maxOffsetsPerTrigger = 100000 }
[[steps]]
name = "totals"
sql = """
SELECT country, sum(amount) AS total
FROM paid GROUP BY country
"""
[[steps]]
name = "paid"
sql = "SELECT * FROM orders WHERE amount > 0"
[sinks.lake]
from = "paid"
table = "orders"
partition_by = ["country"]
[sinks.raw]
from = "orders"
table = "raw"
trigger = "1 minute"
[sinks.totals]
from = "totals"
topic = "totals"
mode = "update"
key = "country"
'''


def changed(*pairs: tuple[str, str], text: str = WHOLE) -> str:
    for before, after in pairs:
        assert before in text, before
        text = text.replace(before, after, 1)
    return text


def flow_of(text: str = WHOLE, path: Path = Path("/somewhere/orders.toml")) -> Flow:
    found = examine(text, path)
    assert found.flow is not None, found.mistakes
    return found.flow


def complaints(text: str, path: Path = Path("/somewhere/orders.toml")) -> list[str]:
    """line:column: words, in the order of the file."""
    return [f"{each.line}:{each.column}: {each.words}" for each in examine(text, path).mistakes]
