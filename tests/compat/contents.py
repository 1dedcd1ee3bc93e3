"""Everything that a client can see of a broker: each record, each topic with its id and configs, the cluster's id.

Two brokers that open the same data directory must show the same contents.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import cast

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ClusterMetadata
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource, ConfigSource
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewPartitions, NewTopic

from tests.compat.processes import wait_for
from tests.compat.wire import CODECS, stored_batches
from tests.patience import within

Place = tuple[str, int]
Headers = tuple[tuple[str, bytes | None], ...]
Row = tuple[int, tuple[int, int], bytes | None, bytes | None, Headers]

TOPICS: dict[str, tuple[int, dict[str, str]]] = {
    **{f"codec-{codec}": (2, {}) for codec in CODECS},
    "idempotent": (3, {"retention.ms": "-1"}),
    "append-time": (1, {"message.timestamp.type": "LogAppendTime", "max.message.bytes": "2000000"}),
    "small-segments": (1, {"segment.bytes": "1048576", "retention.bytes": "-1", "index.interval.bytes": "1024"}),
    "trimmed": (1, {}),
    "grown": (1, {}),
    "empty": (2, {"flush.messages": "10", "min.insync.replicas": "1"}),
    "compacted": (
        1,
        {
            "cleanup.policy": "compact",
            "segment.bytes": "1048576",
            "min.cleanable.dirty.ratio": "0.01",
            "delete.retention.ms": "100000000",
        },
    ),
}
# By default compaction is looked for every 15 s, and a moved log start is written down every 60 s, both after a delay
# of 30 s. Tests do not wait so long.
EAGER = {
    "log.cleaner.backoff.ms": "200",
    "log.initial.task.delay.ms": "500",
    "log.flush.start.offset.checkpoint.interval.ms": "500",
}


@dataclass
class Contents:
    cluster_id: str
    topic_ids: dict[str, str] = field(default_factory=dict)
    configs: dict[str, dict[str, str]] = field(default_factory=dict)
    records: dict[Place, list[Row]] = field(default_factory=dict)
    starts: dict[Place, int] = field(default_factory=dict)
    broker_configs: dict[str, str] = field(default_factory=dict)


def write_contents(bootstrap: str) -> None:
    """Topics with every codec, configs, segments, a trimmed, a grown, a deleted and a compacted one."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    doomed = NewTopic("doomed", num_partitions=1, replication_factor=1)
    new = [NewTopic(name, partitions, 1, config=configs) for name, (partitions, configs) in TOPICS.items()]
    for future in admin.create_topics([*new, doomed]).values():
        future.result()
    for codec in CODECS:
        _produce(bootstrap, f"codec-{codec}", 500, {"compression.type": codec, "linger.ms": 20})
    _produce(bootstrap, "idempotent", 900, {"enable.idempotence": True, "linger.ms": 5})
    _produce(bootstrap, "append-time", 50, {"acks": 1})
    _produce(bootstrap, "small-segments", 1_500, {"batch.size": 20_000}, value_bytes=2_000)
    _produce(bootstrap, "trimmed", 100, {})
    _produce(bootstrap, "grown", 20, {})
    _produce(bootstrap, "doomed", 20, {})
    admin.delete_topics(["doomed"])["doomed"].result()
    _grow(admin, "grown", 3)
    admin.delete_records([TopicPartition("trimmed", 0, 60)])[TopicPartition("trimmed", 0)].result()
    _set(admin, ResourceType.TOPIC, "codec-none", "retention.ms", "123456789000")
    _set(admin, ResourceType.BROKER, "1", "log.cleaner.threads", "2")
    _compact(bootstrap)


def _set(admin: AdminClient, kind: ResourceType, name: str, config: str, value: str) -> None:
    entry = ConfigEntry(config, value, incremental_operation=AlterConfigOpType.SET)
    (future,) = admin.incremental_alter_configs([ConfigResource(kind, name, incremental_configs=[entry])]).values()
    future.result()


def _grow(admin: AdminClient, topic: str, partitions: int) -> None:
    admin.create_partitions([NewPartitions(topic, partitions)])[topic].result()


def _compact(bootstrap: str) -> None:
    """Three megabytes over ten keys, one of them deleted in the end; waits until the broker has dropped some."""
    _produce(bootstrap, "compacted", 150, {"batch.size": 60_000}, value_bytes=20_000, keys=10)
    _produce(bootstrap, "compacted", 1, {}, tombstone=True, keys=1)
    _produce(bootstrap, "compacted", 60, {"batch.size": 60_000}, value_bytes=20_000, keys=10)
    wait_for("compaction of sealed segments", lambda: _stored(bootstrap) < 150, timeout_s=60, pause_s=0.2)
    settle = _Settled()
    wait_for("the cleaner to come to rest", lambda: settle.same(_stored(bootstrap)), timeout_s=60, pause_s=0.5)


