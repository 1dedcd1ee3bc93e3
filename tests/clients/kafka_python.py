"""kafka-python behind the tests' interface."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any

from tests.clients.interface import TIMEOUT_S, Client, OpenProducer, ProducerSettings, Refused, Seen, Sent
from tests.patience import Patience, within

# The library reads its schemas through a call that Python 3.11 deprecates; warnings are errors here.
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
    from kafka.admin import ConfigResource, ConfigResourceType
    from kafka.errors import BrokerResponseError


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except BrokerResponseError as error:
        raise Refused(error.errno, str(error)) from error


class _Producer(OpenProducer):
    def __init__(self, producer: KafkaProducer) -> None:
        self.producer = producer

    def send(self, topic: str, records: Sequence[Sent]) -> list[int]:
        with _refusals():
            futures = [
                self.producer.send(
                    topic,
                    key=record.key,
                    value=record.value,
                    headers=list(record.headers),
                    partition=record.partition,
                    timestamp_ms=record.timestamp_ms,
                )
                for record in records
            ]
            self.producer.flush(within(TIMEOUT_S))
            return [future.get(within(TIMEOUT_S)).offset for future in futures]


class KafkaPython(Client):
    legacy_alter_keeps_others = True

    @contextmanager
    def producer(self, settings: ProducerSettings) -> Iterator[OpenProducer]:
        config: dict[str, Any] = {"bootstrap_servers": self.bootstrap}
        if settings.idempotent:
            config["enable_idempotence"] = True
        if settings.codec:
            # It knows no compression under the name of None alone.
            config["compression_type"] = None if settings.codec == "none" else settings.codec
        if settings.request_bytes_max:
            config["max_request_size"] = settings.request_bytes_max
        with closing(KafkaProducer(**config)) as producer:
            yield _Producer(producer)

    def _consumer(self, **extra: Any) -> closing[KafkaConsumer]:
        return closing(KafkaConsumer(bootstrap_servers=self.bootstrap, **extra))

    def _admin(self) -> closing[KafkaAdminClient]:
        return closing(KafkaAdminClient(bootstrap_servers=self.bootstrap))

    def fetch(
        self, topic: str, count: int, *, partition: int = 0, offset: int = 0, fetch_bytes_max: int | None = None
    ) -> list[Seen]:
        extra = {"max_partition_fetch_bytes": fetch_bytes_max} if fetch_bytes_max else {}
        place = TopicPartition(topic, partition)
        seen: list[Seen] = []
        with self._consumer(**extra) as consumer:
            consumer.assign([place])
            consumer.seek(place, offset)
            patience = Patience(TIMEOUT_S)
            while len(seen) < count and not patience.over():
                seen += [_seen(record) for record in consumer.poll(1_000).get(place, [])]
        assert len(seen) >= count, f"{len(seen)} of {count} records of {topic} came"
        return seen[:count]

    def offset_for_time(self, topic: str, timestamp_ms: int, partition: int = 0) -> int | None:
        place = TopicPartition(topic, partition)
        with self._consumer() as consumer:
            found = consumer.offsets_for_times({place: timestamp_ms})[place]
        return None if found is None else int(found.offset)

    def watermarks(self, topic: str, partition: int = 0) -> tuple[int, int]:
        place = TopicPartition(topic, partition)
        with self._consumer() as consumer:
            return consumer.beginning_offsets([place])[place], consumer.end_offsets([place])[place]

    def create_topics(
        self, names: Sequence[str], partitions: int = 1, configs: Mapping[str, str] | None = None
    ) -> None:
        options = {"num_partitions": partitions, "replication_factor": 1, "configs": dict(configs or {})}
        with _refusals(), self._admin() as admin:
            admin.create_topics({name: dict(options) for name in names})

    def delete_topic(self, name: str) -> None:
        with _refusals(), self._admin() as admin:
            admin.delete_topics([name])

    def list_topics(self) -> set[str]:
        with self._admin() as admin:
            return set(admin.list_topics())

    def partition_count(self, topic: str) -> int:
        with self._admin() as admin:
            (described,) = admin.describe_topics([topic])
            return len(described["partitions"])

    def grow(self, topic: str, partitions: int) -> None:
        with _refusals(), self._admin() as admin:
            admin.create_partitions({topic: partitions})

    def delete_records(self, topic: str, before: int, partition: int = 0) -> int:
        place = TopicPartition(topic, partition)
        with _refusals(), self._admin() as admin:
            return int(admin.delete_records({place: before})[place]["low_watermark"])

    def topic_configs(self, topic: str) -> dict[str, str]:
        with self._admin() as admin:
            found = admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)], config_filter="all")
        return {name: entry["value"] for name, entry in found["topic"][topic].items()}

    def set_config(self, topic: str, name: str, value: str) -> None:
        self._alter(topic, {name: value}, incremental=True)

    def replace_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        self._alter(topic, configs, incremental=False)

    def _alter(self, topic: str, configs: Mapping[str, str], *, incremental: bool) -> None:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, dict(configs))
        with self._admin() as admin:
            outcome = admin.alter_configs([resource], incremental=incremental)["topic"][topic]
        # This call alone reports an error as text.
        if outcome != "OK":
            code = re.match(r"\[Error (\d+)\]", outcome)
            assert code, outcome
            raise Refused(int(code[1]), outcome)


def _seen(record: Any) -> Seen:
    headers = tuple((name, value) for name, value in record.headers)
    return Seen(record.offset, record.key, record.value, headers, record.timestamp, record.timestamp_type)
