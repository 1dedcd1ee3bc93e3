"""A member of a consumer group, and what its pattern matched, as the records hold them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from penstock.model.ids import Uuid

# Partitions by topic id, each with the member epoch at which it was assigned.
Owned = Mapping[Uuid, Mapping[int, int]]

JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1
STATIC_LEAVE_EPOCH: Final = -2
"""A static member that is gone for the moment: it keeps its partitions until its session ends."""

STABLE: Final = 0
UNREVOKED: Final = 1
"""It must let go of partitions before it may follow the target."""
UNRELEASED: Final = 2
"""It follows the target, but partitions of it are still with their former owners."""

NOTHING: Final[Owned] = {}


class ClassicMetadata(NamedTuple):
    """What a member that speaks the classic protocol said when it joined: protocols by name, best first."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


class Member(NamedTuple):
    """A member. A change makes a new value; the defaults are those of a member that nobody has heard of yet."""

    id: str
    epoch: int = JOIN_EPOCH
    previous_epoch: int = -1
    state: int = STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()
    regex: str = ""
    assignor: str | None = None
    assigned: Owned = NOTHING
    revoking: Owned = NOTHING
    classic: ClassicMetadata | None = None

    def follows(self, target_epoch: int) -> bool:
        """Whether it has all that the target of this epoch gives it."""
        return self.state == STABLE and self.epoch == target_epoch

    def at_epoch(self, epoch: int, state: int, assigned: Owned, revoking: Owned = NOTHING) -> Member:
        """The member one step on; the epoch it leaves is remembered for the case that the reply gets lost."""
        return self._replace(epoch=epoch, previous_epoch=self.epoch, state=state, assigned=assigned, revoking=revoking)

    def owns_at(self, topic_id: Uuid, partition: int) -> int | None:
        """The epoch at which the partition was assigned, also while it is being revoked; None when it is not its."""
        found = self.assigned.get(topic_id, _NO_PARTITIONS).get(partition)
        return self.revoking.get(topic_id, _NO_PARTITIONS).get(partition) if found is None else found


class ResolvedRegex(NamedTuple):
    """The topics a pattern matched, the image (by offset) they were looked up in, and when (wall ms)."""

    topics: frozenset[str]
    version: int
    timestamp: int


_NO_PARTITIONS: Mapping[int, int] = {}


def covers(owned: Owned, topics: Iterable[tuple[Uuid, Iterable[int]]]) -> bool:
    """Whether all these partitions are among `owned`."""
    for topic_id, partitions in topics:
        mine = owned.get(topic_id)
        if mine is None or not all(partition in mine for partition in partitions):
            return False
    return True


def same_partitions(one: Owned, other: Owned) -> bool:
    """Whether both name the same partitions, whatever their epochs."""
    return one is other or (
        one.keys() == other.keys() and all(one[topic].keys() == other[topic].keys() for topic in one)
    )
