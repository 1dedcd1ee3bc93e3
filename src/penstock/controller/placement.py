"""Which brokers a new partition goes to: evenly, over racks first and over hosts second, leaders on live brokers.

The host counts because one host may run several brokers; `broker.rack` stays the zone. A topic is spread evenly by
itself, because its partitions are read and written together; where that leaves a choice, it falls on the broker that
has the least of all topics together, so that a thousand topics of one partition are spread evenly too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.metadata.entities import BrokerImage
from penstock.model.errors import INVALID_REPLICATION_FACTOR, Refused

if TYPE_CHECKING:
    from random import Random


@dataclass(slots=True)
class Load:
    """What brokers have already: how many partitions prefer them as leaders, how many replicas they hold."""

    leads: dict[int, int] = field(default_factory=dict)
    holds: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, leads: Mapping[int, int], holds: Mapping[int, int]) -> Load:
        return cls(dict(leads), dict(holds))

    def add(self, replicas: Iterable[int]) -> None:
        """A partition is placed; the first of its replicas is to lead it."""
        for place, broker in enumerate(replicas):
            self.holds[broker] = self.holds.get(broker, 0) + 1
            if place == 0:
                self.leads[broker] = self.leads.get(broker, 0) + 1


@dataclass(slots=True)
class _Candidate:
    id: int
    rack: str | None
    host: str
    idle: bool
    leads: int = 0
    holds: int = 0


def place(
    partitions: int, replication_factor: int, brokers: Iterable[BrokerImage], random: Random, load: Load | None = None
) -> list[list[int]]:
    """Replica lists for the new partitions of a topic, the preferred leader first; `load` is told of them.

    Within one call no live broker leads, and none of a rack holds, noticeably more than another. A broker that is
    fenced or shutting down is used only when there are not enough others, and never leads. Refused with
    INVALID_REPLICATION_FACTOR when there are too few brokers.
    """
    load = Load() if load is None else load
    candidates = [_candidate(each) for each in sorted(brokers, key=lambda each: each.id)]
    if replication_factor > len(candidates):
        raise Refused(
            INVALID_REPLICATION_FACTOR,
            f"{replication_factor} replicas need {replication_factor} brokers, {len(candidates)} can take one",
        )
    if all(each.idle for each in candidates):
        raise Refused(INVALID_REPLICATION_FACTOR, "no broker is live: all are fenced, shutting down or cordoned")
    return [_place_one(replication_factor, candidates, random, load) for _ in range(partitions)]


def _place_one(replication_factor: int, candidates: list[_Candidate], random: Random, load: Load) -> list[int]:
    # Ties are broken by chance: with a fixed order two brokers would always be each other's followers, and when one
    # fails the other would take over all it led.
    shuffled = random.sample(candidates, len(candidates)) if len(candidates) > 1 else candidates
    all_leads, all_holds = load.leads, load.holds
    leader = min(
        shuffled,
        key=lambda each: (each.idle, each.leads, all_leads.get(each.id, 0), each.holds, all_holds.get(each.id, 0)),
    )
    leader.leads += 1
    leader.holds += 1
    chosen = [leader]
    while len(chosen) < replication_factor:
        free = [each for each in shuffled if each not in chosen]
        follower = min(free, key=lambda each: (each.idle, _shared(each, chosen), each.holds, all_holds.get(each.id, 0)))
        follower.holds += 1
        chosen.append(follower)
    replicas = [each.id for each in chosen]
    load.add(replicas)
    return replicas


def _shared(candidate: _Candidate, chosen: list[_Candidate]) -> tuple[int, int]:
    """How many of the chosen would go down with the candidate: by its rack, by its host."""
    racks = sum(each.rack == candidate.rack for each in chosen) if candidate.rack is not None else 0
    return racks, sum(each.host == candidate.host for each in chosen)


def _candidate(broker: BrokerImage) -> _Candidate:
    host = broker.endpoints[0].host if broker.endpoints else f"broker-{broker.id}"
    return _Candidate(broker.id, broker.rack, host, not broker.active)
