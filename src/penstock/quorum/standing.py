"""How a voter stands for election: it asks whether it would win, then takes a new epoch and asks for votes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from penstock.model.ids import NO_NODE, Epoch, NodeId
from penstock.quorum.election import Ballot
from penstock.quorum.events import Effect, PersistState, Send, VoteAnswer, VoteAsk
from penstock.quorum.member import Member
from penstock.quorum.state import QuorumSettings, Role

if TYPE_CHECKING:
    from random import Random

    from penstock.quorum.history import VoterHistory
    from penstock.quorum.voters import Voter

BACKOFF_FIRST_MS = 50


class Standing(Member, ABC):
    """A member that can win an election."""

    def __init__(
        self, me: Voter, history: VoterHistory, random: Random, settings: QuorumSettings | None = None
    ) -> None:
        super().__init__(me, history, random, settings)
        self._ballot = Ballot()
        self._failed_elections = 0

    @abstractmethod
    def _lead(self, now: float) -> list[Effect]:
        """The election is won."""

    def _canvass(self, now: float) -> list[Effect]:
        """Asks whether an election would succeed, before disturbing everybody with a new epoch."""
        self.role, self._ballot = Role.PROSPECTIVE, Ballot({self.me.key.id})
        self._wait_for_election(now)
        if self._ballot.won(self.voters):
            return self._stand(now)
        if self._leader_left and self.deadline is not None:
            # It will not answer any more, and the others may not have heard its goodbye yet: ask them again soon.
            self.deadline = now + (self.deadline - now) / 8
        return self._ask_for_votes(pre_vote=True)

    def _give_up_prospects(self, now: float) -> list[Effect]:
        if self.leader == NO_NODE:
            self.role = Role.UNATTACHED
            self._wait_for_election(now)
            return []
        effects = self._follow(now, self.epoch, self.leader)
        if self._leader_left:
            # The others may just not have heard its goodbye yet.
            self.deadline = self._after_failure(now)
        return effects

    def _stand(self, now: float) -> list[Effect]:
        self.role, self.epoch = Role.CANDIDATE, Epoch(self.epoch + 1)
        self.leader, self.voted, self._ballot = NO_NODE, self.me.key, Ballot({self.me.key.id})
        self._wait_for_election(now)
        if self._ballot.won(self.voters):
            # Nobody else votes, so nobody is told before the leadership itself is on disk.
            return self._lead(now)
        return [PersistState(self.state), *self._ask_for_votes(pre_vote=False)]

    def _ask_for_votes(self, *, pre_vote: bool) -> list[Effect]:
        return [
            Send(
                voter.key.id,
                VoteAsk(self.epoch, self.me.key, voter.key, self.last_epoch, self.end, pre_vote),
            )
            for voter in self.voters.others(self.me.key.id)
        ]

    def _on_vote_answer(self, now: float, by: NodeId, answer: VoteAnswer) -> list[Effect]:
        wanted = Role.PROSPECTIVE if answer.pre_vote else Role.CANDIDATE
        if self.role is not wanted or answer.epoch != self.epoch:
            return []
        (self._ballot.granted if answer.granted else self._ballot.rejected).add(by)
        if self._ballot.won(self.voters):
            return self._stand(now) if answer.pre_vote else self._lead(now)
        if self._ballot.lost(self.voters):
            if answer.pre_vote:
                return self._give_up_prospects(now)
            self.deadline = self._after_failure(now)
        return []

    def _after_failure(self, now: float) -> float:
        """When to try again: each failure in a row doubles the longest random wait."""
        self._failed_elections += 1
        longest = min(self._settings.election_backoff_max_ms, BACKOFF_FIRST_MS << min(self._failed_elections, 10))
        return now + self._random.randrange(1, max(longest, 1) + 1)
