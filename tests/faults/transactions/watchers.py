"""Readers of committed records that look at all topics all the while, one thread each, and note what they are shown."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import confluent_kafka

import penstock.blocking
from penstock.client.errors import ClientError
from penstock.testing.sim.transactions.readings import Reading, Shown
from tests.faults.cluster.readers import POLL_S, _librdkafka
from tests.faults.cluster.readers import kafka as kafka_python
from tests.faults.transactions.history import Place
from tests.patience import within


class Watcher(ABC):
    """`readings` are what it was shown of each partition, `positions` the offsets that come next."""

    def __init__(self, bootstrap: str, topics: Sequence[str], partitions: int) -> None:
        self.name = type(self).__name__.lower()
        self.bootstrap = bootstrap
        places = [(topic, partition) for topic in topics for partition in range(partitions)]
        self.positions: dict[Place, int] = dict.fromkeys(places, 0)
        self.readings: dict[Place, Reading] = {
            (topic, partition): Reading(self.name, f"{topic}-{partition}", committed_only=True, complete=True)
            for topic, partition in places
        }
        self.failures: list[str] = []
        self.stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=self.name)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self.stopping.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            self.work()
        except Exception as failure:
            self.failures.append(f"{self.name} ended: {failure!r}")

    @abstractmethod
    def work(self) -> None:
        """Reads until it is told to stop."""

    def note(self, topic: str, partition: int, offset: int, value: bytes | None) -> None:
        place = topic, partition
        self.readings[place].shown.append(Shown(offset, value, time.time()))
        self.positions[place] = max(self.positions[place], offset + 1)


class Confluent(Watcher):
    def work(self) -> None:
        more = {"enable.auto.commit": False, "isolation.level": "read_committed"}
        consumer = confluent_kafka.Consumer(_librdkafka(self.bootstrap, "unused", **more))
        consumer.assign([confluent_kafka.TopicPartition(*place, 0) for place in self.positions])
        while not self.stopping.is_set():
            for record in consumer.consume(500, timeout=POLL_S):
                # An error is a link that broke or a partition without a leader: the client goes on by itself.
                if record.error() is None:
                    self.note(record.topic(), record.partition(), record.offset(), record.value())
        consumer.close()


class Own(Watcher):
    def work(self) -> None:
        with penstock.blocking.Consumer(
            bootstrap_servers=self.bootstrap, offset_reset="earliest", isolation_level="read_committed",
            request_timeout_ms=within(5_000),
        ) as consumer:  # fmt: skip
            consumer.assign([*self.positions])
            while not self.stopping.is_set():
                try:
                    records = consumer.poll(max_records=500, timeout_ms=POLL_S * 1000)
                except ClientError as failure:
                    if not failure.retriable:
                        raise
                    continue
                for record in records:
                    self.note(record.topic, record.partition, record.offset, record.value)


class KafkaPython(Watcher):
    def work(self) -> None:
        consumer = kafka_python.KafkaConsumer(
            bootstrap_servers=self.bootstrap.split(","), auto_offset_reset="none", enable_auto_commit=False,
            group_id=None, request_timeout_ms=within(5_000), reconnect_backoff_ms=50, reconnect_backoff_max_ms=500,
            retry_backoff_ms=50, metadata_max_age_ms=2_000, fetch_max_wait_ms=200, isolation_level="read_committed",
        )  # fmt: skip
        places = {place: kafka_python.TopicPartition(*place) for place in self.positions}
        consumer.assign([*places.values()])
        self._seek(consumer, places)
        while not self.stopping.is_set():
            try:
                found = consumer.poll(timeout_ms=int(POLL_S * 1000), max_records=500)
            except kafka_python.errors.OffsetOutOfRangeError:
                # It believes a deposed leader that it still leads, whose log ends before what others have read.
                self._seek(consumer, places)
                continue
            for record in (record for records in found.values() for record in records):
                self.note(record.topic, record.partition, record.offset, record.value)
        consumer.close()

    def _seek(self, consumer: Any, places: dict[Place, Any]) -> None:
        for place, named in places.items():
            consumer.seek(named, self.positions[place])


EVERY: tuple[type[Watcher], ...] = (Confluent, Own, KafkaPython)
