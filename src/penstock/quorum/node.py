"""A node of the quorum: `step(event) -> effects`. Roles and epochs change here and nowhere else.

What each role makes of what happens; an empty field: nothing.

| | unattached, resigned | prospective | candidate | follower | leader |
|---|---|---|---|---|---|
| its deadline passes | prospective | gives up: follower, unattached | prospective | prospective | reminds; may resign |
| a pre-vote is asked for | given | given | given | given if the leader is silent | |
| a vote is asked for | given once; not if resigned | given: unattached | | | |
| a majority would vote for it | | candidate, next epoch | | | |
| a majority would not | | gives up, as above | | | |
| a majority voted for it | | | leader | | |
| a majority did not | | | waits, each time longer | | |
| a later epoch, leader unknown | unattached | unattached | unattached | unattached | unattached, resigns |
| a later epoch has a leader | follower | follower | follower | follower | follower, resigns |
| this epoch has a leader | follower | follower, if that is news | follower | | |
| the leader says goodbye | follower, stands soon | the same, if that is news | follower, stands soon | stands soon | |
| the leader's process is gone | | | | stands soon, once | |
| the leader serves a fetch | follower | follower | follower | waits anew, high watermark | |
| a replica fetches, a flush ends | | | | | high watermark; may resign |
| a change of voters is asked for | refused | refused | refused | refused | appended |
| the process stops | | gives up, as above | unattached | | resigned |

Votes and pre-votes go only to a log that has at least what ours has, and a vote only while no leader is known. A node
that may not stand (an observer) has no deadline, or only notes that its leader is silent. A leader resigns when it has
not heard from a majority, and when its own removal from the voters is committed.

Asserted after every event: epochs never fall; who leads has a `Leadership`, and nobody else; the high watermark never
falls; what is flushed or committed is in the log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.model.errors import (
    FENCED_LEADER_EPOCH,
    INVALID_VOTER_KEY,
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    UNKNOWN_LEADER_EPOCH,
    ErrorCode,
)
from penstock.model.ids import NO_NODE, Epoch, NodeId, Offset
from penstock.quorum.election import Ballot, grants_pre_vote, grants_vote
from penstock.quorum.events import (
    AddAsk,
    Answer,
    Answered,
    Append,
    Appended,
    Ask,
    Asked,
    BecameFollower,
    BecameLeader,
    BeginAsk,
    ChangeAnswer,
    ChangeAsk,
    Effect,
    EndAsk,
    EpochAnswer,
    Event,
    FetchedFromLeader,
    Flush,
    Flushed,
    HighWatermark,
    LeaderGone,
    PersistState,
    ReplicaFetched,
    Resigned,
    Send,
    ShutDown,
    SnapshotInstalled,
    Started,
    Tick,
    Truncated,
    UpdateAsk,
    VoteAnswer,
    VoteAsk,
)
from penstock.quorum.leading import Leadership
from penstock.quorum.membership import ChangeRefused, decide_change
from penstock.quorum.state import FIRST_EPOCH, NOBODY, QuorumSettings, QuorumState, ReplicaKey, Role
from penstock.quorum.voters import Voter, VoterSet, leader_change, quorum_records, voters_record

if TYPE_CHECKING:
    from random import Random

    from penstock.quorum.history import VoterHistory

BACKOFF_FIRST_MS = 50


class QuorumNode:
    """One voter or observer. `me` is this node as it runs now, `voters` the newest voter set it knows.

    It owns what it needs in one role only: a `Ballot` while it stands, a `Leadership` while it leads; `history` has
    every voter set that may still count.

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
        self._ballot = Ballot()
        self._failed_elections = 0
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

    def step(self, event: Event) -> list[Effect]:
        """Takes in one event; the effects are to be carried out in order, before the next event."""
        epoch_before, high_watermark_before = self.epoch, self.high_watermark
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
        assert self.flushed <= self.end, "only what is in the log can be on the platter"
        if self.high_watermark is not None:
            assert self.high_watermark <= self.end, "what is committed is in the log"
            assert high_watermark_before is None or self.high_watermark >= high_watermark_before, "commits stay"
        return effects

    # -- time

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

    def _wait_for_election(self, now: float) -> None:
        # Jitter keeps two voters from standing for election for ever in lockstep.
        election_timeout_ms = self._settings.election_timeout_ms
        wait_ms = election_timeout_ms + self._random.randrange(max(election_timeout_ms, 1))
        self.deadline = now + wait_ms if self.may_stand else None

    def _shut_down(self, now: float) -> list[Effect]:
        """Steps down; whoever stands for election stands no more, or it would win and be gone."""
        if self.role is Role.LEADER:
            return self._resign(now)
        if self.role is Role.PROSPECTIVE:
            return self._give_up_prospects(now)
        if self.role is Role.CANDIDATE:
            self.role = Role.UNATTACHED
        return []

    # -- the log

    def _on_appended(self, event: Appended) -> list[Effect]:
        self.end, self.last_epoch = event.end, event.last_epoch
        if not event.entries or not self.history.read(event.entries):
            return []
        self._voters_changed(event.now)
        if self.leadership is None:
            return []
        # The new voters count from now on: there may be fewer to wait for, and others to remind.
        return [*self._advance(event.now), *(self._lead_on(event.now) if self.leadership is not None else ())]

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

    # -- requests and answers of others

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

    def _on_answered(self, event: Answered) -> list[Effect]:
        message = event.message
        effects = self._hear_of(event.now, message.epoch, message.leader)
        if isinstance(message, VoteAnswer):
            effects += self._on_vote_answer(event.now, event.by, message)
        return effects

    # -- learning of leaders and epochs

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

    # -- following

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

    # -- standing for election: asks whether it would win, then takes a new epoch and asks for votes

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

    # -- leading: begins its epoch in the log, counts what a majority has, and steps down

    def _lead(self, now: float) -> list[Effect]:
        self.role, self.leader, self._failed_elections = Role.LEADER, self.me.key.id, 0
        self.leadership = Leadership(self.me.key, self.epoch, self.end, self._ballot.granted, now)
        entries = [leader_change(self.leader, self.voters, self._ballot.granted)]
        current = self.voters.with_voter(self.me) if self.is_voter else self.voters
        if self.kraft_version > 0 and (not self.history.in_log or self.voters != current):
            # The voters are only in the snapshot of a formatted directory, or say of us what is no longer true.
            entries += quorum_records(self.kraft_version, current)
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

    def check_fetch(self, epoch: Epoch) -> ErrorCode:
        """Whether a replica that fetches in `epoch` may be served here."""
        if epoch < self.epoch:
            return FENCED_LEADER_EPOCH
        if epoch > self.epoch:
            return UNKNOWN_LEADER_EPOCH
        return NONE if self.role is Role.LEADER else NOT_LEADER_OR_FOLLOWER

    def _on_replica_fetched(self, event: ReplicaFetched) -> list[Effect]:
        if self.leadership is None:
            return []
        progress = self.leadership.progress(event.replica)
        if event.end is None:
            progress.fetched_ms = event.now
            return []
        progress.fetched(event.now, event.end, self.end)
        return self._advance(event.now)

    def _advance(self, now: float) -> list[Effect]:
        if self.leadership is None:
            return []
        reached = self.leadership.advance(self.voters, self.flushed)
        if reached is None or (self.high_watermark is not None and reached <= self.high_watermark):
            return []
        self.high_watermark = reached
        effects: list[Effect] = [HighWatermark(reached)]
        if not self.is_voter and self.history.newest.offset <= reached:
            # Others have it in the log that we no longer belong to the voters, so one of them has to lead.
            effects += self._resign(now)
        return effects

    def _resign(self, now: float) -> list[Effect]:
        """Gives up the leadership, but neither the epoch nor the vote that was cast in it: that was for ourselves."""
        assert self.leadership is not None
        successors = self.leadership.successors(self.voters)
        self.role, self.leadership, self.leader = Role.RESIGNED, None, NO_NODE
        if not self.may_stand:
            self.role = Role.UNATTACHED
        self._wait_for_election(now)
        ask = EndAsk(self.epoch, self.me.key.id, successors)
        return [Resigned(self.epoch), *(Send(key.id, ask) for key in successors)]

    # -- changing the voters

    def _on_change(self, now: float, ask: ChangeAsk) -> list[Effect]:
        error, message = NONE, ""
        if self.leadership is None:
            error, message = NOT_LEADER_OR_FOLLOWER, "this node does not lead the metadata quorum"
        elif isinstance(ask, UpdateAsk):
            error = self.check_fetch(ask.epoch)
        if error is NONE:
            changed = self._changed(now, ask)
            if not isinstance(changed, ChangeRefused):
                append = Append(self.epoch, (voters_record(changed),))
                end = Offset(self.end + 1)
                return [append, Flush(), Answer(ChangeAnswer(self.epoch, self.leader, end=end))]
            error, message = changed
        return [Answer(ChangeAnswer(self.epoch, self.leader, error, message))]

    def _changed(self, now: float, ask: ChangeAsk) -> VoterSet | ChangeRefused:
        assert self.leadership is not None
        committed = self.leadership.high_watermark
        caught_up = isinstance(ask, AddAsk) and self.leadership.keeps_up(
            ask.voter.key, now, self.end, self._settings.fetch_timeout_ms
        )
        return decide_change(
            ask,
            self.voters,
            self.kraft_version,
            settled=committed is not None and self.history.newest.offset <= committed,
            caught_up=caught_up,
        )
