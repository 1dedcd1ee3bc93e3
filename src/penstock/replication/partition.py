"""One replica of one partition: its role, the in-sync set and the high watermark.

Data plane, so calls return values instead of effect lists. The driver's rhythm is ask -> do -> tell: ask for leave
to append or read, do it on the log, tell what became true.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.model.errors import (
    FENCED_LEADER_EPOCH,
    NOT_ENOUGH_REPLICAS,
    NOT_LEADER_OR_FOLLOWER,
    UNKNOWN_LEADER_EPOCH,
    Refused,
)
from penstock.model.ids import NO_EPOCH, NO_NODE, Epoch, Millis, NodeId, Offset

if TYPE_CHECKING:
    from penstock.metadata.entities import PartitionImage


@dataclass(slots=True)
class Follower:
    """What a leader knows of one follower, all of it learned from that follower's fetches."""

    end: Offset = Offset(-1)
    log_start: Offset = Offset(-1)
    broker_epoch: int = -1
    caught_up_at: Millis = Millis(0)
    fetched_at: Millis = Millis(0)
    leader_end_at_fetch: Offset = Offset(0)

    def fetched(self, offset: Offset, log_start: Offset, broker_epoch: int, leader_end: Offset, now: Millis) -> None:
        """A fetch at `offset` proves the follower holds everything before it."""
        if offset >= leader_end:
            self.caught_up_at = max(self.caught_up_at, now)
        elif offset >= self.leader_end_at_fetch:
            # It has what we had when it last asked, so it was in sync then.
            self.caught_up_at = max(self.caught_up_at, self.fetched_at)
        self.end, self.log_start, self.broker_epoch = offset, log_start, broker_epoch
        self.leader_end_at_fetch, self.fetched_at = leader_end, now


@dataclass(slots=True)
class Partition:
    """The replica `me` of one partition. Starts as nothing and becomes what the metadata log says."""

    me: NodeId
    min_isr: int = 1
    lag_time_max_ms: int = 30_000
    epoch: Epoch = NO_EPOCH
    partition_epoch: int = -1
    leader: NodeId = NO_NODE
    replicas: tuple[NodeId, ...] = ()
    isr: frozenset[NodeId] = frozenset()
    end: Offset = Offset(0)
    epoch_start: Offset = Offset(0)
    high_watermark: Offset = Offset(0)
    followers: dict[NodeId, Follower] = field(default_factory=dict)

    @property
    def leading(self) -> bool:
        return self.leader == self.me

    def become(self, image: PartitionImage, *, end: Offset, now: Millis, log_end: Offset | None = None) -> bool:
        """Takes the role that `image` gives us. True when a new leader epoch begins here with us as leader.

        `end` is how far our log counts; `log_end` is told when there is more in it that does not count yet.
        """
        if image.partition_epoch < self.partition_epoch:
            return False  # an old decision arriving late
        starts_leading = image.leader == self.me and image.leader_epoch > self.epoch
        self.partition_epoch, self.epoch = image.partition_epoch, Epoch(image.leader_epoch)
        self.leader, self.isr = NodeId(image.leader), frozenset(NodeId(node) for node in image.isr)
        self.replicas, self.end = tuple(NodeId(node) for node in image.replicas), end
        if starts_leading:
            self.epoch_start = end if log_end is None else log_end
            self.followers = {
                node: Follower(caught_up_at=now if node in self.isr else Millis(0))
                for node in self.replicas
                if node != self.me
            }
        elif not self.leading:
            self.followers = {}
        self._advance(now)
        return starts_leading

    def check_append(self, acks: int) -> Epoch:
        """The epoch to stamp on a batch, if one may be appended with these `acks`."""
        if self.leader != self.me:
            raise Refused(NOT_LEADER_OR_FOLLOWER)
        if acks == -1 and len(self.isr) < self.effective_min_isr:
            raise Refused(
                NOT_ENOUGH_REPLICAS,
                f"{len(self.isr)} replicas are in sync and min.insync.replicas asks for {self.effective_min_isr}",
            )
        return self.epoch

    def check_epoch(self, claimed: int) -> None:
        """Refuses a peer whose idea of the leader epoch is not ours; -1 claims nothing."""
        if claimed < 0 or claimed == self.epoch:
            return
        if claimed < self.epoch:
            raise Refused(FENCED_LEADER_EPOCH, f"leader epoch {claimed} is over; the current one is {self.epoch}")
        raise Refused(UNKNOWN_LEADER_EPOCH, f"leader epoch {claimed} is newer than what this broker has heard of")

    @property
    def knows_its_end(self) -> bool:
        """Whether the high watermark has come to where our epoch began; before, it may be less than was told before."""
        return self.high_watermark >= self.epoch_start

    def check_read(self, claimed_epoch: int, *, leader_only: bool = True) -> None:
        if leader_only and self.leader != self.me:
            raise Refused(NOT_LEADER_OR_FOLLOWER)
        self.check_epoch(claimed_epoch)

    @property
    def effective_min_isr(self) -> int:
        """A topic cannot ask for more in-sync replicas than it has."""
        return max(1, min(self.min_isr, len(self.replicas)))

    def appended(self, end: Offset, now: Millis) -> bool:
        """Told how far our own log counts. True when the high watermark moved."""
        self.end = end
        return self._advance(now)

    def follower_at(
        self, follower: NodeId, offset: Offset, *, log_start: Offset, broker_epoch: int, leader_end: Offset, now: Millis
    ) -> bool:
        """Told what a follower's fetch proves. True when the high watermark moved."""
        state = self.followers.get(follower)
        if state is None:
            raise Refused(UNKNOWN_LEADER_EPOCH, f"broker {follower} is not a replica of this partition")
        state.fetched(offset, log_start, broker_epoch, leader_end, now)
        return self._advance(now)

    def low_watermark(self, log_start: Offset) -> Offset:
        """The offset below which every live replica has deleted its records."""
        return Offset(min([log_start, *(state.log_start for state in self.followers.values())]))

    def _advance(self, now: Millis) -> bool:
        if self.leader != self.me or len(self.isr) < self.effective_min_isr:
            return False
        committed = self.end
        for node, state in self.followers.items():
            # A follower that keeps up counts before it is let into the ISR, or it could never catch up for good.
            if node in self.isr or now - state.caught_up_at <= self.lag_time_max_ms:
                committed = min(committed, state.end)
        if committed <= self.high_watermark:
            return False
        self.high_watermark = Offset(committed)
        return True