def _stored(bootstrap: str) -> int:
    return sum(batch.record_count for batch in stored_batches(bootstrap, "compacted"))


class _Settled:
    """Says when a number has been the same for three looks."""

    def __init__(self) -> None:
        self._last: list[int] = []

    def same(self, value: int) -> bool:
        self._last = [*self._last[-2:], value]
        return len(self._last) == 3 and len(set(self._last)) == 1


def _produce(
    bootstrap: str,
    topic: str,
    count: int,
    settings: dict[str, object],
    *,
    value_bytes: int = 50,
    keys: int = 100,
    tombstone: bool = False,
) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, **settings})
    failures: list[object] = []

    def delivered(error: object, _message: object) -> None:
        if error is not None:
            failures.append(error)

    for number in range(count):
        null = tombstone or (number % 11 == 10 and value_bytes == 50)
        producer.produce(
            topic,
            key=b"key-%d" % (number % keys),
            value=None if null else b"%08d" % number * (value_bytes // 8),
            headers=[("number", b"%d" % number), ("null", None)] if number % 3 == 0 else None,
            on_delivery=delivered,
        )
    left = producer.flush(within(60))
    assert left == 0, f"{left} records of {topic} were not acknowledged"
    assert not failures, failures[:3]


@contextmanager
def _consumer(bootstrap: str) -> Iterator[Consumer]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "nobody",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
        }
    )
    try:
        yield consumer
    finally:
        consumer.close()


def read_contents(bootstrap: str) -> Contents:
    """Reads all topics but the internal ones."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    # After a kill a lone broker first waits for its own old session to end, and leads nothing until then.
    listing = wait_for("a leader of every partition", lambda: _led(admin), timeout_s=60)
    contents = Contents(cluster_id=str(listing.cluster_id))
    names = sorted(name for name in listing.topics if not name.startswith("__"))
    contents.topic_ids = _topic_ids(admin, names)
    contents.configs = {name: _configs(admin, ResourceType.TOPIC, name) for name in names}
    contents.broker_configs = _configs(admin, ResourceType.BROKER, "1")
    places = [(name, partition) for name in names for partition in sorted(listing.topics[name].partitions)]
    with _consumer(bootstrap) as consumer:
        contents.starts = {
            place: consumer.get_watermark_offsets(TopicPartition(*place), timeout=within(30))[0] for place in places
        }
        contents.records = _read_to_the_end(consumer, places)
    return contents


def _led(admin: AdminClient) -> ClusterMetadata | None:
    listing = admin.list_topics(timeout=within(30))
    partitions = [partition for topic in listing.topics.values() for partition in topic.partitions.values()]
    return listing if all(partition.leader >= 0 for partition in partitions) else None


def _topic_ids(admin: AdminClient, names: list[str]) -> dict[str, str]:
    described = admin.describe_topics(TopicCollection(names))
    return {name: str(future.result().topic_id) for name, future in described.items()}


_DYNAMIC = {ConfigSource.DYNAMIC_TOPIC_CONFIG.value, ConfigSource.DYNAMIC_BROKER_CONFIG.value}


def _configs(admin: AdminClient, kind: ResourceType, name: str) -> dict[str, str]:
    (future,) = admin.describe_configs([ConfigResource(kind, name)]).values()
    return {entry.name: entry.value for entry in future.result().values() if entry.source in _DYNAMIC}


def _read_to_the_end(consumer: Consumer, places: list[Place]) -> dict[Place, list[Row]]:
    consumer.assign([TopicPartition(*place, OFFSET_BEGINNING) for place in places])
    rows: dict[Place, list[Row]] = {place: [] for place in places}
    unread = set(places)
    deadline = time.monotonic() + within(60)
    while unread:
        assert time.monotonic() < deadline, f"no end within 60 s: {sorted(unread)}"
        message = consumer.poll(1.0)
        if message is None:
            continue
        place = (str(message.topic()), cast(int, message.partition()))
        error = message.error()
        if error is None:
            rows[place].append(_row(message))
        elif error.code() == KafkaError._PARTITION_EOF:
            unread.discard(place)
        else:
            raise KafkaException(error)
    return rows


def _row(message: Message) -> Row:
    headers = cast(list[tuple[str, bytes | None]], message.headers() or [])
    key = message.key()
    value = message.value()
    return cast(int, message.offset()), message.timestamp(), key, value, tuple(headers)
