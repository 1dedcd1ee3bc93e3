"""Lake tables read by libraries that are not ours, and compared with the topic that feeds them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.faults.node import read_all
from tests.patience import within

DELTA, ICEBERG = "delta", "iceberg"
FORMATS = (DELTA, ICEBERG)

Place = tuple[int, int]


@dataclass(frozen=True)
class Lake:
    """A table and the topic that feeds it."""

    format: str
    path: Path
    bootstrap: str
    topic: str
    partitions: int

    def sink_options(self) -> dict[str, str]:
        return {"table.format": self.format, "path": str(self.path), "rows": "record"}

    def source_options(self, limit: int) -> dict[str, str]:
        return {
            "kafka.bootstrap.servers": self.bootstrap,
            "subscribe": self.topic,
            "startingOffsets": "earliest",
            "maxOffsetsPerTrigger": str(limit),
        }

    def create_topic(self, records: int) -> None:
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        admin.create_topics([NewTopic(self.topic, self.partitions, 1)])[self.topic].result(within(30))
        self.produce(records)

    def produce(self, records: int) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap, "log_level": 0})
        for number in range(records):
            producer.produce(self.topic, b"value %d" % number, partition=number % self.partitions)
        assert producer.flush(within(60)) == 0

    def rows(self) -> list[tuple[int, int, bytes]]:
        """(partition, offset, value) of every row."""
        found = read_table(self.format, self.path).select(["partition", "offset", "value"])
        return list(zip(*(column.to_pylist() for column in found.columns), strict=True))

    def check_exactly_once(self) -> None:
        """Every record of the topic is a row, once, as it is; and the audit finds nothing."""
        rows = self.rows()
        twice = [place for place, times in Counter(row[:2] for row in rows).items() if times > 1]
        assert not twice, f"{len(twice)} offsets are there more than once, such as {sorted(twice)[:3]}"
        topic = read_all(self.bootstrap, self.topic, range(self.partitions))
        missing = sorted(set(topic) - {row[:2] for row in rows})
        assert not missing, f"{len(missing)} records are missing, such as {missing[:3]}"
        assert {row[:2]: row[2] for row in rows} == topic
        self.check_audit()

    def check_audit(self) -> None:
        from penstock.spark.lake.audit import audit
        from penstock.spark.lake.opening import open_store
        from penstock.spark.lake.options import LakeOptions

        found = audit(open_store(LakeOptions.of(self.sink_options())))
        assert found.clean, str(found)


def read_table(format: str, path: Path) -> pa.Table:
    """What deltalake's log, or pyiceberg's catalog, says is in the table."""
    if format == DELTA:
        from deltalake import DeltaTable

        table = DeltaTable(path)
        if not table.file_uris():
            return pa.schema(table.schema().to_arrow()).empty_table()
        return pyarrow.dataset.dataset(table.file_uris(), format="parquet").to_table()
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("default", uri=f"sqlite:///{path.parent}/catalog.db", warehouse=str(path.parent))
    return catalog.load_table(("default", path.name)).scan().to_arrow()


def files_under(path: Path) -> set[str]:
    """Every Parquet data file that lies in the table's directory, whether the table has it or not."""
    return {file.name for file in path.rglob("*.parquet") if "_delta_log" not in file.parts}


def files_of(format: str, path: Path) -> set[str]:
    """The data files that the table has."""
    if format == DELTA:
        from deltalake import DeltaTable

        return {Path(uri).name for uri in DeltaTable(path).file_uris()}
    raise AssertionError("only Delta is asked for its files here")
