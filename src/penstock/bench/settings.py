"""What is to be measured and for how long: the same for every contender of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

OWN, RAW = "own", "raw"

CLUSTER_RATE_PER_S: Final = 500.0
END_TO_END_RATE_PER_S: Final = 1_000.0

STAMP_BYTES: Final = 16
"""A record that is timed from end to end begins with so much: whose it is, and when it was due."""


@dataclass(frozen=True)
class Settings:
    """Numbers are those of one round. `rate_per_s` counts records; None is as fast as they are taken."""

    client: str = OWN
    seconds: float = 5.0
    warm_up_s: float = 5.0
    rounds: int = 3
    clients: int = 1
    """Processes, each with connections of its own."""
    record_bytes: int = 1_000
    batch_bytes: int = 16_384
    acks: str = "all"
    compression: str = "none"
    partitions: int = 4
    replicas: int | None = None
    """None is the broker's default."""
    rate_per_s: float | None = None
    topic: str | None = None
    """None makes topics and deletes them."""
    topic_bytes: int = 200_000_000
    """How much of values a topic is filled with before it is read."""
    configs: Mapping[str, str] = field(default_factory=dict)
    """Of the topics that are made."""

    @property
    def acks_code(self) -> int:
        return -1 if self.acks == "all" else int(self.acks)

    @property
    def rate_of_a_client(self) -> float | None:
        return None if self.rate_per_s is None else self.rate_per_s / self.clients
