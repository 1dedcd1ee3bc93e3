"""Consumers that go on whatever happens, one thread each, and note every record they get."""

from __future__ import annotations

import logging
import threading
import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import confluent_kafka

import penstock.blocking
from penstock.client.errors import ClientError
from tests.faults.cluster.history import History, Read
from tests.faults.cluster.logins import OPEN, Login
from tests.patience import within

# The library reads its schemas through a call that Python 3.11 deprecates; warnings are errors here.
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka

POLL_S = 0.2


class Reader(ABC):
    """Reads a topic from its start. `positions` are the offsets that come next, for those who wait for it."""

    reads_trust_once = False
    """Whether it looks at whom to trust only when it begins; such a client begins `anew` when it is told to."""

    def __init__(
        self, bootstrap: str, topic: str, partitions: Sequence[int], history: History, login: Login = OPEN
    ) -> None:
        self.name = f"{type(self).__name__.lower()}"
        self.bootstrap, self.topic, self.partitions, self.history = bootstrap, topic, list(partitions), history
        self.login = login
        self.anew = threading.Event()
        """Set by whoever wants it to begin again; cleared when it has."""
        self.assignment = 0
        self.positions = dict.fromkeys(partitions, 0)
        self.failures: list[str] = []
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=self.name)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            self.work()
        except Exception as failure:
            logging.getLogger(__name__).exception("%s has ended", self.name)
            self.failures.append(f"the client ended: {failure!r}")

    @abstractmethod
    def work(self) -> None:
        """Reads until it is told to stop."""

    def note(self, partition: int, offset: int, value: bytes) -> None:
        self.history.reads.append(Read(self.name, self.assignment, partition, offset, value.decode()))
        self.positions[partition] = max(self.positions[partition], offset + 1)

    def began(self, *_: Any) -> None:
        """A new assignment: it may go back to what was committed."""
        self.assignment += 1


def _librdkafka(bootstrap: str, group: str, **more: Any) -> dict[str, Any]:
    return {
        "bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest",
        "socket.timeout.ms": within(5_000), "socket.connection.setup.timeout.ms": within(2_000),
        "reconnect.backoff.ms": 50, "reconnect.backoff.max.ms": 500, "topic.metadata.refresh.interval.ms": 2_000,
        "fetch.wait.max.ms": 200,
        "fetch.error.backoff.ms": 50, "check.crcs": True, "log_level": 0, **more,
    }  # fmt: skip


class ConfluentAssigned(Reader):
    reads_trust_once = True

    def work(self) -> None:
        while not self._stopping.is_set():
            consumer = self._consumer()
            self.anew.clear()
            self._drain(consumer)

    def _consumer(self) -> Any:
        more = {"enable.auto.commit": False, **self.login.librdkafka}
        consumer = confluent_kafka.Consumer(_librdkafka(self.bootstrap, "unused", **more))
        consumer.assign([confluent_kafka.TopicPartition(self.topic, *at) for at in self.positions.items()])
        return consumer

    def _drain(self, consumer: Any) -> None:
        while not self._stopping.is_set() and not self.anew.is_set():
            for record in consumer.consume(200, timeout=POLL_S):
                # An error is a link that broke or a partition without a leader: the client goes on by itself.
                if record.error() is None:
                    self.note(record.partition(), record.offset(), record.value())
        consumer.close()


class ConfluentMember(ConfluentAssigned):
    def _consumer(self) -> Any:
        timing = {"session.timeout.ms": within(6_000), "heartbeat.interval.ms": 500, "auto.commit.interval.ms": 500}
        more = {**timing, **self.login.librdkafka}
        consumer = confluent_kafka.Consumer(_librdkafka(self.bootstrap, "confluent-members", **more))
        consumer.subscribe([self.topic], on_assign=self.began)
        return consumer


class OwnAssigned(Reader):
    def work(self) -> None:
        with penstock.blocking.Consumer(
            bootstrap_servers=self.bootstrap, offset_reset="earliest", request_timeout_ms=within(5_000),
            **self.login.own,
        ) as consumer:  # fmt: skip
            consumer.assign([(self.topic, partition) for partition in self.partitions])
            while not self._stopping.is_set():
                try:
                    records = consumer.poll(max_records=200, timeout_ms=POLL_S * 1000)
                except ClientError as failure:
                    if not failure.retriable:
                        raise
                    continue
                for record in records:
                    self.note(record.partition, record.offset, record.value or b"")


class OwnMember(Reader):
    def work(self) -> None:
        while not self._stopping.is_set():
            self._work()

    def _work(self) -> None:
        with penstock.blocking.Consumer(
            bootstrap_servers=self.bootstrap, group_id="own-members", group_protocol="consumer",
            offset_reset="earliest", request_timeout_ms=within(5_000), auto_commit_interval_ms=500,
            **self.login.own,
        ) as consumer:  # fmt: skip
            self.anew.clear()
            consumer.subscribe([self.topic], on_assigned=self.began)
            while not self._stopping.is_set() and not self.anew.is_set():
                try:
                    records = consumer.poll(max_records=200, timeout_ms=POLL_S * 1000)
                except ClientError as failure:
                    if not failure.retriable:
                        raise
                    continue
                for record in records:
                    self.note(record.partition, record.offset, record.value or b"")


class KafkaPythonAssigned(Reader):
    def work(self) -> None:
        consumer = kafka.KafkaConsumer(
            bootstrap_servers=self.bootstrap.split(","), auto_offset_reset="none", enable_auto_commit=False,
            group_id=None, request_timeout_ms=within(5_000), reconnect_backoff_ms=50, reconnect_backoff_max_ms=500,
            retry_backoff_ms=50, metadata_max_age_ms=2_000, fetch_max_wait_ms=200,
        )  # fmt: skip
        places = {partition: kafka.TopicPartition(self.topic, partition) for partition in self.partitions}
        consumer.assign(list(places.values()))
        self._seek(consumer, places)
        while not self._stopping.is_set():
            try:
                found = consumer.poll(timeout_ms=int(POLL_S * 1000), max_records=200)
            except kafka.errors.OffsetOutOfRangeError:
                # It believes a deposed leader that it still leads, whose log ends before what others have read.
                self._seek(consumer, places)
                continue
            for records in found.values():
                for record in records:
                    self.note(record.partition, record.offset, record.value)
        consumer.close()

    def _seek(self, consumer: Any, places: dict[int, Any]) -> None:
        for partition, place in places.items():
            consumer.seek(place, self.positions[partition])


ASSIGNED: tuple[type[Reader], ...] = (ConfluentAssigned, OwnAssigned, KafkaPythonAssigned)
MEMBERS: tuple[type[Reader], ...] = (ConfluentMember, OwnMember)
EVERY: tuple[type[Reader], ...] = (*ASSIGNED, *MEMBERS)
