"""Lake tables read by libraries that are not ours, and compared with the topic that feeds them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.faults.node import read_all
from tests.patience import Patience, within

DELTA, ICEBERG = "delta", "iceberg"
FORMATS = (DELTA, ICEBERG)

Place = tuple[int, int]

A_TRANSACTION = 70
"""Records; batches of the tests end inside of transactions."""
READ_TIMEOUT_S = 30.0


@dataclass(frozen=True)
class Lake:
    """A table and the topic that feeds it."""

    format: str
    path: Path
    bootstrap: str
    topic: str
    partitions: int
    transactional: bool = False
    """Records come in transactions, and between them as many that are aborted: those must never be in the table."""

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
        if self.transactional:
            self._transact(records)
            return
        producer = Producer({"bootstrap.servers": self.bootstrap, "log_level": 0})
        for number in range(records):
            producer.produce(self.topic, b"value %d" % number, partition=number % self.partitions)
        assert producer.flush(within(60)) == 0

    def _transact(self, records: int) -> None:
        """The topic ends with a transaction that is aborted, and with its markers."""
        producer = Producer({"bootstrap.servers": self.bootstrap, "log_level": 0, "transactional.id": self.topic})
        producer.init_transactions(within(30))
        for start in range(0, records, A_TRANSACTION):
            numbers = range(start, min(start + A_TRANSACTION, records))
            for word, end in (("value", producer.commit_transaction), ("aborted", producer.abort_transaction)):
                producer.begin_transaction()
                for number in numbers:
                    producer.produce(self.topic, f"{word} {number}", partition=number % self.partitions)
                assert producer.flush(within(60)) == 0
                end(within(30))

    def topic_records(self) -> dict[Place, bytes]:
        if self.transactional:
            return read_committed(self.bootstrap, self.topic, self.partitions)
        return read_all(self.bootstrap, self.topic, range(self.partitions))

    def rows(self) -> list[tuple[int, int, bytes]]:
        """(partition, offset, value) of every row."""
        found = read_table(self.format, self.path).select(["partition", "offset", "value"])
        return list(zip(*(column.to_pylist() for column in found.columns), strict=True))

    def check_exactly_once(self) -> None:
        """Every record of the topic is a row, once, as it is; and the audit finds nothing."""
        rows = self.rows()
        twice = [place for place, times in Counter(row[:2] for row in rows).items() if times > 1]
        assert not twice, f"{len(twice)} offsets are there more than once, such as {sorted(twice)[:3]}"
        topic = self.topic_records()
        assert not any(value.startswith(b"aborted") for value in topic.values()), "the judge reads what is committed"
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


def read_committed(address: str, topic: str, partitions: int) -> dict[Place, bytes]:
    """Every committed record of a topic: offsets of markers and of what was aborted are not there."""
    consumer = Consumer({
        "bootstrap.servers": address, "group.id": "judge", "enable.auto.commit": False, "auto.offset.reset": "error",
        "enable.partition.eof": True, "check.crcs": True, "isolation.level": "read_committed",
    })  # fmt: skip
    found: dict[Place, bytes] = {}
    try:
        for partition in range(partitions):
            consumer.assign([TopicPartition(topic, partition, 0)])
            patience = Patience(READ_TIMEOUT_S)
            while (record := consumer.poll(0.5)) is None or record.error() is None:
                assert not patience.over(), f"{topic}-{partition} did not come to its end"
                if record is not None:
                    found[partition, record.offset()] = record.value()
            if record.error().code() != KafkaError._PARTITION_EOF:
                raise KafkaException(record.error())
    finally:
        consumer.close()
    return found


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
