"""Producers that write in transactions whatever the nodes run, what they were told, and what readers may see."""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum

import confluent_kafka

from penstock.blocking import Admin, Consumer, Producer
from penstock.client.errors import ClientError, TimedOutWaiting, TransactionAbortable
from penstock.kernels import ConsumerRecord
from penstock.model.ids import TopicPartition
from tests.compat.processes import wait_for

TIMEOUT_MS = 60_000
PAUSE_S = 0.05


class Outcome(Enum):
    """What its producer was told of a transaction."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "an error, or nothing"


class Transactor(ABC):
    """One transactional id. Each transaction writes its number to every partition; every fourth is aborted.

    A producer that was told to give up is followed by another with the same id, as an application would do it.
    """

    def __init__(self, bootstrap: str, topic: str, partitions: Sequence[int]) -> None:
        self.name = type(self).__name__.lower()
        self.bootstrap, self.topic, self.partitions = bootstrap, topic, partitions
        self.outcomes: dict[int, Outcome] = {}
        self.told: list[str] = []
        """Every error that ended a producer."""
        self.stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=self.name)

    def start(self) -> None:
        self._thread.start()

    def join(self) -> None:
        self._thread.join()

    @property
    def committed(self) -> int:
        return sum(outcome is Outcome.COMMITTED for outcome in list(self.outcomes.values()))

    def value(self, number: int) -> bytes:
        return f"{self.name}:{number}".encode()

    def _run(self) -> None:
        while not self.stopping.is_set():
            try:
                self.work()
            except (ClientError, confluent_kafka.KafkaException) as failure:
                self.told.append(f"{type(failure).__name__}: {failure}")
                self.stopping.wait(PAUSE_S)

    @abstractmethod
    def work(self) -> None:
        """The life of one producer."""

    def numbers(self) -> Iterator[tuple[int, bool]]:
        """What to write next, and whether to commit it, at a moderate pace."""
        while not self.stopping.wait(PAUSE_S):
            number = len(self.outcomes)
            self.outcomes[number] = Outcome.UNKNOWN
            yield number, number % 4 != 3


def end_for_sure(end: Callable[[], object], stopping: threading.Event) -> None:
    """What is not answered in time goes on, and is asked for again."""
    while True:
        try:
            end()
            return
        except TimedOutWaiting:
            if stopping.is_set():
                raise


class Own(Transactor):
    def work(self) -> None:
        with Producer(self.bootstrap, transactional_id=self.name, transaction_timeout_ms=TIMEOUT_MS) as producer:
            for number, commits in self.numbers():
                try:
                    producer.begin()
                    for partition in self.partitions:
                        producer.send(self.topic, self.value(number), partition=partition)
                    end_for_sure(producer.commit if commits else producer.abort, self.stopping)
                    self.outcomes[number] = Outcome.COMMITTED if commits else Outcome.ABORTED
                except TransactionAbortable:
                    end_for_sure(producer.abort, self.stopping)
                    self.outcomes[number] = Outcome.ABORTED


class Confluent(Transactor):
    """librdkafka, which speaks the classic protocol only."""

    def work(self) -> None:
        settings = {
            "bootstrap.servers": self.bootstrap, "transactional.id": self.name, "log_level": 0,
            "transaction.timeout.ms": TIMEOUT_MS, "socket.timeout.ms": 10_000,
        }  # fmt: skip
        producer = confluent_kafka.Producer(settings)
        self._again(producer.init_transactions)
        for number, commits in self.numbers():
            try:
                producer.begin_transaction()
                for partition in self.partitions:
                    producer.produce(self.topic, self.value(number), partition=partition)
                self._again(producer.commit_transaction if commits else producer.abort_transaction)
                self.outcomes[number] = Outcome.COMMITTED if commits else Outcome.ABORTED
            except confluent_kafka.KafkaException as failure:
                if not failure.args[0].txn_requires_abort():
                    raise
                self._again(producer.abort_transaction)
                self.outcomes[number] = Outcome.ABORTED

    def _again(self, step: Callable[[float], object]) -> None:
        while True:
            try:
                step(5.0)
                return
            except confluent_kafka.KafkaException as failure:
                if not failure.args[0].retriable() or self.stopping.is_set():
                    raise


class Copier(Transactor):
    """Reads what plain producers write, and writes it once more with the offsets that it has read, in transactions."""

    def __init__(self, bootstrap: str, topic: str, partitions: Sequence[int], source: str) -> None:
        super().__init__(bootstrap, topic, partitions)
        self.source = source
        self.fed = 0
        self.copied = 0
        """Records whose transaction was committed, as far as it was told so."""

    @property
    def committed(self) -> int:
        return self.copied

    def feed(self, plain: Producer, count: int = 10) -> None:
        """More to copy."""
        for number in range(self.fed, self.fed + count):
            plain.send(self.source, b"%d" % number, partition=number % len(self.partitions))
        plain.flush()
        self.fed += count

    def work(self) -> None:
        reading = {"offset_reset": "earliest", "isolation_level": "read_committed", "auto_commit": False}
        with (
            Producer(self.bootstrap, transactional_id=self.name, transaction_timeout_ms=TIMEOUT_MS) as producer,
            Consumer(self.source, bootstrap_servers=self.bootstrap, group_id=self.name, **reading) as consumer,
        ):
            while not self.stopping.is_set():
                records = consumer.poll(max_records=5, timeout_ms=100)
                if records:
                    self._copy(producer, consumer, records)

    def _copy(self, producer: Producer, consumer: Consumer, records: Sequence[ConsumerRecord]) -> None:
        try:
            producer.begin()
            for record in records:
                value = self.name.encode() + b":" + (record.value or b"")
                producer.send(self.topic, value, partition=record.partition)
            producer.send_offsets(consumer)
            end_for_sure(producer.commit, self.stopping)
            self.copied += len(records)
        except TransactionAbortable:
            end_for_sure(producer.abort, self.stopping)
            for tp, stand in consumer.committed().items():
                if stand is None:
                    consumer.seek_to_start(tp)
                else:
                    consumer.seek(tp, stand.offset)


class CommittedReader(ABC):
    """Reads committed records from the beginning, as they come."""

    def __init__(self, bootstrap: str, topic: str, partitions: Sequence[int]) -> None:
        self.seen: dict[int, list[str]] = {partition: [] for partition in partitions}
        self.failures: list[str] = []
        self.stopping = threading.Event()
        self.bootstrap, self.topic = bootstrap, topic
        self._thread = threading.Thread(target=self._run, name=type(self).__name__)

    def start(self) -> None:
        self._thread.start()

    def stop_at_the_end(self) -> None:
        """Returns when everything is read that there is."""
        self.stopping.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            self.work()
        except (ClientError, confluent_kafka.KafkaException) as failure:
            self.failures.append(repr(failure))

    @abstractmethod
    def work(self) -> None:
        """Reads until it is told to stop, and then to the end."""


class OwnReader(CommittedReader):
    def work(self) -> None:
        reading = {"bootstrap_servers": self.bootstrap, "offset_reset": "earliest", "isolation_level": "read_committed"}
        tps = [TopicPartition(self.topic, partition) for partition in self.seen]
        with Consumer(**reading) as consumer:
            consumer.assign(tps)
            while True:
                try:
                    records = consumer.poll(max_records=500, timeout_ms=200)
                    if not records and self.stopping.is_set():
                        ends = consumer.end_offsets(*tps)
                        if all(consumer.position(tp) == ends[tp] for tp in tps):
                            return
                except ClientError as failure:
                    if not failure.retriable:
                        raise
                    continue
                for record in records:
                    assert record.value is not None
                    self.seen[record.partition].append(record.value.decode())


class ConfluentReader(CommittedReader):
    def work(self) -> None:
        settings = {
            "bootstrap.servers": self.bootstrap, "group.id": "committed", "log_level": 0, "enable.auto.commit": False,
            "auto.offset.reset": "error", "isolation.level": "read_committed", "enable.partition.eof": True,
        }  # fmt: skip
        consumer = confluent_kafka.Consumer(settings)
        consumer.assign([confluent_kafka.TopicPartition(self.topic, partition, 0) for partition in self.seen])
        at_the_end: dict[int, int] = {}
        ends: dict[int, int] = {}
        while not ends or any(at_the_end.get(partition, 0) < end for partition, end in ends.items()):
            if self.stopping.is_set() and not ends:
                ends = self._ends()
            record = consumer.poll(0.2)
            if record is None:
                continue
            error = record.error()
            if error is None:
                self.seen[record.partition()].append(record.value().decode())
            elif error.code() == confluent_kafka.KafkaError._PARTITION_EOF:
                at_the_end[record.partition()] = record.offset()
        consumer.close()

    def _ends(self) -> dict[int, int]:
        tps = dict.fromkeys((TopicPartition(self.topic, partition) for partition in self.seen), "latest")
        with Admin(bootstrap_servers=self.bootstrap) as admin:
            return {tp.partition: at.offset for tp, at in admin.offsets(tps, read_committed=True).checked().items()}


class Transactions:
    """Everybody who works in transactions on one topic. `judge` when the cluster is whole."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        where = (bootstrap, topic, range(partitions))
        self.writers: list[Transactor] = [Own(*where), Confluent(*where)]
        self.copier = Copier(*where, source=f"{topic}-source")
        self.plain = Producer(bootstrap)
        self.reader, self.other_reader = OwnReader(*where), ConfluentReader(*where)

    def wait_for_commits(self, more: int = 3) -> None:
        """Returns when every producer has committed so many more transactions, and more was copied."""
        self.copier.feed(self.plain)
        goals = {writer: writer.committed + more for writer in self.everybody}

        def lagging() -> list[str]:
            return [
                f"{writer.name} ({writer.committed} committed, {writer.told[-2:]})"
                for writer, goal in goals.items()
                if writer.committed < goal
            ]

        try:
            wait_for("commits", lambda: not lagging(), timeout_s=90)
        except AssertionError:
            raise AssertionError(f"no {more} more commits of {', '.join(lagging())}") from None

    @property
    def everybody(self) -> list[Transactor]:
        return [*self.writers, self.copier]

    def finish(self) -> None:
        """Everything is copied; then nobody begins anything any more."""
        wait_for("the rest of the copy", lambda: self._copies() >= self.copier.fed, timeout_s=60)
        self.end()

    def end(self) -> None:
        for writer in self.everybody:
            writer.stopping.set()
        for writer in self.everybody:
            writer.join()

    def _copies(self) -> int:
        return sum(value.startswith("copier:") for values in self.reader.seen.values() for value in list(values))

    def judge(self) -> None:
        """All that was committed is seen once and in order, nothing that was aborted; the unknown is all or nothing."""
        for reader in (self.reader, self.other_reader):
            reader.stop_at_the_end()
            assert not reader.failures, reader.failures
        assert self.reader.seen == self.other_reader.seen
        assert not (found := mistakes(self.writers, self.reader.seen)), found[:20]
        for partition, values in self.reader.seen.items():
            copies = [int(value.partition(":")[2]) for value in values if value.startswith("copier:")]
            assert copies == list(range(partition, self.copier.fed, len(self.reader.seen))), f"{partition}: {copies}"

    def summary(self) -> str:
        parts = []
        for writer in self.writers:
            counts: defaultdict[str, int] = defaultdict(int)
            for outcome in writer.outcomes.values():
                counts[outcome.name.lower()] += 1
            parts.append(f"{writer.name}: {dict(counts)}, told {len(writer.told)} errors")
        parts.append(f"copier: {self.copier.copied} of {self.copier.fed}, told {len(self.copier.told)} errors")
        return "; ".join(parts)


