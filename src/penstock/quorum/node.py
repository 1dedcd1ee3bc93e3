"""A node of the quorum: `step(event) -> effects`. Roles and epochs change here and nowhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.model.errors import (
    FENCED_LEADER_EPOCH,
    INVALID_VOTER_KEY,
    NONE,
    UNKNOWN_LEADER_EPOCH,
    ErrorCode,
)
from penstock.model.ids import NO_NODE, Epoch, NodeId
from penstock.quorum.election import Ballot, grants_pre_vote, grants_vote
from penstock.quorum.events import (
    Answer,
    Answered,
    Append,
    Appended,
    Asked,
    BecameFollower,
    BecameLeader,
    BeginAsk,
    Effect,
    EndAsk,
    EpochAnswer,
    Event,
    FetchedFromLeader,
    Flush,
    Flushed,
    HighWatermark,
    PersistState,
    ReplicaFetched,
    Resigned,
    Send,
    ShutDown,
    Started,
    Tick,
    VoteAnswer,
    VoteAsk,
)
from penstock.quorum.leading import Leadership
from penstock.quorum.member import Member
from penstock.quorum.state import NOBODY, QuorumSettings, QuorumState, ReplicaKey, Role
from penstock.quorum.voters import Voter, VoterSet, leader_change, quorum_records

if TYPE_CHECKING:
    from random import Random

_BACKOFF_BASE_MS = 50


class QuorumNode(Member):
    """The whole machine: a member that can also stand for election, lead and answer others."""

    def __init__(
        self,
        me: Voter,
        voters: VoterSet,
        random: Random,
        settings: QuorumSettings | None = None,
        *,
        kraft_version: int = 1,
    ) -> None:
        super().__init__(me, voters, random, settings, kraft_version=kraft_version)
        self._ballot = Ballot()
        self._failed_elections = 0

    def step(self, event: Event) -> list[Effect]:
        """Takes in one event; the effects are to be carried out in order, before the next event."""
        epoch_before = self.epoch
        match event:
            case Started():
                effects = self._on_started(event)
            case Tick(now):
                effects = self._on_tick(now)
            case Appended(_, end, last_epoch):
                self.end, self.last_epoch = end, last_epoch
                self.flushed = min(self.flushed, end)
                effects = []
            case Flushed(_, end):
                self.flushed = max(self.flushed, min(end, self.end))
                effects = self._advance()
            case Asked(now, message):
                effects = self._on_asked(now, message)
            case Answered():
                effects = self._on_answered(event)
            case ReplicaFetched():
                effects = self._on_replica_fetched(event)
            case FetchedFromLeader():
                effects = self._on_fetched(event)
            case ShutDown(now):
                effects = self._resign(now) if self.role is Role.LEADER else []
        assert self.epoch >= epoch_before, "epochs never fall"
        assert (self.role is Role.LEADER) == (self.leadership is not None), "only a leader leads"
        return effects

    # Time

    def _on_started(self, event: Started) -> list[Effect]:
        self.end = self.flushed = event.end
        self.last_epoch, self._voters_logged = event.last_epoch, event.voters_logged
        state = event.state or QuorumState()
        self.epoch = Epoch(max(state.epoch, event.last_epoch))
        if self.epoch == state.epoch:
            self.voted = ReplicaKey(state.voted, state.voted_directory)
            self.leader = state.leader
        if self.leader == self.me.key.id:
            # It may have promised things in that epoch that it no longer knows of.
            self.role, self.leader, self.voted = Role.RESIGNED, NO_NODE, NOBODY
        if self.leader != NO_NODE:
            self.role = Role.FOLLOWER
            self.deadline = event.now + self._settings.fetch_timeout_ms
            return [BecameFollower(self.leader, self.epoch)]
        if self.is_voter and len(self.voters) == 1:
            return self._stand(event.now)
        self._wait_for_election(event.now)
        return []

    def _on_tick(self, now: float) -> list[Effect]:
        if self.role is Role.LEADER:
            return self._lead_on(now)
        if self.deadline is None or now < self.deadline or not self.is_voter:
            return []
        if self.role is Role.PROSPECTIVE:
            return self._give_up_prospects(now)
        return self._canvass(now)

    # Standing for election

    def _canvass(self, now: float) -> list[Effect]:
        """Asks whether an election would succeed, before disturbing everybody with a new epoch."""
        self.role, self._ballot = Role.PROSPECTIVE, Ballot({self.me.key.id})
        self._wait_for_election(now)
        if self._ballot.won(self.voters):
            return self._stand(now)
        return self._ask_for_votes(pre_vote=True)

    def _give_up_prospects(self, now: float) -> list[Effect]:
        if self.leader != NO_NODE:
            return self._follow(now, self.epoch, self.leader)
        self.role = Role.UNATTACHED
        self._wait_for_election(now)
        return []

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
            self._failed_elections += 1
            longest = min(self._settings.election_backoff_max_ms, _BACKOFF_BASE_MS << min(self._failed_elections, 10))
            self.deadline = now + self._random.randrange(1, longest + 1)
        return []

    # Leading

    def _lead(self, now: float) -> list[Effect]:
        self.role, self.leader, self._failed_elections = Role.LEADER, self.me.key.id, 0
        self.leadership = Leadership(self.me.key, self.epoch, self.end, self._ballot.granted, now)
        entries = [leader_change(self.leader, self.voters, self._ballot.granted)]
        if self.kraft_version > 0 and (not self._voters_logged or self.voters.get(self.me.key.id) != self.me):
            # The voters are only in the snapshot of a formatted directory, or say of us what is no longer true.
            self.voters = self.voters.with_voter(self.me)
            entries += quorum_records(self.kraft_version, self.voters)
            self._voters_logged = True
        return [
            PersistState(self.state),
            BecameLeader(self.epoch, self.end),
            Append(self.epoch, tuple(entries)),
            Flush(),
            *self._lead_on(now),
        ]

    def _lead_on(self, now: float) -> list[Effect]:
        """Reminds voters that do not fetch, and steps down when a majority no longer does."""
        assert self.leadership is not None
        if len(self.voters) == 1 and self.is_voter:
            self.deadline = None
            return []
        believed_until = self.leadership.majority_heard_ms(self.voters, now) + self._settings.check_quorum_ms
        if now >= believed_until:
            return self._resign(now)
        every_ms = self._settings.fetch_timeout_ms / 2
        self.deadline = min(believed_until, now + every_ms)
        silent = self.leadership.to_remind(self.voters, now, every_ms)
        return [Send(key.id, BeginAsk(self.epoch, self.me.key.id, key)) for key in silent]

    def _on_replica_fetched(self, event: ReplicaFetched) -> list[Effect]:
        if self.leadership is None:
            return []
        self.leadership.progress(event.replica).fetched(event.now, event.end, self.end)
        return self._advance()

    def _advance(self) -> list[Effect]:
        if self.leadership is None:
            return []
        reached = self.leadership.advance(self.voters, self.flushed)
        if reached is None or (self.high_watermark is not None and reached <= self.high_watermark):
            return []
        self.high_watermark = reached
        return [HighWatermark(reached)]

    def _resign(self, now: float) -> list[Effect]:
        assert self.leadership is not None
        successors = self.leadership.successors(self.voters)
        self.role, self.leadership, self.leader = Role.RESIGNED, None, NO_NODE
        self._wait_for_election(now)
        ask = EndAsk(self.epoch, self.me.key.id, successors)
        return [Resigned(self.epoch), *(Send(key.id, ask) for key in successors)]

    # Requests of others

    def _on_asked(self, now: float, message: VoteAsk | BeginAsk | EndAsk) -> list[Effect]:
        match message:
            case VoteAsk():
                return self._on_vote_ask(now, message)
            case BeginAsk():
                return self._on_begin(now, message)
            case EndAsk():
                return self._on_end(now, message)

    def _on_vote_ask(self, now: float, ask: VoteAsk) -> list[Effect]:
        refusal = self._refusal(ask.epoch, ask.voter)
        if refusal is not NONE:
            return [Answer(VoteAnswer(self.epoch, self.leader, False, refusal, ask.pre_vote))]
        effects = self._detach(now, ask.epoch) if ask.epoch > self.epoch else []
        if ask.pre_vote:
            granted = grants_pre_vote(self.role, self._ever_fetched, ask, self.last_epoch, self.end)
        else:
            leader_known = self.leader != NO_NODE
            granted = grants_vote(self.role, self.voted, leader_known, ask, self.last_epoch, self.end)
            if granted and self.voted != ask.candidate:
                self.role, self.voted = Role.UNATTACHED, ask.candidate
                self._wait_for_election(now)
                effects = [PersistState(self.state), *(each for each in effects if isinstance(each, Resigned))]
        return [*effects, Answer(VoteAnswer(self.epoch, self.leader, granted, NONE, ask.pre_vote))]

    def _on_begin(self, now: float, ask: BeginAsk) -> list[Effect]:
        refusal = self._refusal(ask.epoch, ask.voter)
        effects = self._hear_of(now, ask.epoch, ask.leader) if refusal is NONE else []
        return [*effects, Answer(EpochAnswer(self.epoch, self.leader, refusal))]

    def _on_end(self, now: float, ask: EndAsk) -> list[Effect]:
        refusal = self._refusal(ask.epoch, self.me.key)
        if refusal is not NONE:
            return [Answer(EpochAnswer(self.epoch, self.leader, refusal))]
        effects = self._hear_of(now, ask.epoch, ask.leader)
        if self.role is Role.FOLLOWER and self.is_voter:
            # The first successor stands at once, each other a little later, so that they do not split the vote.
            place = next((at for at, key in enumerate(ask.successors) if key.matches(self.me.key)), len(ask.successors))
            self.deadline = now + (0 if place == 0 else _BACKOFF_BASE_MS << min(place, 10))
            # A leader that says goodbye is no reason to refuse others a pre-vote.
            self._ever_fetched = False
        return [*effects, Answer(EpochAnswer(self.epoch, self.leader))]

    def _refusal(self, epoch: Epoch, voter: ReplicaKey) -> ErrorCode:
        if not voter.matches(self.me.key):
            return INVALID_VOTER_KEY
        return FENCED_LEADER_EPOCH if epoch < self.epoch else NONE

    def check_fetch_epoch(self, epoch: Epoch) -> ErrorCode:
        """Whether a replica that fetches in `epoch` may be served by this leader."""
        if epoch == self.epoch:
            return NONE
        return FENCED_LEADER_EPOCH if epoch < self.epoch else UNKNOWN_LEADER_EPOCH

    # Answers of others

    def _on_answered(self, event: Answered) -> list[Effect]:
        message = event.message
        effects = self._hear_of(event.now, message.epoch, message.leader)
        if isinstance(message, VoteAnswer):
            effects += self._on_vote_answer(event.now, event.by, message)
        return effects
