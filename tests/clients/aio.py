"""aiokafka behind the tests' interface. Each call runs to its end on a loop of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError, for_code

from tests.clients.interface import TIMEOUT_S, UNKNOWN, Client, OpenProducer, ProducerSettings, Refused, Seen, Sent
from tests.patience import at_most, within

T = TypeVar("T")


def _check(code: int) -> None:
    if code:
        raise Refused(code, for_code(code).__name__)


def _refusal(error: KafkaError) -> Refused:
    return Refused(getattr(error, "errno", UNKNOWN), str(error))


class _Producer(OpenProducer):
    def __init__(self, producer: AIOKafkaProducer, runner: asyncio.Runner) -> None:
        self.producer = producer
        self._runner = runner

    def send(self, topic: str, records: Sequence[Sent]) -> list[int]:
        return self._runner.run(self._send(topic, records))

    async def _send(self, topic: str, records: Sequence[Sent]) -> list[int]:
        try:
            futures = [
                await self.producer.send(
                    topic,
                    key=record.key,
                    value=record.value,
                    headers=list(record.headers),
                    partition=record.partition,
                    timestamp_ms=record.timestamp_ms,
                )
                for record in records
            ]
            return [(await asyncio.wait_for(future, within(TIMEOUT_S))).offset for future in futures]
        except KafkaError as error:
            raise _refusal(error) from error


class AioKafka(Client):
    alters_incrementally = False

    @contextmanager
    def producer(self, settings: ProducerSettings) -> Iterator[OpenProducer]:
        config: dict[str, Any] = {"bootstrap_servers": self.bootstrap}
        if settings.idempotent:
            config["enable_idempotence"] = True
        if settings.codec:
            config["compression_type"] = None if settings.codec == "none" else settings.codec
        if settings.request_bytes_max:
            config["max_request_size"] = settings.request_bytes_max

        async def open_producer() -> AIOKafkaProducer:
            producer = AIOKafkaProducer(**config)
            await producer.start()
            return producer

        with asyncio.Runner() as runner:
            producer = runner.run(open_producer())
            try:
                yield _Producer(producer, runner)
            finally:
                runner.run(producer.stop())

    @asynccontextmanager
    async def _consumer(self, place: TopicPartition, **extra: Any) -> AsyncIterator[AIOKafkaConsumer]:
        consumer = AIOKafkaConsumer(bootstrap_servers=self.bootstrap, **extra)
        consumer.assign([place])
        await consumer.start()
        try:
            yield consumer
        finally:
            await consumer.stop()

    @asynccontextmanager
    async def _admin(self) -> AsyncIterator[AIOKafkaAdminClient]:
        admin = AIOKafkaAdminClient(bootstrap_servers=self.bootstrap)
        await admin.start()
        try:
            yield admin
        finally:
            await admin.close()

    def fetch(
        self, topic: str, count: int, *, partition: int = 0, offset: int = 0, fetch_bytes_max: int | None = None
    ) -> list[Seen]:
        extra = {"max_partition_fetch_bytes": fetch_bytes_max} if fetch_bytes_max else {}
        place = TopicPartition(topic, partition)

        async def fetch() -> list[Seen]:
            async with self._consumer(place, **extra) as consumer, at_most(TIMEOUT_S):
                consumer.seek(place, offset)
                return [_seen(await consumer.getone(place)) for _ in range(count)]

        return _run(fetch())

    def offset_for_time(self, topic: str, timestamp_ms: int, partition: int = 0) -> int | None:
        place = TopicPartition(topic, partition)

        async def look() -> int | None:
            async with self._consumer(place) as consumer:
                found = (await consumer.offsets_for_times({place: timestamp_ms}))[place]
                return None if found is None else int(found.offset)

        return _run(look())

    def watermarks(self, topic: str, partition: int = 0) -> tuple[int, int]:
        place = TopicPartition(topic, partition)

        async def look() -> tuple[int, int]:
            async with self._consumer(place) as consumer:
                start = await consumer.beginning_offsets([place])
                return start[place], (await consumer.end_offsets([place]))[place]

        return _run(look())

    def create_topics(
        self, names: Sequence[str], partitions: int = 1, configs: Mapping[str, str] | None = None
    ) -> None:
        async def create() -> None:
            new = [NewTopic(name, partitions, 1, topic_configs=dict(configs or {})) for name in names]
            async with self._admin() as admin:
                reply = await admin.create_topics(new)
            for _name, code, *_ in reply.topic_errors:
                _check(code)

        _run(create())

    def delete_topic(self, name: str) -> None:
        async def delete() -> None:
            async with self._admin() as admin:
                reply = await admin.delete_topics([name])
            for _name, code in reply.topic_error_codes:
                _check(code)

        _run(delete())

    def list_topics(self) -> set[str]:
        async def look() -> set[str]:
            async with self._admin() as admin:
                return set(await admin.list_topics())

        return _run(look())

    def partition_count(self, topic: str) -> int:
        async def look() -> int:
            async with self._admin() as admin:
                (described,) = await admin.describe_topics([topic])
                return len(described["partitions"])

        return _run(look())

    def grow(self, topic: str, partitions: int) -> None:
        async def grow() -> None:
            async with self._admin() as admin:
                await admin.create_partitions({topic: NewPartitions(partitions)})

        _run(grow())

    def delete_records(self, topic: str, before: int, partition: int = 0) -> int:
        place = TopicPartition(topic, partition)

        async def delete() -> int:
            async with self._admin() as admin:
                return int((await admin.delete_records({place: RecordsToDelete(before_offset=before)}))[place])

        return _run(delete())

    def topic_configs(self, topic: str) -> dict[str, str]:
        async def look() -> dict[str, str]:
            async with self._admin() as admin:
                (reply,) = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
            ((code, _message, _kind, _name, entries),) = reply.resources
            _check(code)
            return {name: value for name, value, *_ in entries}

        return _run(look())

    def set_config(self, topic: str, name: str, value: str) -> None:
        raise AssertionError("aiokafka has no IncrementalAlterConfigs")

    def replace_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        async def alter() -> None:
            async with self._admin() as admin:
                resource = ConfigResource(ConfigResourceType.TOPIC, topic, dict(configs))
                (reply,) = await admin.alter_configs([resource])
            for code, *_ in reply.resources:
                _check(code)

        _run(alter())


def _run(work: Coroutine[Any, Any, T]) -> T:
    try:
        return asyncio.run(work)
    except KafkaError as error:
        raise _refusal(error) from error


def _seen(record: Any) -> Seen:
    return Seen(record.offset, record.key, record.value, tuple(record.headers), record.timestamp, record.timestamp_type)
