"""A pipeline with everything in an object store, whose driver is killed and whose disk is gone with it: another driver
goes on with its windows, on a disk that has never seen any of it. Each record counts once."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from penstock.blocking import Admin
from penstock.spark.lake.audit import audit
from penstock.spark.lake.parquet_rows import rows_of
from penstock.spark.lake.store import TableStore
from penstock.spark.lake.warehouse import Warehouse
from penstock.spark.pipeline import home
from penstock.spark.pipeline.reading import read_flow
from penstock.spark.pipeline.retrying import Patience
from penstock.spark.pipeline.running import Runner
from tests.faults.counts import SOAKING
from tests.faults.spark.flow_driver import run_struck
from tests.faults.spark.strikes import COPY_POINTS, DRIVER, POINTS, Strike
from tests.object_store import ObjectStore, object_store

Produce = Callable[..., None]

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
RECORDS, BATCH, A_MINUTE = 300, 60, 25
"""Records of a minute come after each other, so windows are open across batches."""
KILLED = -9

FILE = """
name = "lost"
bootstrap = "{bootstrap}"
warehouse = "s3://{bucket}/lake"
{storage}
[catalog]
uri = "sqlite:///{catalog}"
[spark.settings]
"spark.sql.shuffle.partitions" = 2
[sources.clicks]
topic = "{topic}"
format = "json"
schema = "id BIGINT, at TIMESTAMP"
start = "earliest"
watermark = {{ column = "at", delay = "30 seconds" }}
options = {{ maxOffsetsPerTrigger = {batch} }}
[[steps]]
name = "minutes"
sql = "SELECT window.start AS minute, count(*) AS clicks, sum(id) AS ids FROM clicks GROUP BY window(at, '1 minute')"
[sinks.minutes]
from = "minutes"
table = "minutes"
table_format = "{table_format}"
[sinks.clicks]
from = "clicks"
table = "clicks"
"""


@pytest.fixture(scope="module")
def store_server() -> Iterator[ObjectStore]:
    with object_store() as running:
        yield running


# In `make test` a driver dies where it hurts most: the table has a batch and nobody else knows. The shared session is
# the one with another disk. What comes of a copy that is broken off is `tests/stores/test_copies.py` too.
FAST = [("iceberg", (("after-commit", 2),))]
FULL = [(kind, ((point, 1), (other, 3))) for kind in ("delta", "iceberg") for point, other in zip(
    (*COPY_POINTS, *POINTS), (*POINTS, *COPY_POINTS), strict=True)]  # fmt: skip


@pytest.mark.timeout(1_200 if SOAKING else 240)
@pytest.mark.parametrize(("table_format", "blows"), FULL if SOAKING else FAST)
def test_another_disk_goes_on_where_the_table_stands(
    spark: SparkSession,
    bootstrap: str,
    topic: str,
    scratch: Path,
    produce: Produce,
    store_server: ObjectStore,
    monkeypatch: pytest.MonkeyPatch,
    table_format: str,
    blows: tuple[tuple[str, int], ...],
) -> None:
    bucket = store_server.bucket()
    file = scratch / "lost.toml"
    file.write_text(
        FILE.format(
            bootstrap=bootstrap,
            bucket=bucket,
            storage=store_server.toml(),
            catalog=scratch / "catalog.db",
            topic=topic,
            batch=BATCH,
            table_format=table_format,
        )
    )
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topic(topic, 1)
    records = [(number, NOON + timedelta(minutes=number // A_MINUTE, seconds=number % 60)) for number in range(RECORDS)]
    produce(topic, [json.dumps({"id": number, "at": at.isoformat()}).encode() for number, at in records])

    log = scratch / "driver.log"
    for number, (point, batch) in enumerate(blows):
        strike = Strike(point, batch, DRIVER, scratch / f"mark-{number}")
        code = run_struck(file, "minutes", strike, scratch / f"disk-{number}", log)
        assert (code, strike.mark.exists()) == (KILLED, True), log.read_text()[-6_000:]
    monkeypatch.setenv("XDG_STATE_HOME", str(scratch / "the-last-disk"))
    runner = Runner(read_flow(file).once(), spark, patience=Patience(tries=1))
    runner.run(threading.Event())
    assert runner.state == home.FINISHED, runner.progress()

    lake = Warehouse(f"s3://{bucket}/lake", f"sqlite:///{scratch}/catalog.db", storage=store_server.settings)
    clicks = table(lake, "clicks")
    assert sorted(row["id"] for row in rows(clicks)) == list(range(RECORDS))
    wanted: Counter[datetime] = Counter()
    ids: Counter[datetime] = Counter()
    for number, at in records:
        wanted[at.replace(second=0)] += 1
        ids[at.replace(second=0)] += number
    # The last windows stay open: no record has come that would close them.
    closed = records[-1][1] - timedelta(seconds=30)
    found = rows(table(lake, "minutes"))
    assert sorted((row["minute"], row["clicks"], row["ids"]) for row in found) == [
        (minute, wanted[minute], ids[minute]) for minute in sorted(wanted) if minute + timedelta(minutes=1) <= closed
    ]
    for store in (clicks, table(lake, "minutes")):
        assert audit(store).clean, str(audit(store))


def table(lake: Warehouse, name: str) -> TableStore:
    return lake.find(name).open()


def rows(store: TableStore) -> list[dict[str, object]]:
    schema: pa.Schema = store.schema()
    return [
        row
        for file in store.files()
        for batch in rows_of(file.path, schema, file.partition, store.storage)
        for row in batch.to_pylist()
    ]
