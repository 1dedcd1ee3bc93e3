"""Penstock's own client behind the tests' interface, through its blocking twins."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from penstock import TopicPartition
from penstock.blocking import Admin, Consumer, Producer
from penstock.client.admin.configs import ConfigResource
from penstock.client.errors import ClientError
from tests.clients.interface import TIMEOUT_S, UNKNOWN, Client, OpenProducer, ProducerSettings, Refused, Seen, Sent
from tests.patience import within

T = TypeVar("T")


def _told(work: Callable[[], T]) -> T:
    try:
        return work()
    except ClientError as failure:
        raise Refused(UNKNOWN if failure.error is None else failure.error.code, str(failure)) from failure


class _Producer(OpenProducer):
    def __init__(self, producer: Producer) -> None:
        self.producer = producer

    def send(self, topic: str, records: Sequence[Sent]) -> list[int]:
        sent = [
            self.producer.send(
                topic,
                each.value,
                key=each.key,
                headers=each.headers,
                timestamp=each.timestamp_ms,
                partition=each.partition,
            )
            for each in records
        ]
        return [_told(lambda each=each: each.result(within(TIMEOUT_S)).offset) for each in sent]  # type: ignore[misc]


class OwnClient(Client):
    @contextmanager
    def producer(self, settings: ProducerSettings) -> Iterator[OpenProducer]:
        extra: dict[str, Any] = {"enable_idempotence": settings.idempotent}
        if settings.codec:
            extra["compression_type"] = settings.codec
        if settings.request_bytes_max:
            extra["max_request_size"] = settings.request_bytes_max
        with Producer(bootstrap_servers=self.bootstrap, **extra) as producer:
            yield _Producer(producer)

    @contextmanager
    def _consumer(self, **extra: Any) -> Iterator[Consumer]:
        with Consumer(bootstrap_servers=self.bootstrap, offset_reset="none", **extra) as consumer:
            yield consumer

    @contextmanager
    def _admin(self) -> Iterator[Admin]:
        with Admin(bootstrap_servers=self.bootstrap) as admin:
            yield admin

    def fetch(
        self, topic: str, count: int, *, partition: int = 0, offset: int = 0, fetch_bytes_max: int | None = None
    ) -> list[Seen]:
        extra = {"max_partition_fetch_bytes": fetch_bytes_max} if fetch_bytes_max else {}
        place = TopicPartition(topic, partition)
        seen: list[Seen] = []
        with self._consumer(**extra) as consumer:
            consumer.assign([place])
            consumer.seek(place, offset)
            while len(seen) < count:
                left = count - len(seen)
                records = _told(lambda left=left: consumer.poll(max_records=left, timeout_ms=within(TIMEOUT_S) * 1_000))  # type: ignore[misc]
                assert records, f"{len(seen)} of {count} records came"
                seen += map(_seen, records)
        return seen

    def offset_for_time(self, topic: str, timestamp_ms: int, partition: int = 0) -> int | None:
        place = TopicPartition(topic, partition)
        with self._consumer() as consumer:
            found = consumer.offsets_for_times({place: timestamp_ms})[place]
        return None if found is None else found.offset

    def watermarks(self, topic: str, partition: int = 0) -> tuple[int, int]:
        place = TopicPartition(topic, partition)
        with self._consumer() as consumer:
            return consumer.beginning_offsets(place)[place], consumer.end_offsets(place)[place]

    def create_topics(
        self, names: Sequence[str], partitions: int = 1, configs: Mapping[str, str] | None = None
    ) -> None:
        with self._admin() as admin:
            for name in names:
                _told(lambda name=name: admin.create_topic(name, partitions, 1, configs))  # type: ignore[misc]

    def delete_topic(self, name: str) -> None:
        with self._admin() as admin:
            _told(lambda: admin.delete_topic(name))

    def list_topics(self) -> set[str]:
        with self._admin() as admin:
            return {found.name for found in admin.topics(internal=True)}

    def partition_count(self, topic: str) -> int:
        with self._admin() as admin:
            return len(_told(lambda: admin.describe_topic(topic, offsets=False, configs=False)).partitions)

    def grow(self, topic: str, partitions: int) -> None:
        with self._admin() as admin:
            _told(lambda: admin.grow_topic(topic, partitions))

    def delete_records(self, topic: str, before: int, partition: int = 0) -> int:
        place = TopicPartition(topic, partition)
        with self._admin() as admin:
            return _told(lambda: admin.delete_records({place: before}).checked())[place]

    def topic_configs(self, topic: str) -> dict[str, str]:
        resource = ConfigResource.topic(topic)
        with self._admin() as admin:
            entries = _told(lambda: admin.describe_configs([resource]).checked())[resource]
        return {name: entry.value for name, entry in entries.items() if entry.value is not None}

    def set_config(self, topic: str, name: str, value: str) -> None:
        with self._admin() as admin:
            _told(lambda: admin.configure_topic(topic, {name: value}))

    def replace_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        with self._admin() as admin:
            _told(lambda: admin.replace_configs({ConfigResource.topic(topic): configs}).checked())


def _seen(record: Any) -> Seen:
    return Seen(record.offset, record.key, record.value, record.headers, record.timestamp, record.timestamp_type)
