"""The Spark query in a process: `python -m bench.soak.query BOOTSTRAP HOME`.

Micro-batches of one topic into a lake table: of every record its writer and number. At the end the table is asked
whether every record is in it once.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from bench.soak.lines import Errors, Orders, tell
from bench.soak.mix import QUERY_TOPIC

TRIGGER_S = 5
HEAP = "768m"
REPORT_S = 1.0
DRAIN_S = 120.0

COLUMNS = (
    "partition",
    "offset",
    "cast(conv(hex(substring(value, 1, 4)), 16, 10) as int) as writer",
    "cast(conv(hex(substring(value, 5, 8)), 16, 10) as bigint) as sequence",
)

# Numbers from 0 on without a gap and without a double have exactly this sum, and these ends.
WHOLE = """
    select partition, writer, count(*), min(sequence), max(sequence), sum(sequence::hugeint) * 2
    from read_parquet($files) group by all order by all
"""


def start(bootstrap: str, home: Path) -> Any:
    import penstock.spark

    settings = {
        "spark.driver.memory": HEAP,
        "spark.log.level": "ERROR",
        "spark.sql.streaming.numRecentProgressUpdates": "5",
    }
    spark = penstock.spark.session("local[2,4]", app_name="soak", settings=settings)
    records = (
        spark.readStream.format("penstock")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", QUERY_TOPIC)
        .option("startingOffsets", "earliest")
        .option("columns", "partition,offset,value")
        .load()
    )
    writer = records.selectExpr(*COLUMNS).writeStream.format("penstock-lake").option("path", str(home / "table"))
    writer = writer.option("rows", "record").option("checkpointLocation", str(home / "checkpoint"))
    return writer.queryName("soak").trigger(processingTime=f"{TRIGGER_S} seconds").start()


def progress(query: Any) -> dict[str, float]:
    """How far the last batch came, and how long it took."""
    last = query.lastProgress
    if last is None:
        return {"end": 0, "batch_s": 0.0, "batch": -1}
    ends = json.loads(last["sources"][0]["endOffset"] or "{}")
    return {"end": _sum(ends), "batch_s": last["batchDuration"] / 1000, "batch": last["batchId"]}


def _sum(ends: Any) -> int:
    """Of the offsets, whatever stands around them."""
    found = ends.get("offsets", ends)
    return sum(offset for offset in found[QUERY_TOPIC].values()) if QUERY_TOPIC in found else 0


def check(table: Path, total: int) -> list[str]:
    """What is wrong with the table, in words."""
    import duckdb

    rows = duckdb.execute(WHOLE, {"files": _files(table)}).fetchall()
    wrong = [
        f"partition {partition}, writer {writer}: {count} rows with numbers {first} to {last}"
        for partition, writer, count, first, last, double in rows
        if first != 0 or count != last + 1 or double != last * (last + 1)
    ]
    found = sum(row[2] for row in rows)
    if found != total:
        wrong.append(f"{found} rows of {total} records")
    return wrong


def _files(table: Path) -> list[str]:
    from deltalake import DeltaTable

    return list(DeltaTable(str(table)).file_uris())


def main() -> None:
    from pyspark.sql import SparkSession

    bootstrap, home = sys.argv[1], Path(sys.argv[2])
    orders, errors = Orders(), Errors()
    query = start(bootstrap, home)
    drain_until = None
    while True:
        report = progress(query)
        tell(report, errors)
        if not query.isActive:
            errors.add(f"the query ended: {str(query.exception()).splitlines()[:3]}")
            break
        if orders.ending.is_set():
            drain_until = drain_until or time.monotonic() + DRAIN_S
            if report["end"] >= orders.totals.get(QUERY_TOPIC, 0):
                break
            if time.monotonic() > drain_until:
                errors.add(f"the query did not come to the end within {DRAIN_S:.0f} s")
                break
        time.sleep(REPORT_S)
    report = progress(query)
    query.stop()
    wrong = check(home / "table", orders.totals.get(QUERY_TOPIC, 0))
    for words in wrong:
        errors.add(f"table: {words}")
    tell({**report, "breaks": len(wrong), "files": len(_files(home / "table")), "done": True}, errors)
    SparkSession.active().stop()


if __name__ == "__main__":
    main()
