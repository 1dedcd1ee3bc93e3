"""What there is on both brokers, in our own words for it: what a request can be about."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.model.ids import Uuid

STEADY = {"alpha": 3, "beta": 1, "gamma": 2}
"""Topics that stay, with their partitions. `beta` compacts, `gamma` takes small batches only."""
PASSING = tuple(f"passing-{number}" for number in range(6))
"""Topics that come and go."""
MARKER = "marker"
"""A topic whose configs tell how far a broker has come."""
NEVER = "missing"
BASE_MS = 1_700_000_000_000
"""The time of the first record."""
CLASSIC = tuple(f"classic-{number}" for number in range(6))
CONSUMER = tuple(f"consumer-{number}" for number in range(4))
GROUPS = ("g-committed", "g-committed", "g-empty", "g-missing", *CLASSIC[:3], *CONSUMER[:3], "")


@dataclass
class ClassicGroup:
    """A group of at most one member, so that no join waits for anybody."""

    member: str = ""
    generation: int = -1
    pending: str = ""
    """An id that was given to a member that has not joined yet."""


@dataclass
class ConsumerMember:
    """The one member of a group whose partitions the coordinator assigns."""

    member: str = ""
    epoch: int = 0
    owned: dict[Uuid, list[int]] = field(default_factory=dict)


@dataclass
class World:
    """Learned from answers, which both brokers give alike."""

    topics: dict[str, int] = field(default_factory=dict)
    """The topics of now, with their partitions."""
    ids: dict[str, Uuid] = field(default_factory=dict)
    stale_ids: list[Uuid] = field(default_factory=list)
    sessions: dict[int, int] = field(default_factory=dict)
    """Fetch sessions and their next epochs."""
    classic: dict[str, ClassicGroup] = field(default_factory=lambda: {name: ClassicGroup() for name in CLASSIC})
    consumer: dict[str, ConsumerMember] = field(default_factory=lambda: {name: ConsumerMember() for name in CONSUMER})
    sequences: dict[tuple[int, str, int], int] = field(default_factory=dict)
    """What an idempotent producer sends next: (producer, topic, partition) to its sequence."""
    directory: str = ""
    cluster_id: str = ""
