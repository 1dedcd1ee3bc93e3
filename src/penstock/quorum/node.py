"""A node of the quorum: `step(event) -> effects`. Roles and epochs change here and nowhere else."""

from __future__ import annotations

from penstock.model.errors import FENCED_LEADER_EPOCH, INVALID_VOTER_KEY, NONE, ErrorCode
from penstock.model.ids import NO_NODE, Epoch
from penstock.quorum.election import grants_pre_vote, grants_vote
from penstock.quorum.events import (
    Answer,
    Answered,
    Appended,
    Ask,
    Asked,
    BecameFollower,
    BeginAsk,
    Effect,
    EndAsk,
    EpochAnswer,
    Event,
    FetchedFromLeader,
    Flushed,
    LeaderGone,
    PersistState,
    ReplicaFetched,
    Resigned,
    ShutDown,
    SnapshotInstalled,
    Started,
    Tick,
    Truncated,
    VoteAnswer,
    VoteAsk,
)
from penstock.quorum.leader import Leader
from penstock.quorum.standing import BACKOFF_FIRST_MS
from penstock.quorum.state import QuorumState, ReplicaKey, Role


class QuorumNode(Leader):
    """The whole machine: a member that can follow, stand for election, lead, and answer others."""

    def step(self, event: Event) -> list[Effect]:
        """Takes in one event; the effects are to be carried out in order, before the next event."""
        epoch_before = self.epoch
        match event:
            case Started():
                effects = self._on_started(event)
            case Tick(now):
                effects = self._on_tick(now)
            case Appended():
                effects = self._on_appended(event)
            case Truncated():
                effects = self._on_truncated(event)
            case SnapshotInstalled():
                effects = self._on_installed(event)
            case Flushed(now, end):
                self.flushed = max(self.flushed, min(end, self.end))
                effects = self._advance(now)
            case Asked(now, message):
                effects = self._on_asked(now, message)
            case Answered():
                effects = self._on_answered(event)
            case ReplicaFetched():
                effects = self._on_replica_fetched(event)
            case FetchedFromLeader():
                effects = self._on_fetched(event)
            case LeaderGone():
                effects = self._on_gone(event)
            case ShutDown(now):
                effects = self._shut_down(now)
        assert self.epoch >= epoch_before, "epochs never fall"
        assert (self.role is Role.LEADER) == (self.leadership is not None), "only a leader leads"
        return effects

    def _shut_down(self, now: float) -> list[Effect]:
        """Steps down; whoever stands for election stands no more, or it would win and be gone."""
        if self.role is Role.LEADER:
            return self._resign(now)
        if self.role is Role.PROSPECTIVE:
            return self._give_up_prospects(now)
        if self.role is Role.CANDIDATE:
            self.role = Role.UNATTACHED
        return []

    # Time

    def _on_started(self, event: Started) -> list[Effect]:
        self.end = self.flushed = event.end
        self.last_epoch = event.last_epoch
        state = event.state or QuorumState()
        self.epoch = Epoch(max(state.epoch, event.last_epoch))
        if self.epoch == state.epoch:
            self.voted = ReplicaKey(state.voted, state.voted_directory)
            self.leader = state.leader
        if self.leader == self.me.key.id:
            # It may have promised things in that epoch that it no longer knows of. The vote was its own.
            self.role, self.leader, self.voted = Role.RESIGNED, NO_NODE, self.me.key
        if self.leader != NO_NODE:
            self.role = Role.FOLLOWER
            self.deadline = event.now + self._settings.fetch_timeout_ms
            return [BecameFollower(self.leader, self.epoch)]
        if self.is_voter and len(self.voters) == 1:
            return self._stand(event.now)
        self._wait_for_election(event.now)
        if self.deadline is not None:
            # Nobody is known to lead, so nobody is disturbed by being asked soon.
            self.deadline -= self._settings.election_timeout_ms
        return []

    def _on_tick(self, now: float) -> list[Effect]:
        if self.role is Role.LEADER:
            return self._lead_on(now)
        if self.deadline is None or now < self.deadline:
            return []
        if not self.may_stand:
            return self._miss_leader()
        if self.role is Role.PROSPECTIVE:
            return self._give_up_prospects(now)
        return self._canvass(now)

    # The log

    def _on_appended(self, event: Appended) -> list[Effect]:
        self.end, self.last_epoch = event.end, event.last_epoch
        if not event.entries or not self.history.read(event.entries):
            return []
        self._voters_changed(event.now)
        if self.leadership is None:
            return []
        # The new voters count from now on: there may be fewer to wait for, and others to remind.
        return [*self._advance(event.now), *(self._lead_on(event.now) if self.leadership is not None else ())]

    # Requests of others

    def _on_asked(self, now: float, message: Ask) -> list[Effect]:
        match message:
            case VoteAsk():
                return self._on_vote_ask(now, message)
            case BeginAsk():
                return self._on_begin(now, message)
            case EndAsk():
                return self._on_end(now, message)
            case _:
                return self._on_change(now, message)

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
        effects = self._hear_of(now, ask.epoch, ask.leader, firsthand=True) if refusal is NONE else []
        return [*effects, Answer(EpochAnswer(self.epoch, self.leader, refusal))]

    def _on_end(self, now: float, ask: EndAsk) -> list[Effect]:
        refusal = self._refusal(ask.epoch, self.me.key)
        if refusal is not NONE:
            return [Answer(EpochAnswer(self.epoch, self.leader, refusal))]
        effects = self._hear_of(now, ask.epoch, ask.leader)
        if self.role is Role.FOLLOWER and self.may_stand and self.leader == ask.leader:
            # The first successor stands at once, each other a little later, so that they do not split the vote.
            place = next((at for at, key in enumerate(ask.successors) if key.matches(self.me.key)), len(ask.successors))
            self.deadline = now + (0 if place == 0 else BACKOFF_FIRST_MS << min(place, 10))
            # A leader that says goodbye is no reason to refuse others a pre-vote.
            self._ever_fetched, self._leader_left = False, True
        return [*effects, Answer(EpochAnswer(self.epoch, self.leader))]

    def _refusal(self, epoch: Epoch, voter: ReplicaKey) -> ErrorCode:
        if not voter.matches(self.me.key):
            return INVALID_VOTER_KEY
        return FENCED_LEADER_EPOCH if epoch < self.epoch else NONE

    # Answers of others

    def _on_answered(self, event: Answered) -> list[Effect]:
        message = event.message
        effects = self._hear_of(event.now, message.epoch, message.leader)
        if isinstance(message, VoteAnswer):
            effects += self._on_vote_answer(event.now, event.by, message)
        return effects
