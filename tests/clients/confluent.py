"""confluent-kafka behind the tests' interface."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewPartitions, NewTopic

from tests.clients.interface import (
    CREATE_TIME,
    LOG_APPEND_TIME,
    TIMEOUT_S,
    Client,
    OpenProducer,
    ProducerSettings,
    Refused,
    Seen,
    Sent,
)
from tests.patience import Patience, within

# librdkafka counts its timestamp types from 1: 0 is "not available".
_TIMESTAMP_TYPES = {1: CREATE_TIME, 2: LOG_APPEND_TIME}


def _refused(error: Any) -> Refused:
    return Refused(error.code(), error.str())


def _result(futures: Mapping[Any, Any]) -> list[Any]:
    try:
        return [future.result(within(TIMEOUT_S)) for future in futures.values()]
    except KafkaException as error:
        raise _refused(error.args[0]) from error


class _Producer(OpenProducer):
    def __init__(self, producer: Producer) -> None:
        self.producer = producer

    def send(self, topic: str, records: Sequence[Sent]) -> list[int]:
        outcomes: list[Any] = [None] * len(records)
        for index, record in enumerate(records):

            def delivered(error: Any, message: Any, index: int = index) -> None:
                outcomes[index] = _refused(error) if error is not None else message.offset()

            extra: dict[str, Any] = {} if record.timestamp_ms is None else {"timestamp": record.timestamp_ms}
            self.producer.produce(
                topic,
                key=record.key,
                value=record.value,
                headers=list(record.headers),
                partition=record.partition,
                on_delivery=delivered,
                **extra,
            )
        assert self.producer.flush(within(TIMEOUT_S)) == 0, "records were not acknowledged in time"
        for outcome in outcomes:
            if isinstance(outcome, Refused):
                raise outcome
        return outcomes


class ConfluentKafka(Client):
    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self._admin = AdminClient({"bootstrap.servers": bootstrap})

    @contextmanager
    def producer(self, settings: ProducerSettings) -> Iterator[OpenProducer]:
        config: dict[str, Any] = {"bootstrap.servers": self.bootstrap}
        if settings.idempotent:
            config["enable.idempotence"] = True
        if settings.codec:
            config["compression.type"] = settings.codec
        if settings.request_bytes_max:
            config["message.max.bytes"] = settings.request_bytes_max
        producer = Producer(config)
        yield _Producer(producer)
        producer.flush(within(TIMEOUT_S))

    @contextmanager
    def _consumer(self, **extra: Any) -> Iterator[Consumer]:
        # A group id is demanded even of a consumer that only assigns; it commits nothing.
        config = {"bootstrap.servers": self.bootstrap, "group.id": "unused", "enable.auto.commit": False, **extra}
        consumer = Consumer(config)
        try:
            yield consumer
        finally:
            consumer.close()

    def fetch(
        self, topic: str, count: int, *, partition: int = 0, offset: int = 0, fetch_bytes_max: int | None = None
    ) -> list[Seen]:
        extra = {"max.partition.fetch.bytes": fetch_bytes_max} if fetch_bytes_max else {}
        with self._consumer(**extra) as consumer:
            consumer.assign([TopicPartition(topic, partition, offset)])
            seen: list[Seen] = []
            patience = Patience(TIMEOUT_S)
            while len(seen) < count and not patience.over():
                message = consumer.poll(1)
                if message is not None:
                    assert message.error() is None, message.error()
                    seen.append(_seen(message))
        assert len(seen) == count, f"{len(seen)} of {count} records of {topic} came"
        return seen

    def offset_for_time(self, topic: str, timestamp_ms: int, partition: int = 0) -> int | None:
        with self._consumer() as consumer:
            (found,) = consumer.offsets_for_times(
                [TopicPartition(topic, partition, timestamp_ms)], timeout=within(TIMEOUT_S)
            )
        assert found.error is None, found.error
        return None if found.offset < 0 else found.offset

    def watermarks(self, topic: str, partition: int = 0) -> tuple[int, int]:
        with self._consumer() as consumer:
            start, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=within(TIMEOUT_S))
        return start, end

    def create_topics(
        self, names: Sequence[str], partitions: int = 1, configs: Mapping[str, str] | None = None
    ) -> None:
        new = [NewTopic(name, partitions, 1, config=dict(configs or {})) for name in names]
        _result(self._admin.create_topics(new))

    def delete_topic(self, name: str) -> None:
        _result(self._admin.delete_topics([name]))

    def list_topics(self) -> set[str]:
        return set(self._admin.list_topics(timeout=within(TIMEOUT_S)).topics)

    def partition_count(self, topic: str) -> int:
        return len(self._admin.list_topics(topic, timeout=within(TIMEOUT_S)).topics[topic].partitions)

    def grow(self, topic: str, partitions: int) -> None:
        _result(self._admin.create_partitions([NewPartitions(topic, partitions)]))

    def delete_records(self, topic: str, before: int, partition: int = 0) -> int:
        (deleted,) = _result(self._admin.delete_records([TopicPartition(topic, partition, before)]))
        return int(deleted.low_watermark)

    def topic_configs(self, topic: str) -> dict[str, str]:
        (entries,) = _result(self._admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic)]))
        return {name: entry.value for name, entry in entries.items()}

    def set_config(self, topic: str, name: str, value: str) -> None:
        entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        _result(self._admin.incremental_alter_configs([resource]))

    def replace_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        resource = ConfigResource(ResourceType.TOPIC, topic, set_config=dict(configs))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # it is the deprecated request that is to be tried
            futures = self._admin.alter_configs([resource])
        _result(futures)


def _seen(message: Any) -> Seen:
    kind, timestamp_ms = message.timestamp()
    headers = tuple(message.headers() or ())
    return Seen(message.offset(), message.key(), message.value(), headers, timestamp_ms, _TIMESTAMP_TYPES[kind])
