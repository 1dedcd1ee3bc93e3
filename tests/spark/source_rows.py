"""What the tests of the source compare: rows of Spark beside records of a plain consumer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.blocking import Admin, Consumer
from penstock.model.ids import TopicPartition
from tests.patience import within
from tests.spark.starting import started

WAIT_S = 60


class Plain(NamedTuple):
    """A record, whoever read it."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    headers: tuple[tuple[str, bytes | None], ...] = ()


def consumed(bootstrap: str, *topics: str) -> list[Plain]:
    """Every record that the topics hold, by a plain consumer."""
    found = []
    with Admin(bootstrap_servers=bootstrap) as admin:
        ends = {
            TopicPartition(name, info.partition): info.end
            for name in topics
            for info in admin.describe_topic(name).partitions
            if info.end > info.start
        }
    with Consumer(bootstrap_servers=bootstrap, offset_reset="earliest") as consumer:
        consumer.assign(list(ends))
        while any(consumer.position(tp) < end for tp, end in ends.items()):
            for record in consumer.poll(timeout_ms=1000):
                headers = tuple((name, _bytes(value)) for name, value in record.headers)
                found.append(
                    Plain(
                        record.topic,
                        record.partition,
                        record.offset,
                        _bytes(record.key),
                        _bytes(record.value),
                        record.timestamp,
                        headers,
                    )
                )
    return sorted(found)


def plain(rows: Iterable[Row]) -> list[Plain]:
    """Rows of the source, headers included, as records."""
    return sorted(
        Plain(
            row.topic,
            row.partition,
            row.offset,
            _bytes(row.key),
            _bytes(row.value),
            round(row.timestamp.timestamp() * 1000),
            tuple((header.key, _bytes(header.value)) for header in (row.headers or ())) if "headers" in row else (),
        )
        for row in rows
    )


def read(spark: SparkSession, bootstrap: str, **options: Any) -> DataFrame:
    """A batch read; `__` stands for a dot."""
    reader = spark.read.format("penstock").option("kafka.bootstrap.servers", bootstrap)
    for name, value in options.items():
        reader = reader.option(name.replace("__", "."), value)
    return reader.load()


class Stream:
    """A streaming query whose rows are gathered on the driver, batch by batch."""

    def __init__(self, spark: SparkSession, bootstrap: str, checkpoint: Path, **options: Any) -> None:
        self.batches: dict[int, list[Row]] = {}
        reader = spark.readStream.format("penstock").option("kafka.bootstrap.servers", bootstrap)
        for name, value in options.items():
            reader = reader.option(name.replace("__", "."), value)
        self._writer = reader.load().writeStream.option("checkpointLocation", str(checkpoint))

    def start(self, broken: Callable[[int], bool] = lambda batch_id: False, **trigger: Any) -> StreamingQuery:
        def keep(frame: DataFrame, batch_id: int) -> None:
            if broken(batch_id):
                raise RuntimeError("broken on purpose")
            self.batches[batch_id] = frame.collect()

        writer = self._writer.foreachBatch(keep)
        return started(writer.trigger(**trigger) if trigger else writer)

    def drain(self) -> list[Row]:
        """Reads what there is, to its end; raises what the query raises."""
        query = self.start(availableNow=True)
        assert query.awaitTermination(within(WAIT_S)), "the query did not come to its end"
        return self.rows

    @property
    def rows(self) -> list[Row]:
        return [row for _, rows in sorted(self.batches.items()) for row in rows]


def _bytes(given: Any) -> bytes | None:
    return None if given is None else bytes(given)
