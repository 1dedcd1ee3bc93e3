"""How a node leads: it begins its epoch in the log, counts what a majority has, changes the voters, and steps down."""

from __future__ import annotations

from penstock.model.errors import FENCED_LEADER_EPOCH, NONE, NOT_LEADER_OR_FOLLOWER, UNKNOWN_LEADER_EPOCH, ErrorCode
from penstock.model.ids import NO_NODE, Epoch, Offset
from penstock.quorum.events import (
    AddAsk,
    Answer,
    Append,
    BecameLeader,
    BeginAsk,
    ChangeAnswer,
    ChangeAsk,
    Effect,
    EndAsk,
    Flush,
    HighWatermark,
    PersistState,
    ReplicaFetched,
    Resigned,
    Send,
    UpdateAsk,
)
from penstock.quorum.leading import Leadership
from penstock.quorum.membership import ChangeRefused, decide_change
from penstock.quorum.standing import Standing
from penstock.quorum.state import Role
from penstock.quorum.voters import VoterSet, leader_change, quorum_records, voters_record


class Leader(Standing):
    """A member that can lead."""

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

    # Changing the voters

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