@contextmanager
def transactions(bootstrap: str, topic: str, partitions: int) -> Iterator[Transactions]:
    # It tells of every broken link, and links are broken here all the time.
    logging.getLogger("penstock.client").setLevel(logging.CRITICAL)
    running = Transactions(bootstrap, topic, partitions)
    for each in (running.reader, running.other_reader, *running.everybody):
        each.start()
    try:
        yield running
    finally:
        running.end()
        running.reader.stop_at_the_end()
        running.other_reader.stop_at_the_end()
        running.plain.close()


def mistakes(writers: Sequence[Transactor], seen: dict[int, list[str]]) -> list[str]:
    """What readers of committed records should not have seen, or should have."""
    found = []
    for writer in writers:
        for partition, values in seen.items():
            mine = [int(value.partition(":")[2]) for value in values if value.startswith(f"{writer.name}:")]
            if mine != sorted(set(mine)):
                found.append(f"partition {partition} has {writer.name}'s transactions twice or out of order: {mine}")
        shown = {
            number: [f"{writer.name}:{number}" in values for values in seen.values()] for number in writer.outcomes
        }
        for number, outcome in writer.outcomes.items():
            where = shown[number]
            if outcome is Outcome.COMMITTED and not all(where):
                found.append(f"{writer.name}:{number} was committed and is shown in {where}")
            if outcome is Outcome.ABORTED and any(where):
                found.append(f"{writer.name}:{number} was aborted and is shown in {where}")
            if outcome is Outcome.UNKNOWN and any(where) and not all(where):
                found.append(f"{writer.name}:{number} is shown in part: {where}")
    return found
