"""The rules of voting: when a vote may be given, and when there are enough."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.model.ids import Epoch, NodeId, Offset
from penstock.quorum.events import VoteAsk
from penstock.quorum.state import NOBODY, ReplicaKey, Role
from penstock.quorum.voters import VoterSet

_MAY_PRE_VOTE = frozenset({Role.UNATTACHED, Role.PROSPECTIVE, Role.CANDIDATE, Role.RESIGNED})
_MAY_VOTE = frozenset({Role.UNATTACHED, Role.PROSPECTIVE})


@dataclass(slots=True)
class Ballot:
    """The votes of one election, or of the pre-vote before it."""

    granted: set[NodeId] = field(default_factory=set)
    rejected: set[NodeId] = field(default_factory=set)

    def won(self, voters: VoterSet) -> bool:
        return sum(node in self.granted for node in voters.ids) >= voters.majority

    def lost(self, voters: VoterSet) -> bool:
        return sum(node in self.rejected for node in voters.ids) > len(voters) - voters.majority


def up_to_date(ask: VoteAsk, last_epoch: Epoch, end: Offset) -> bool:
    """Whether the candidate's log has at least what ours has: otherwise it could lack something committed."""
    return (ask.last_epoch, ask.end) >= (last_epoch, end)


def grants_pre_vote(role: Role, ever_fetched: bool, ask: VoteAsk, last_epoch: Epoch, end: Offset) -> bool:
    """A node that hears from its leader does not encourage others to replace it."""
    willing = role in _MAY_PRE_VOTE or (role is Role.FOLLOWER and not ever_fetched)
    return willing and up_to_date(ask, last_epoch, end)


def grants_vote(
    role: Role, voted: ReplicaKey, leader_known: bool, ask: VoteAsk, last_epoch: Epoch, end: Offset
) -> bool:
    """One vote per epoch, to a candidate with enough of the log, and none once a leader is known."""
    if role not in _MAY_VOTE or leader_known:
        return False
    # Where voters are given in the configuration, what is remembered of a vote does not name the disk.
    return voted.matches(ask.candidate) or (voted == NOBODY and up_to_date(ask, last_epoch, end))
