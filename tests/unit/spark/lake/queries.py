"""A streaming query without Spark: a hand-made checkpoint, and the sink's writers called as Spark calls them."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from penstock.model.ids import TopicPartition
from penstock.spark.lake.opening import open_store
from penstock.spark.lake.options import LakeOptions
from penstock.spark.lake.sink import LakeStreamWriter, TaskWrote
from penstock.spark.lake.store import TableStore
from penstock.spark.offsets import StreamOffset

TOPIC_ID = "bXlfdG9waWNfaWRfaGVyZQ"
NUMBERS = pa.schema([("n", pa.int64())])


class Query:
    """One query from a topic of two partitions into a table. Its checkpoint is lost by making another."""

    def __init__(
        self,
        home: Path,
        table: Path | str,
        *,
        schema: pa.Schema = NUMBERS,
        lake: Mapping[str, str] | None = None,
        **options: str,
    ) -> None:
        """`lake` are options by their own names, `options` by names with underscores for dots."""
        self.id = str(uuid.uuid4())
        self.checkpoint = home / f"checkpoint-{self.id[:8]}"
        (self.checkpoint / "offsets").mkdir(parents=True)
        (self.checkpoint / "metadata").write_text(json.dumps({"id": self.id}))
        self.schema: StructType = from_arrow_schema(schema)
        self.overwrite = False
        named = {name.replace("_", "."): value for name, value in options.items()}
        self.options = LakeOptions.of(
            {"path": str(table), "checkpointLocation": str(self.checkpoint), **named, **(lake or {})}
        )

    @property
    def store(self) -> TableStore:
        store = open_store(self.options)
        store.refresh()
        return store

    def plan(self, batch_id: int, *lines: str) -> None:
        """What Spark writes before a batch runs."""
        text = "\n".join(["v1", json.dumps({"batchTimestampMs": 1_700_000_000_000}), *lines])
        (self.checkpoint / "offsets" / str(batch_id)).write_text(text)

    def reads(self, batch_id: int, *ends: int, starts: Sequence[int] | None = None, topic: str = "orders") -> None:
        self.plan(batch_id, offset_line(*ends, starts=starts, topic=topic))

    def writer(self) -> LakeStreamWriter:
        return LakeStreamWriter(self.options, self.schema, self.overwrite)

    def written(self, *batches: Mapping[str, Sequence[Any]]) -> TaskWrote:
        """What one task wrote."""
        writer = self.writer()
        arrow = writer_schema(self.schema)
        return writer.write(iter([pa.RecordBatch.from_pydict(dict(rows), schema=arrow) for rows in batches]))

    def run(self, batch_id: int, numbers: Sequence[Any], column: str = "n") -> None:
        """Plays a batch that was planned: one task, one commit."""
        message = self.written({column: list(numbers)})
        self.writer().commit([message], batch_id)


def writer_schema(schema: StructType) -> pa.Schema:
    # Spark's batches carry the session's zone, not ours.
    return to_arrow_schema(schema, timezone="Etc/UTC")


def offset_line(
    *ends: int,
    starts: Sequence[int] | None = None,
    topic: str = "orders",
    bootstrap: str = "",
    topic_id: str = TOPIC_ID,
) -> str:
    def by_partition(offsets: Sequence[int]) -> dict[TopicPartition, int]:
        return {TopicPartition(topic, number): offset for number, offset in enumerate(offsets)}

    offset = StreamOffset(
        by_partition(ends), ids={topic: topic_id}, starts=by_partition(starts or ()), bootstrap=bootstrap
    )
    return json.dumps(offset.to_json())


def numbers(table: Path, column: str = "n") -> list[Any]:
    """A column as others read it."""
    import polars as pl

    return sorted(pl.read_delta(str(table))[column].to_list(), key=lambda value: (value is None, value))
