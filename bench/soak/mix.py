"""Who takes part: topics, writers and groups, and what share of the load each writer carries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

PENSTOCK, CONFLUENT = "penstock", "confluent"
CLASSIC, CONSUMER = "classic", "consumer"
PARTITIONS = 4

SEGMENT_BYTES = 16 << 20
KEPT_BYTES = 2 << 30
"""What all topics together may keep on disk, give or take a segment a partition."""

TOPICS: Mapping[str, int] = {"orders": 1_000, "clicks": 100}
"""Bytes of each record, by topic."""

QUERY_TOPIC = "orders"
PROBE_TOPIC = "probe"


@dataclass(frozen=True)
class Writer:
    """One idempotent producer with acks=all. Its number is in each of its records."""

    number: int
    client: str
    topic: str
    codec: str
    share: float
    """Of all bytes, before compression."""


WRITERS = (
    Writer(1, PENSTOCK, "orders", "none", 0.35),
    Writer(2, CONFLUENT, "orders", "lz4", 0.35),
    Writer(3, PENSTOCK, "clicks", "lz4", 0.15),
    Writer(4, CONFLUENT, "clicks", "none", 0.15),
)


@dataclass(frozen=True)
class Group:
    """Members that stay, and one more that comes and goes."""

    name: str
    client: str
    protocol: str
    topics: Sequence[str]
    members: int = 2


GROUPS = (
    Group("ledger", PENSTOCK, CLASSIC, ("orders", "clicks")),
    Group("counter", PENSTOCK, CONSUMER, ("clicks",)),
    Group("mirror", CONFLUENT, CONSUMER, ("orders",)),
)


def records_per_s(writer: Writer, bytes_per_s: float) -> float:
    """What a writer has to write when all writers together write so many bytes."""
    return writer.share * bytes_per_s / TOPICS[writer.topic]


def total_records_per_s(bytes_per_s: float) -> float:
    return sum(records_per_s(writer, bytes_per_s) for writer in WRITERS)


def share_of_records(topics: Sequence[str]) -> float:
    """What part of all records goes to these topics."""
    return sum(records_per_s(writer, 1.0) for writer in WRITERS if writer.topic in topics) / total_records_per_s(1.0)


def topic_configs() -> dict[str, str]:
    """Retention by size, so that segments roll and go all the time."""
    kept = KEPT_BYTES // (PARTITIONS * len(TOPICS))
    return {
        "retention.bytes": str(kept),
        "segment.bytes": str(SEGMENT_BYTES),
        "file.delete.delay.ms": "1000",
    }
