"""Which brokers a new partition goes to: evenly, over racks first and over hosts second, leaders on live brokers.

The host counts because one host may run several brokers; `broker.rack` stays the zone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.metadata.entities import BrokerImage
from penstock.model.errors import INVALID_REPLICATION_FACTOR, Refused

if TYPE_CHECKING:
    from random import Random


@dataclass(slots=True)
class _Candidate:
    id: int
    rack: str | None
    host: str
    fenced: bool
    leads: int = 0
    holds: int = 0


def place(partitions: int, replication_factor: int, brokers: Iterable[BrokerImage], random: Random) -> list[list[int]]:
    """Replica lists for new partitions, the preferred leader first.

    Within one call no live broker leads, and none of a rack holds, noticeably more than another. A fenced broker is
    used only when there are not enough live ones, and never leads. Refused with INVALID_REPLICATION_FACTOR when there
    are too few brokers.
    """
    candidates = [_candidate(each) for each in sorted(brokers, key=lambda each: each.id)]
    if replication_factor > len(candidates):
        raise Refused(
            INVALID_REPLICATION_FACTOR,
            f"{replication_factor} replicas need {replication_factor} brokers, {len(candidates)} can take one",
        )
    if all(each.fenced for each in candidates):
        raise Refused(INVALID_REPLICATION_FACTOR, "no broker is live: all are fenced or cordoned")
    return [_place_one(replication_factor, candidates, random) for _ in range(partitions)]


def _place_one(replication_factor: int, candidates: list[_Candidate], random: Random) -> list[int]:
    # Ties are broken by chance: with a fixed order two brokers would always be each other's followers, and when one
    # fails the other would take over all it led.
    shuffled = random.sample(candidates, len(candidates))
    leader = min(shuffled, key=lambda each: (each.fenced, each.leads, each.holds))
    leader.leads += 1
    chosen = [leader]
    leader.holds += 1
    while len(chosen) < replication_factor:
        free = [each for each in shuffled if each not in chosen]
        follower = min(free, key=lambda each: (each.fenced, _shared(each, chosen), each.holds))
        follower.holds += 1
        chosen.append(follower)
    return [each.id for each in chosen]


def _shared(candidate: _Candidate, chosen: list[_Candidate]) -> tuple[int, int]:
    """How many of the chosen would go down with the candidate: by its rack, by its host."""
    racks = sum(each.rack == candidate.rack for each in chosen) if candidate.rack is not None else 0
    return racks, sum(each.host == candidate.host for each in chosen)


def _candidate(broker: BrokerImage) -> _Candidate:
    host = broker.endpoints[0].host if broker.endpoints else f"broker-{broker.id}"
    return _Candidate(broker.id, broker.rack, host, broker.fenced)
