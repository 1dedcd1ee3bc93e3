"""What the tests ask of a Kafka client: the few calls that all of them have, under one set of names."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

import pytest

TIMEOUT_S = 30

CREATE_TIME, LOG_APPEND_TIME = 0, 1


@dataclass(frozen=True)
class Sent:
    """A record as a test hands it to a producer."""

    value: bytes | None
    key: bytes | None = None
    headers: Sequence[tuple[str, bytes]] = field(default_factory=tuple)
    timestamp_ms: int | None = None
    partition: int = 0


@dataclass(frozen=True)
class Seen:
    """A record as a consumer shows it."""

    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]
    timestamp_ms: int
    timestamp_type: int


@dataclass(frozen=True)
class ProducerSettings:
    """What a test changes of a producer; everything else stays as the client has it by default."""

    idempotent: bool = False
    codec: str | None = None
    request_bytes_max: int | None = None


# The protocol's error codes that the tests provoke.
OFFSET_OUT_OF_RANGE, UNKNOWN_TOPIC_OR_PARTITION, MESSAGE_TOO_LARGE, INVALID_TOPIC = 1, 3, 10, 17
TOPIC_ALREADY_EXISTS, INVALID_PARTITIONS, INVALID_CONFIG, INVALID_RECORD = 36, 37, 40, 87
# What a client makes of a code that is newer than itself.
UNKNOWN = -1


class Refused(Exception):
    """The broker said no with this error code."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"error {code}: {text}")
        self.code = code


@contextmanager
def refused(*codes: int) -> Iterator[None]:
    """The block must be refused with one of these codes."""
    with pytest.raises(Refused) as refusal:
        yield
    assert refusal.value.code in codes, str(refusal.value)


class OpenProducer(ABC):
    """A producer that stays open between sends."""

    @abstractmethod
    def send(self, topic: str, records: Sequence[Sent]) -> list[int]:
        """Sends the records, waits for all acknowledgements, and returns their offsets. Raises `Refused`."""


class Client(ABC):
    """One client library at one address."""

    #: AlterConfigs replaces all configs of a topic; kafka-python reads the others first and sends them along.
    legacy_alter_keeps_others = False
    #: aiokafka has no IncrementalAlterConfigs.
    alters_incrementally = True

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    @abstractmethod
    def producer(self, settings: ProducerSettings) -> AbstractContextManager[OpenProducer]:
        """Opens a producer; it is flushed and closed at the end."""

    @abstractmethod
    def fetch(
        self, topic: str, count: int, *, partition: int = 0, offset: int = 0, fetch_bytes_max: int | None = None
    ) -> list[Seen]:
        """Reads `count` records of a partition by assignment, from an offset on."""

    @abstractmethod
    def offset_for_time(self, topic: str, timestamp_ms: int, partition: int = 0) -> int | None:
        """The first offset with this timestamp or a later one, or None."""

    @abstractmethod
    def watermarks(self, topic: str, partition: int = 0) -> tuple[int, int]:
        """The log start and the high watermark."""

    @abstractmethod
    def create_topics(
        self, names: Sequence[str], partitions: int = 1, configs: Mapping[str, str] | None = None
    ) -> None:
        """Creates topics with one replica in a single request. Raises `Refused`."""

    @abstractmethod
    def delete_topic(self, name: str) -> None: ...

    @abstractmethod
    def list_topics(self) -> set[str]: ...

    @abstractmethod
    def partition_count(self, topic: str) -> int: ...

    @abstractmethod
    def grow(self, topic: str, partitions: int) -> None:
        """CreatePartitions up to this number."""

    @abstractmethod
    def delete_records(self, topic: str, before: int, partition: int = 0) -> int:
        """Deletes records below an offset and returns the low watermark."""

    @abstractmethod
    def topic_configs(self, topic: str) -> dict[str, str]:
        """All configs of a topic with their values."""

    @abstractmethod
    def set_config(self, topic: str, name: str, value: str) -> None:
        """IncrementalAlterConfigs with one SET. Raises `Refused`."""

    @abstractmethod
    def replace_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        """AlterConfigs, which puts these in place of all that were set. Raises `Refused`."""
