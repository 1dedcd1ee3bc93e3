"""Which replica a consumer should read from (KIP-392): the leader, or one that is in the consumer's rack."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from penstock.model.ids import Millis, NodeId, Offset

if TYPE_CHECKING:
    from penstock.replication.partition import Partition
    from penstock.replication.reading import LogFacts

RACK_AWARE: Final = frozenset({"rack-aware", "org.apache.kafka.common.replica.RackAwareReplicaSelector"})
"""The values of `replica.selector.class` that let consumers read near themselves; every other one means the leader."""


def chooses_by_rack(selector: str | None) -> bool:
    return selector in RACK_AWARE


class Candidate(NamedTuple):
    """An in-sync replica as its leader knows it."""

    node: NodeId
    rack: str | None
    log_start: Offset
    end: Offset
    caught_up_at: int

    def holds(self, offset: int) -> bool:
        return self.log_start <= offset <= self.end


def choose_replica(rack: str, offset: int, leader: Candidate, others: Iterable[Candidate]) -> NodeId:
    """Who serves a consumer in `rack` from `offset` on. The leader does unless somebody else is nearer.

    Among several in the rack it is the one that is furthest; ties go to the one that was caught up last, then to the
    larger id.
    """
    if leader.rack == rack:
        return leader.node
    near = [each for each in others if each.rack == rack and each.holds(offset)]
    if not near:
        return leader.node
    return max(near, key=lambda each: (each.end, each.caught_up_at, each.node)).node


class Brokers(Protocol):
    """The brokers of the cluster, as far as a choice among them goes."""

    def rack_of(self, node: NodeId) -> str | None: ...
    def is_alive(self, node: NodeId) -> bool: ...


def nearest_replica(state: Partition, log: LogFacts, rack: str, offset: int, brokers: Brokers, now: Millis) -> NodeId:
    """The replica that a consumer in `rack` should read from, as the leader sees it: live ones in sync, or itself."""
    leader = Candidate(state.me, brokers.rack_of(state.me), log.log_start, log.written, now)
    others = (
        Candidate(node, brokers.rack_of(node), follower.log_start, follower.end, follower.caught_up_at)
        for node, follower in state.followers.items()
        if node in state.isr and brokers.is_alive(node)
    )
    return choose_replica(rack, offset, leader, others)
