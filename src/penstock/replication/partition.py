"""One replica of one partition: its role, the in-sync set and the high watermark.

Data plane, so calls return values instead of effect lists. The driver's rhythm is ask -> do -> tell: ask for leave
to append or read, do it on the log, tell what became true.

What each role makes of what it is asked and told; an empty field: nothing.

| | follower, or no role yet | leader |
|---|---|---|
| `become`: an older partition epoch | | |
| `become`: we lead a new epoch | leader; what followers told others is forgotten | the same, anew |
| `become`: we lead the same epoch | | in-sync set, replicas; a proposal is over if the partition epoch rose |
| `become`: another replica leads | follower of it | follower; proposal and followers are forgotten |
| `check_append` | NOT_LEADER_OR_FOLLOWER | the epoch to stamp; acks=all: NOT_ENOUGH_REPLICAS |
| `check_epoch` | FENCED_LEADER_EPOCH below ours, UNKNOWN_LEADER_EPOCH above | the same |
| `check_read` | NOT_LEADER_OR_FOLLOWER, unless any replica will do | leave |
| `follower_at` | UNKNOWN_LEADER_EPOCH: it has no followers | what the fetch proves; high watermark may rise |
| `appended` | notes its end | notes its end; high watermark may rise |
| `followed` | takes the leader's high watermark, as far as its own log goes | (not told) |
| `time_passed` | | who is late is not waited for; high watermark may rise |
| `wanted_isr` | | a proposal, one at a time |
| `isr_settled` | | takes the set, unless the metadata log was faster |
| `isr_refused` | | gives the proposal up, sends it again, or waits for the metadata log |

Asserted whenever the role, the in-sync set or the proposal changes, and never for each batch: neither epoch falls; the
leader is in its in-sync set, and all of that are replicas; a leader follows up on exactly the other replicas, anybody
else on none; a proposal is a leader's, made from the epochs that hold now. The high watermark needs no assertion to
stay at or below the end: `_advance` begins at the end and only goes down from there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.model.errors import (
    FENCED_LEADER_EPOCH,
    NOT_ENOUGH_REPLICAS,
    NOT_LEADER_OR_FOLLOWER,
    UNKNOWN_LEADER_EPOCH,
    ErrorCode,
    Refused,
)
from penstock.model.ids import NO_EPOCH, NO_NODE, Epoch, Millis, NodeId, Offset
from penstock.replication.isr import (
    DOUBT_MS,
    UNKNOWN_BROKER_EPOCH,
    Follower,
    Proposal,
    members_of,
    was_not_done,
    was_overtaken,
)

if TYPE_CHECKING:
    from penstock.metadata.entities import PartitionImage
    from penstock.replication.isr import Session

Eligible = Callable[[NodeId, int], bool]
"""Whether this incarnation of a broker may be in sync: alive, not on its way out, and the one the cluster knows."""


_NOBODY: frozenset[NodeId] = frozenset()


def _anybody(_node: NodeId, _broker_epoch: int) -> bool:
    return True


@dataclass(slots=True)
class Partition:
    """The replica `me` of one partition. Starts as nothing and becomes what the metadata log says."""

    me: NodeId
    min_isr: int = 1
    lag_time_max_ms: int = 30_000
    eligible: Eligible = _anybody
    epoch: Epoch = NO_EPOCH
    partition_epoch: int = -1
    leader: NodeId = NO_NODE
    replicas: tuple[NodeId, ...] = ()
    isr: frozenset[NodeId] = frozenset()
    proposal: Proposal | None = None
    doubted: frozenset[NodeId] = _NOBODY
    doubted_until: Millis = Millis(0)
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
        assert image.leader_epoch >= self.epoch, "leader epochs never fall while partition epochs rise"
        starts_leading = image.leader == self.me and image.leader_epoch > self.epoch
        if starts_leading or image.partition_epoch > self.partition_epoch or image.leader != self.me:
            # With the partition epoch that the controller told us before, a newer proposal stays as it is.
            self._settle(frozenset(NodeId(node) for node in image.isr))
        self.partition_epoch, self.epoch = image.partition_epoch, Epoch(image.leader_epoch)
        self.leader, self.end = NodeId(image.leader), end
        self.replicas = tuple(NodeId(node) for node in image.replicas)
        if log_end is not None and log_end < self.high_watermark:
            self.high_watermark = log_end  # the log was cut while somebody else led
        if starts_leading:
            self.epoch_start = end if log_end is None else log_end
            # What followers told somebody else, or told us in another epoch, proves nothing in this one.
            self.followers = {
                node: Follower(now if node in self.isr else Millis(0)) for node in self.replicas if node != self.me
            }
        elif self.leading:
            self._admit_followers()
        else:
            self.followers = {}
        self._check()
        self._advance(now)
        return starts_leading

    def let_go(self) -> None:
        """This replica is gone, or its topic: it leads nobody, and what it asked for before is nobody's any more."""
        self.leader, self.followers = NO_NODE, {}
        self._settle(self.isr)

    def _admit_followers(self) -> None:
        """A reassignment adds and removes replicas within an epoch."""
        known = self.followers
        others = [node for node in self.replicas if node != self.me]
        if list(known) != others:
            self.followers = {node: known.get(node) or Follower() for node in others}

    # -- asking

    def check_leads(self) -> None:
        """For whoever prepares an append that comes later."""
        if self.leader != self.me:
            raise Refused(NOT_LEADER_OR_FOLLOWER)

    def check_append(self, acks: int) -> Epoch:
        """The epoch to stamp on a batch, if one may be appended with these `acks`."""
        if self.leader != self.me:
            raise Refused(NOT_LEADER_OR_FOLLOWER)
        if acks == -1 and len(self.isr) < self.min_isr and self.under_min_isr:
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

    def check_read(self, claimed_epoch: int, *, leader_only: bool = True) -> None:
        self.check_epoch(claimed_epoch)
        if leader_only and self.leader != self.me:
            raise Refused(NOT_LEADER_OR_FOLLOWER)

    def check_follower(self, follower: NodeId, broker_epoch: int) -> Follower:
        """The follower that fetches. A process that another has taken over from proves nothing by its fetches."""
        state = self.followers.get(follower)
        if state is None:
            raise Refused(UNKNOWN_LEADER_EPOCH, f"broker {follower} is not a replica of this partition")
        known = state.broker_epoch
        if known is not None and UNKNOWN_BROKER_EPOCH < broker_epoch < known:
            raise Refused(NOT_LEADER_OR_FOLLOWER, f"broker {follower} fetches with epoch {broker_epoch}, not {known}")
        return state

    @property
    def knows_its_end(self) -> bool:
        """Whether the high watermark has come to where our epoch began; before, it may be less than was told before."""
        return self.high_watermark >= self.epoch_start

    @property
    def effective_min_isr(self) -> int:
        """A topic cannot ask for more in-sync replicas than it has."""
        return max(1, min(self.min_isr, len(self.replicas)))

    @property
    def under_min_isr(self) -> bool:
        return len(self.isr) < self.effective_min_isr

    @property
    def maximal_isr(self) -> frozenset[NodeId]:
        """Everybody who may be in sync as far as we can know: an expansion counts as soon as it is asked for."""
        proposal = self.proposal
        if proposal is None:
            return self.isr | self.doubted if self.doubted else self.isr
        return self.isr | proposal.joining | self.doubted

    # -- telling

    def appended(self, end: Offset, now: Millis) -> bool:
        """Told how far our own log counts. True when the high watermark moved."""
        if self.followers and end > self.end:
            for state in self.followers.values():
                state.leader_grows_from(self.end)
        self.end = end
        return self._advance(now)

    def follower_at(
        self,
        follower: Follower,
        offset: Offset,
        *,
        log_start: Offset,
        broker_epoch: int,
        leader_end: Offset,
        now: Millis,
        session: Session | None = None,
    ) -> bool:
        """Told what the fetch of a follower proves that `check_follower` let in. True when the high watermark moved."""
        follower.session = session
        follower.fetched(offset, log_start, broker_epoch, leader_end, now)
        return self._advance(now)

    def followed(self, high_watermark: Offset, end: Offset) -> bool:
        """A follower is told its leader's high watermark and its own end. True when its own moved."""
        self.end = end
        if end < self.high_watermark:
            self.high_watermark = end  # truncated: an unclean election has taken back what was committed
        reached = min(high_watermark, end)
        if reached <= self.high_watermark:
            return False
        self.high_watermark = Offset(reached)
        return True

    def time_passed(self, now: Millis) -> bool:
        """Followers that do not keep up any more are not waited for. True when the high watermark moved."""
        return self._advance(now)

    def low_watermark(self, log_start: Offset, alive: Callable[[NodeId], bool] = lambda _node: True) -> Offset:
        """The offset below which every live replica has deleted its records."""
        starts = [state.log_start for node, state in self.followers.items() if alive(node)]
        return Offset(min([log_start, *starts]))

    # -- the in-sync set

    def wanted_isr(self, now: Millis) -> Proposal | None:
        """The change to ask the controller for, if there is one to ask for now; it is under way from here on."""
        if self.proposal is not None or self.leader != self.me:
            return None
        late = self.late(now)
        joining = frozenset() if late else self._joining(now)
        if not late and not joining:
            return None
        wanted = (self.isr - late) | joining
        members = members_of(wanted, self.replicas, self.followers)
        self.proposal = Proposal(members, joining, self.epoch, self.partition_epoch)
        assert self.me in wanted, "a leader does not propose to be out of sync with itself"
        return self.proposal

    def late(self, now: Millis) -> frozenset[NodeId]:
        """In-sync followers that have not kept up for too long."""
        return frozenset(
            node
            for node, state in self.followers.items()
            if node in self.isr and not state.keeps_up(self.end, now, self.lag_time_max_ms)
        )

    def may_join(self, follower: NodeId, now: Millis) -> bool:
        """Whether a follower has all that is committed and all that earlier leaders left, and may be in sync."""
        if follower in self.isr or self.proposal is not None:
            return False
        return self._could_join(follower, self.followers[follower], now)

    def _joining(self, now: Millis) -> frozenset[NodeId]:
        others = ((node, state) for node, state in self.followers.items() if node not in self.isr)
        return frozenset(node for node, state in others if self._could_join(node, state, now))

    def _could_join(self, node: NodeId, state: Follower, now: Millis) -> bool:
        if state.end < self.high_watermark or state.end < self.epoch_start or state.broker_epoch is None:
            return False
        # While the high watermark is frozen a follower may have all below it and still be late: it would go at once,
        # and come again, as fast as the controller can answer.
        return state.keeps_up(self.end, now, self.lag_time_max_ms) and self.eligible(node, state.broker_epoch)

    def isr_settled(
        self, proposal: Proposal, isr: frozenset[NodeId], *, leader_epoch: int, partition_epoch: int, now: Millis
    ) -> bool:
        """The controller has committed an in-sync set. True when the high watermark moved."""
        if self.proposal is not proposal or leader_epoch != self.epoch or partition_epoch < self.partition_epoch:
            return False  # the metadata log was faster, or brings something newer
        self._settle(isr)
        self.partition_epoch = partition_epoch
        self._check()
        return self._advance(now)

    def isr_refused(self, proposal: Proposal, error: ErrorCode, now: Millis) -> bool:
        """The controller did not do it. True when the same proposal has to be sent again."""
        if self.proposal is not proposal or was_overtaken(error):
            return False
        if was_not_done(error):
            self.proposal = None
            self.doubted, self.doubted_until = self.doubted | proposal.joining, Millis(now + DOUBT_MS)
            return False
        return True

    def _check(self) -> None:
        """What holds of any role; see the top of this module."""
        if self.leader != self.me:
            assert not self.followers, "only a leader has followers"
            assert self.proposal is None, "only a leader wants another set"
            return
        assert self.me in self.isr, "a leader is in sync with itself"
        assert len(self.followers) == len(self.replicas) - 1, "a leader follows up on the other replicas"
        for node in self.isr:
            assert node == self.me or node in self.followers, "who is in sync is a replica"
        proposal = self.proposal
        assert proposal is None or (proposal.leader_epoch, proposal.partition_epoch) == (
            self.epoch, self.partition_epoch,
        ), "a proposal counts against the epochs that it was made from"  # fmt: skip

    def _settle(self, isr: frozenset[NodeId]) -> None:
        """A set at a newer partition epoch: whatever was asked for before cannot come true any more."""
        self.isr, self.proposal, self.doubted = isr, None, _NOBODY

    def _advance(self, now: Millis) -> bool:
        if self.leader != self.me or (len(self.isr) < self.min_isr and self.under_min_isr):
            return False
        committed = self.end
        if self.followers:
            committed = self._held_back(committed, now)
        if committed <= self.high_watermark:
            return False
        self.high_watermark = Offset(committed)
        return True

    def _held_back(self, end: Offset, now: Millis) -> Offset:
        """The offset up to which every counted replica has the log: the in-sync set, and followers about to join it.

        A follower that keeps up counts before it is let in, or under load it could never catch up for good.
        """
        if self.doubted and now > self.doubted_until:
            self.doubted = _NOBODY
        isr, committed = self.maximal_isr, end
        for node, state in self.followers.items():
            if state.end < committed and (node in isr or self._is_awaited(node, state, end, now)):
                committed = state.end
        return committed

    def _is_awaited(self, node: NodeId, state: Follower, end: Offset, now: Millis) -> bool:
        if state.broker_epoch is None or not state.keeps_up(end, now, self.lag_time_max_ms):
            return False
        return self.eligible(node, state.broker_epoch)
