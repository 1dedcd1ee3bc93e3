"""What a node of the quorum knows of itself, and how it follows. Standing for election and leading are in `node.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.model.ids import NO_NODE, Epoch, NodeId, Offset
from penstock.quorum.events import BecameFollower, Effect, FetchedFromLeader, HighWatermark, PersistState, Resigned
from penstock.quorum.leading import Leadership
from penstock.quorum.state import FIRST_EPOCH, NOBODY, QuorumSettings, QuorumState, Role
from penstock.quorum.voters import Voter, VoterSet

if TYPE_CHECKING:
    from random import Random


class Member:
    """One voter or observer. `me` is this node as it runs now, `voters` the newest voter set it knows.

    Read-only for others: `role`, `epoch`, `leader`, `high_watermark`, `voters`, `leadership` (while leading) and
    `deadline`, the time at which a `Tick` is due (None: never).
    """

    def __init__(
        self,
        me: Voter,
        voters: VoterSet,
        random: Random,
        settings: QuorumSettings | None = None,
        *,
        kraft_version: int = 1,
    ) -> None:
        self.me, self.voters, self.kraft_version = me, voters, kraft_version
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
        self._voters_logged = False
        self._ever_fetched = False

    @property
    def is_voter(self) -> bool:
        return self.voters.has(self.me.key)

    @property
    def state(self) -> QuorumState:
        """What has to be remembered. A leader need not remember its vote: nobody else can win the epoch any more."""
        if self.leader != NO_NODE:
            return QuorumState(self.epoch, self.leader)
        return QuorumState(self.epoch, NO_NODE, self.voted.id, self.voted.directory)

    def _wait_for_election(self, now: float) -> None:
        # Jitter keeps two voters from standing for election for ever in lockstep.
        wait = self._settings.election_timeout_ms + self._random.randrange(self._settings.election_timeout_ms)
        self.deadline = now + wait if self.is_voter else None

    # Following

    def _on_fetched(self, event: FetchedFromLeader) -> list[Effect]:
        effects = self._hear_of(event.now, event.epoch, event.leader)
        if self.role is not Role.FOLLOWER or event.epoch != self.epoch:
            return effects
        self._ever_fetched = True
        self.deadline = event.now + self._settings.fetch_timeout_ms
        reached = min(event.high_watermark, self.end)
        if self.high_watermark is None or reached > self.high_watermark:
            self.high_watermark = reached
            effects.append(HighWatermark(reached))
        return effects

    def _hear_of(self, now: float, epoch: Epoch, leader: NodeId) -> list[Effect]:
        """Somebody said that `leader` leads `epoch`, or that `epoch` is on."""
        if epoch < self.epoch:
            return []
        if leader == self.me.key.id:
            # Others may remember a leadership that we gave up.
            leader = NO_NODE
        if leader != NO_NODE and (epoch > self.epoch or self.role not in (Role.LEADER, Role.FOLLOWER)):
            return self._follow(now, epoch, leader)
        return self._detach(now, epoch) if epoch > self.epoch else []

    def _follow(self, now: float, epoch: Epoch, leader: NodeId) -> list[Effect]:
        lost = self._lose_leadership(epoch)
        remembered = (self.epoch, self.leader)
        if epoch > self.epoch:
            self.voted = NOBODY
        self.role, self.epoch, self.leader, self._ever_fetched = Role.FOLLOWER, epoch, leader, False
        self.deadline = now + self._settings.fetch_timeout_ms if self.is_voter else None
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
