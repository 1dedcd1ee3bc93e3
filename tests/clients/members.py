"""Members of consumer groups, each with its library in a thread of its own.

A member hands over what it reads, commits, and only then asks for more. Before it gives a partition up it has
committed all it was given, so that no record may come twice.
"""

from __future__ import annotations

import asyncio
import threading
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from aiokafka import AIOKafkaConsumer
from aiokafka.abc import ConsumerRebalanceListener
from aiokafka.coordinator.assignors.range import RangePartitionAssignor as AioRange
from confluent_kafka import Consumer, KafkaError, KafkaException

from tests.clients.interface import TIMEOUT_S
from tests.patience import Patience, within

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # see kafka_python.py
    from kafka import KafkaConsumer
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.errors import RebalanceInProgressError

SESSION_MS = 6_000
HEARTBEAT_MS = 100
POLL_MS = 50
COMMIT_EVERY = 25

Take = Callable[[str, bytes], None]
"""Told the member's name and the value of each record."""


class Member(ABC):
    """Joins when made, reads until `leave`."""

    def __init__(self, bootstrap: str, group: str, topics: Sequence[str], name: str, take: Take) -> None:
        self.bootstrap, self.group, self.topics, self.name = bootstrap, group, list(topics), name
        self._take = take
        self._leaving = threading.Event()
        self._failure: BaseException | None = None
        self.owned: frozenset[tuple[str, int]] = frozenset()
        self._thread = threading.Thread(target=self._live, name=name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Begins to leave."""
        self._leaving.set()

    def leave(self) -> None:
        """Commits and leaves the group; what went wrong meanwhile is raised here."""
        self.stop()
        self._thread.join(within(TIMEOUT_S))
        assert not self._thread.is_alive(), f"{self.name} does not leave"
        if self._failure is not None:
            raise self._failure

    def _live(self) -> None:
        try:
            self.read()
        except BaseException as failure:
            self._failure = failure

    @property
    def staying(self) -> bool:
        return not self._leaving.is_set()

    def took(self, value: bytes | None) -> None:
        self._take(self.name, value or b"")

    @abstractmethod
    def read(self) -> None:
        """Joins, reads and commits while `staying`, then leaves."""


class ConfluentMember(Member):
    """librdkafka, with the classic protocol."""

    protocol = "classic"
    tries_again: tuple[int, ...] = ()
    """Errors after which a commit is tried again."""
    _uncommitted = 0

    def settings(self) -> dict[str, Any]:
        return {
            "session.timeout.ms": within(SESSION_MS),
            "heartbeat.interval.ms": HEARTBEAT_MS,
            "partition.assignment.strategy": "range",
        }

    def read(self) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": self.group,
                "client.id": self.name,
                "group.protocol": self.protocol,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                **self.settings(),
            }
        )
        consumer.subscribe(self.topics, on_revoke=lambda consumer, _partitions: self._commit_all(consumer))
        try:
            while self.staying or self._uncommitted:
                message = consumer.poll(POLL_MS / 1_000)
                self.owned = frozenset((each.topic, each.partition) for each in consumer.assignment())
                if message is not None:
                    assert message.error() is None, message.error()
                    self.took(message.value())
                    self._uncommitted += 1
                if self._uncommitted >= COMMIT_EVERY or not self.staying:
                    self._commit(consumer)
            self._give_everything_up(consumer)
        finally:
            consumer.close()

    @staticmethod
    def _give_everything_up(consumer: Consumer) -> None:
        """Before it closes: a revocation while librdkafka closes now and then leaves it waiting for itself for ever."""
        consumer.unsubscribe()
        patience = Patience(TIMEOUT_S)
        while consumer.assignment() and not patience.over():
            consumer.poll(POLL_MS / 1_000)

    def _commit_all(self, consumer: Consumer) -> None:
        """Before partitions go: once they are gone, what was read of them can be committed no more (_NO_OFFSET)."""
        patience = Patience(TIMEOUT_S)
        while self._uncommitted and not patience.over():
            self._commit(consumer)

    def _commit(self, consumer: Consumer) -> None:
        if not self._uncommitted:
            return
        try:
            consumer.commit(asynchronous=False)
            self._uncommitted = 0
        except KafkaException as refusal:
            if refusal.args[0].code() not in self.tries_again:
                raise


class ConfluentCooperativeMember(ConfluentMember):
    """librdkafka, giving up only what moves. What it keeps it may not commit in the midst of a rebalance."""

    tries_again = (KafkaError.REBALANCE_IN_PROGRESS, KafkaError.ILLEGAL_GENERATION)

    def settings(self) -> dict[str, Any]:
        return {**super().settings(), "partition.assignment.strategy": "cooperative-sticky"}


class ConfluentNewMember(ConfluentMember):
    """librdkafka, with the protocol in which the coordinator assigns."""

    protocol = "consumer"
    tries_again = (113,)  # STALE_MEMBER_EPOCH

    def settings(self) -> dict[str, Any]:
        return {}


class KafkaPythonMember(Member):
    def read(self) -> None:
        consumer = KafkaConsumer(
            bootstrap_servers=self.bootstrap,
            group_id=self.group,
            client_id=self.name,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=within(SESSION_MS),
            heartbeat_interval_ms=HEARTBEAT_MS,
            partition_assignment_strategy=[RangePartitionAssignor],
        )
        try:
            # It may join before it knows the topics, join once more when it does, and fall silent in between, with any
            # broker. So it gets to know them first.
            for topic in self.topics:
                assert consumer.partitions_for_topic(topic)
            consumer.subscribe(self.topics)
            while self.staying:
                found = consumer.poll(POLL_MS, max_records=COMMIT_EVERY)
                self.owned = frozenset((each.topic, each.partition) for each in consumer.assignment())
                if not found:
                    continue
                try:
                    # Before they are taken: a poll may return records in the midst of a rebalance, when the client
                    # commits nothing, and whoever has the partition next begins at what is committed.
                    consumer.commit()
                except RebalanceInProgressError:
                    continue
                for records in found.values():
                    for record in records:
                        self.took(record.value)
        finally:
            consumer.close(autocommit=False)


class AioKafkaMember(Member):
    def read(self) -> None:
        asyncio.run(self._read())

    async def _read(self) -> None:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self.bootstrap,
            group_id=self.group,
            client_id=self.name,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=within(SESSION_MS),
            heartbeat_interval_ms=HEARTBEAT_MS,
            partition_assignment_strategy=(AioRange,),
        )
        # It rebalances in the background: what was read just before is not ours any more, and nothing may be given up
        # between taking a record and committing it.
        taking, rounds = asyncio.Lock(), 0

        class Listener(ConsumerRebalanceListener):  # type: ignore[misc]  # the library is not typed
            async def on_partitions_revoked(self, revoked: object) -> None:
                nonlocal rounds
                async with taking:
                    rounds += 1

            async def on_partitions_assigned(self, assigned: object) -> None:
                pass

        consumer.subscribe(self.topics, listener=Listener())
        await consumer.start()
        try:
            while self.staying:
                found = await consumer.getmany(timeout_ms=POLL_MS, max_records=COMMIT_EVERY)
                began = rounds
                self.owned = frozenset((each.topic, each.partition) for each in consumer.assignment())
                async with taking:
                    if found and began == rounds:
                        for records in found.values():
                            for record in records:
                                self.took(record.value)
                        await consumer.commit()
        finally:
            await consumer.stop()


MEMBERS: dict[str, type[Member]] = {
    "confluent-kafka": ConfluentMember,
    "confluent-kafka cooperative": ConfluentCooperativeMember,
    "confluent-kafka consumer protocol": ConfluentNewMember,
    "kafka-python": KafkaPythonMember,
    "aiokafka": AioKafkaMember,
}
RANGE_MEMBERS = ("confluent-kafka", "kafka-python", "aiokafka")
"""Those that have an assignor of the same name, and so may be in one group."""
