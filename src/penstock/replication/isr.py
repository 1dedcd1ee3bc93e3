"""The in-sync set as its leader sees it: what the controller has committed, and the change that was asked for.

Only the controller changes the set, so a leader that wants another one proposes it and waits. Until it knows the
outcome it believes whichever is stricter: a follower that is to come in counts at once, one that is to go still does.
At most one proposal is under way for a partition; who may be proposed is decided in `partition.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, Protocol

from penstock.model.errors import (
    FENCED_LEADER_EPOCH,
    INELIGIBLE_REPLICA,
    INVALID_REQUEST,
    INVALID_UPDATE_VERSION,
    NEW_LEADER_ELECTED,
    OPERATION_NOT_ATTEMPTED,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode,
)
from penstock.model.ids import Epoch, Millis, NodeId, Offset

UNKNOWN_BROKER_EPOCH: Final = -1
"""Asks the controller to take a member as it is: it was in sync before this leader came and has not fetched yet."""

DOUBT_MS: Final = 2_000
"""For how long a refused follower still counts as one that may be in sync.

The same change may have been sent before, over a link that broke: should that request arrive after the refusal, when
the follower may come in again, the controller lets it in. Nothing that was sent is under way for longer than this.
"""

# The controller did not do it, and nothing that it knows and we do not is the reason.
_NOT_DONE: Final = frozenset({INELIGIBLE_REPLICA, OPERATION_NOT_ATTEMPTED})
# The controller knows something newer; it is on its way through the metadata log.
_OVERTAKEN: Final = frozenset({
    FENCED_LEADER_EPOCH, INVALID_REQUEST, INVALID_UPDATE_VERSION, NEW_LEADER_ELECTED, UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
})  # fmt: skip


class Session(Protocol):
    """A follower's fetch session. A fetch counts for all its partitions, also for those that it has no need to name."""

    @property
    def used_at(self) -> Millis: ...


class Follower:
    """What a leader knows of one follower, all of it learned from that follower's fetches."""

    __slots__ = ("broker_epoch", "caught_up_at", "end", "fetched_at", "leader_end_at_fetch", "log_start", "session")

    def __init__(self, caught_up_at: Millis = Millis(0)) -> None:
        self.end = self.log_start = Offset(-1)
        self.broker_epoch: int | None = None
        """The incarnation that fetched; None before the first fetch."""
        self.caught_up_at = caught_up_at
        self.fetched_at = Millis(0)
        self.leader_end_at_fetch = Offset(0)
        self.session: Session | None = None

    def fetched(self, offset: Offset, log_start: Offset, broker_epoch: int, leader_end: Offset, now: Millis) -> None:
        """A fetch at `offset` proves the follower holds everything before it."""
        if offset >= leader_end:
            self.caught_up_at = max(self.caught_up_at, now)
        elif offset >= self.leader_end_at_fetch:
            # It has what we had when it last asked, so it was in sync then.
            self.caught_up_at = max(self.caught_up_at, self.fetched_at)
        self.end, self.log_start, self.broker_epoch = offset, log_start, broker_epoch
        self.leader_end_at_fetch, self.fetched_at = leader_end, now

    def leader_grows_from(self, leader_end: Offset) -> None:
        """The leader appends behind `leader_end`: who had all before it was in sync when its session last came."""
        session = self.session
        if session is not None and self.end >= leader_end and session.used_at > self.caught_up_at:
            self.caught_up_at = session.used_at

    def keeps_up(self, leader_end: Offset, now: Millis, lag_time_max_ms: int) -> bool:
        return self.end >= leader_end or now - self.caught_up_at <= lag_time_max_ms


class Member(NamedTuple):
    """A replica that is to be in sync, and which incarnation of its broker is meant."""

    node: NodeId
    broker_epoch: int


class Proposal(NamedTuple):
    """An in-sync set to ask the controller for. It only counts against the partition epoch it was made from."""

    members: tuple[Member, ...]
    joining: frozenset[NodeId]
    leader_epoch: Epoch
    partition_epoch: int

    @property
    def expands(self) -> bool:
        return bool(self.joining)


def members_of(
    nodes: frozenset[NodeId], replicas: tuple[NodeId, ...], followers: Mapping[NodeId, Follower]
) -> tuple[Member, ...]:
    """The nodes in the order of the assignment; the leader's own broker epoch is filled in by whoever sends it."""
    members = []
    for node in replicas:
        if node in nodes:
            follower = followers.get(node)
            known = None if follower is None else follower.broker_epoch
            members.append(Member(node, UNKNOWN_BROKER_EPOCH if known is None else known))
    return tuple(members)


def was_not_done(error: ErrorCode) -> bool:
    """Whether the in-sync set is certainly what it was, so that the leader goes back to it."""
    return error in _NOT_DONE


def was_overtaken(error: ErrorCode) -> bool:
    """Whether the metadata log will bring the answer; else the same proposal is sent again."""
    return error in _OVERTAKEN
