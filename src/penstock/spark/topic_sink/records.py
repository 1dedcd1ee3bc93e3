"""Arrow batches as Spark hands them out, as records by topic."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from penstock.spark.errors import SparkRoomError

SENT: Final = ("key", "value", "headers", "partition", "timestamp")


class NoTopic(SparkRoomError):
    """A row has no topic: the option is not set and the column is null."""


def by_topic(batch: pa.RecordBatch, topic: str | None) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Rows by the topic they go to, in their order; `topic` wins over the column."""
    columns = [name for name in SENT if name in batch.schema.names]
    records = batch.select(columns)
    if topic is not None:
        yield topic, records
        return
    topics = batch.column("topic")
    if topics.null_count:
        row = pc.index(pc.is_null(topics), True).as_py()
        raise NoTopic(
            f"{topics.null_count} rows have no topic (the first of them is row {row} of its batch): fill the column "
            "'topic', or set the option topic, which then counts for all rows"
        )
    names = pc.unique(topics).to_pylist()
    for name in names:
        yield name, records if len(names) == 1 else records.filter(pc.equal(topics, name))
