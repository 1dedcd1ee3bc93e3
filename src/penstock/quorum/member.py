"""What a node of the quorum knows of itself, and how it follows.

`standing.py` adds how it stands for election, `leader.py` how it leads, `node.py` how it answers others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.model.ids import NO_NODE, Epoch, NodeId, Offset
from penstock.quorum.events import (
    BecameFollower,
    Effect,
    FetchedFromLeader,
    HighWatermark,
    LeaderGone,
    PersistState,
    Resigned,
    Send,
    SnapshotInstalled,
    Truncated,
    UpdateAsk,
)
from penstock.quorum.leading import Leadership
from penstock.quorum.state import FIRST_EPOCH, NOBODY, QuorumSettings, QuorumState, Role
from penstock.quorum.voters import Voter

if TYPE_CHECKING:
    from random import Random

    from penstock.quorum.history import VoterHistory


class Member:
    """One voter or observer. `me` is this node as it runs now, `voters` the newest voter set it knows.

    Read-only for others: `role`, `epoch`, `leader`, `high_watermark`, `voters`, `history`, `leadership` (while leading)
    and `deadline`, the time at which a `Tick` is due (None: never).
    """

    def __init__(
        self, me: Voter, history: VoterHistory, random: Random, settings: QuorumSettings | None = None
    ) -> None:
        self.me, self.history = me, history
        self._random = random
        self._settings = settings or QuorumSettings()
        self.role = Role.UNATTACHED
        self.epoch = FIRST_EPOCH
        self.leader: NodeId = NO_NODE
        self.voted = NOBODY
        self.high_watermark: Offset | None = None
        self.leadership: Leadership | None = None
        self.deadline: float | None = None
        self.end, self.last_epoch, self.flushed = Offset(0), FIRST_EPOCH, Offset(0)
        self._ever_fetched = False
        self._leader_left = False
        self._gone_heard = False
        self._told_ms: float | None = None
        self._read_history()

    def _read_history(self) -> None:
        newest = self.history.newest
        self.voters, self.kraft_version = newest.voters, newest.kraft_version
        self.is_voter = self.voters.has(self.me.key)

    @property
    def may_stand(self) -> bool:
        """Whether it may still be needed as a leader: its removal is only certain when it is committed.

        A leader that has removed itself and fails before the others have that record has the longest log of all.
        Nobody but itself can lead then; votes are counted without its own.
        """
        return self.is_voter or any(
            version.voters.has(self.me.key) for version in self.history.since(self.high_watermark or Offset(0))
        )

    @property
    def state(self) -> QuorumState:
        """What has to be remembered. Who knows the leader need not remember its vote: it gives none in that epoch."""
        if self.leader != NO_NODE:
            return QuorumState(self.epoch, self.leader)
        return QuorumState(self.epoch, NO_NODE, self.voted.id, self.voted.directory)

    def _wait_for_election(self, now: float) -> None:
        # Jitter keeps two voters from standing for election for ever in lockstep.
        election_timeout_ms = self._settings.election_timeout_ms
        wait_ms = election_timeout_ms + self._random.randrange(max(election_timeout_ms, 1))
        self.deadline = now + wait_ms if self.may_stand else None

    # The log

    def _voters_changed(self, now: float) -> None:
        """The log says something else of the quorum than before."""
        self._read_history()
        if self.leadership is not None:
            return
        if self.role is Role.FOLLOWER:
            self.deadline = now + self._settings.fetch_timeout_ms
        elif not self.may_stand:
            self.role, self.deadline = Role.UNATTACHED, None
        elif self.deadline is None:
            self._wait_for_election(now)

    def _on_truncated(self, event: Truncated) -> list[Effect]:
        assert self.leadership is None, "a leader only appends"
        assert self.high_watermark is None or event.end >= self.high_watermark, "what is committed stays"
        self.end, self.last_epoch = event.end, event.last_epoch
        self.flushed = min(self.flushed, event.end)
        if self.history.cut(event.end):
            self._voters_changed(event.now)
        return []

    def _on_installed(self, event: SnapshotInstalled) -> list[Effect]:
        assert self.leadership is None, "a leader has the log"
        self.end = self.flushed = event.end
        self.last_epoch = event.epoch
        self.history.start_over(event.version)
        self._voters_changed(event.now)
        if self.role is Role.FOLLOWER:
            self.deadline = event.now + self._settings.fetch_timeout_ms
        if self.high_watermark is None or event.end > self.high_watermark:
            self.high_watermark = event.end
            return [HighWatermark(event.end)]
        return []

    # Following

    def _miss_leader(self) -> list[Effect]:
        """An observer hears nothing from its leader. It stands for nothing, but no longer speaks against others.

        It may vote without knowing it: the record that made it a voter need not have reached it.
        """
        self._ever_fetched, self.deadline = False, None
        return []

    def _on_gone(self, event: LeaderGone) -> list[Effect]:
        """Stands soon instead of waiting for a fetch timeout; once, because it may be our own way that is barred.

        If the leader is well, the others do not give their pre-votes and all is as before.
        """
        followed = self.role is Role.FOLLOWER and (event.epoch, event.leader) == (self.epoch, self.leader)
        if not followed or self._gone_heard:
            return []
        self._gone_heard, self._ever_fetched = True, False
        soon = event.now + self._random.randrange(max(self._settings.election_timeout_ms // 4, 1))
        self.deadline = soon if self.deadline is None else min(self.deadline, soon)
        return []

    def _on_fetched(self, event: FetchedFromLeader) -> list[Effect]:
        effects = self._hear_of(event.now, event.epoch, event.leader, firsthand=True)
        if self.role is not Role.FOLLOWER or event.epoch != self.epoch or event.leader != self.leader:
            return effects
        self._gone_heard = False
        if not self._leader_left:
            # After its goodbye a last answer may still be on its way; that is no reason to believe in it again.
            self._ever_fetched = True
            self.deadline = event.now + self._settings.fetch_timeout_ms
        if event.high_watermark is not None and event.high_watermark >= 0:
            reached = min(event.high_watermark, self.end)
            if self.high_watermark is None or reached > self.high_watermark:
                self.high_watermark = reached
                effects.append(HighWatermark(reached))
        return [*effects, *self._tell_own_address(event.now)]

    def _tell_own_address(self, now: float) -> list[Effect]:
        """A voter that listens elsewhere than the log says tells the leader, again and again until the log says so."""
        if not self.is_voter or self.kraft_version < 1 or self.voters.get(self.me.key.id) == self.me:
            return []
        if self._told_ms is not None and now - self._told_ms < self._settings.fetch_timeout_ms:
            return []
        self._told_ms = now
        return [Send(self.leader, UpdateAsk(self.epoch, self.me))]

    def _hear_of(self, now: float, epoch: Epoch, leader: NodeId, *, firsthand: bool = False) -> list[Effect]:
        """Somebody, `firsthand` the leader itself, said that `leader` leads `epoch`, or that `epoch` is on."""
        if epoch < self.epoch:
            return []
        if leader == self.me.key.id:
            # Others may remember a leadership that we gave up.
            leader = NO_NODE
        if epoch > self.epoch:
            return self._detach(now, epoch) if leader == NO_NODE else self._follow(now, epoch, leader)
        if leader == NO_NODE or self.role in (Role.LEADER, Role.FOLLOWER):
            return []
        if self.leader == NO_NODE or (firsthand and self.leader == leader):
            # What others remember of a leader is no reason to give up prospects that began with its silence.
            return self._follow(now, epoch, leader)
        return []

    def _follow(self, now: float, epoch: Epoch, leader: NodeId) -> list[Effect]:
        lost = self._lose_leadership(epoch)
        remembered = (self.epoch, self.leader)
        if epoch > self.epoch:
            self.voted = NOBODY
        if remembered != (epoch, leader):
            self._leader_left = self._gone_heard = False
            self._told_ms = None
        self.role, self.epoch, self.leader, self._ever_fetched = Role.FOLLOWER, epoch, leader, False
        self.deadline = now + self._settings.fetch_timeout_ms
        persist: list[Effect] = [PersistState(self.state)] if remembered != (epoch, leader) else []
        return [*persist, *lost, BecameFollower(leader, epoch)]

    def _detach(self, now: float, epoch: Epoch) -> list[Effect]:
        """A newer epoch is on and nobody is known to lead it."""
        lost = self._lose_leadership(epoch)
        self.role, self.epoch, self.leader, self.voted = Role.UNATTACHED, epoch, NO_NODE, NOBODY
        self._wait_for_election(now)
        return [PersistState(self.state), *lost]

    def _lose_leadership(self, epoch: Epoch) -> list[Effect]:
        if self.leadership is None:
            return []
        assert epoch > self.epoch, "an epoch has one leader"
        self.leadership = None
        return [Resigned(self.epoch)]
