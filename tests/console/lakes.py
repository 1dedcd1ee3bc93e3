"""Small tables as the sink of a pipeline leaves them, of records that are in a topic; and what pipelines tell."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.blocking import Admin
from penstock.spark.feed import Feed
from penstock.spark.lake.opening import open_store
from penstock.spark.lake.options import LakeOptions
from penstock.spark.lake.ranges import TableRange
from penstock.spark.lake.store import FEED_PROPERTY, BatchCommit, TableStore, WrittenFile
from penstock.spark.progress.records import PartitionProgress, PipelineRecord, ProgressRecord
from penstock.spark.progress.status import tell

SCHEMA = pa.schema(
    [("number", pa.int64()), ("text", pa.string()), ("_topic", pa.string()), ("_partition", pa.int32()),
     ("_offset", pa.int64())]
)  # fmt: skip


def table_of(warehouse: Path, name: str, topic: str, *, table_format: str = "delta", feed: bool = True) -> TableStore:
    """An empty table that says which topic feeds it, unless that is not to be known."""
    told = Feed("nowhere:9092", topics=(topic,), rows="record", query=f"{name}-lake").to_property()
    options = LakeOptions.of({"path": str(warehouse / name), "table.format": table_format})
    store = open_store(options)
    store.create(SCHEMA, [], {FEED_PROPERTY: told} if feed else {})
    store.refresh()
    return store


def commit(
    store: TableStore,
    topic: str,
    topic_id: str,
    start: int,
    end: int,
    *,
    batch: int,
    query_id: str = "query-of-orders",
    dead: Sequence[int] = (),
    partition: int = 0,
) -> None:
    """Offsets [start, end) of a partition, a row each but for the dead letters."""
    offsets = [offset for offset in range(start, end) if offset not in dead]
    rows = pa.table(
        {
            "number": [offset + (1 << 60) for offset in offsets],
            "text": [f"secret of {topic} {offset}" for offset in offsets],
            "_topic": [topic] * len(offsets),
            "_partition": [partition] * len(offsets),
            "_offset": offsets,
        },
        schema=SCHEMA,
    )
    where = Path(store.layout().directory) / f"{uuid.uuid4()}.parquet"
    where.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, where)
    file = WrittenFile(where.name, where.stat().st_size, len(offsets), {}, json.dumps({"numRecords": len(offsets)}))
    span = TableRange(topic, topic_id, partition, start, end, 0)
    store.commit(BatchCommit(query_id, batch, (span,), (file,), rows=len(offsets), dead=len(dead)))


def topic_id(admin: Admin, topic: str) -> str:
    return admin.describe_topic(topic).id


def pipeline_told(
    settings: dict[str, Any],
    name: str,
    topic: str,
    *,
    offset: int,
    end: int,
    query_id: str = "query-of-orders",
    batch: int = 3,
    state: str = "running",
    error: str = "",
    file: str = "/srv/orders.toml",
    host: str = "worker-7",
) -> None:
    """What a driver tells of a pipeline with one sink, `lake`."""
    reach = {key: value for key, value in settings.items() if key != "bootstrap_servers"}
    now_ms = time.time_ns() // 1_000_000
    records: list[PipelineRecord | ProgressRecord] = [
        ProgressRecord(
            name,
            f"{name}-lake",
            query_id,
            "run-1",
            batch,
            now_ms,
            rows=40,
            input_rows_per_s=12.5,
            processed_rows_per_s=12.5,
            batch_ms=800,
            durations_ms={"addBatch": 500, "latestOffset": 100, "triggerExecution": 800},
            watermark="2026-01-01T00:00:00.000Z",
            state_rows=7,
            partitions=(PartitionProgress(topic, 0, offset, end),),
            active=state == "running",
            error=error,
        ),
        PipelineRecord(
            name, state, host, 4711, now_ms, now_ms, master="local[*]", file=file, error=error, heartbeat_ms=600_000
        ),
    ]
    for record in records:
        assert tell(settings["bootstrap_servers"], record, reach)
