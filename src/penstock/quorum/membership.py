"""Who may become or stop being a voter: one change at a time, and none before the leader knows what is committed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from penstock.model.errors import (
    DUPLICATE_VOTER,
    INVALID_REQUEST,
    REQUEST_TIMED_OUT,
    UNSUPPORTED_VERSION,
    VOTER_NOT_FOUND,
    ErrorCode,
)
from penstock.quorum.events import AddAsk, ChangeAsk, RemoveAsk, UpdateAsk

if TYPE_CHECKING:
    from penstock.quorum.state import ReplicaKey
    from penstock.quorum.voters import Voter, VoterSet


class ChangeRefused(NamedTuple):
    """Why a change is not made; REQUEST_TIMED_OUT means that it may be asked for again."""

    error: ErrorCode
    message: str


def decide_change(
    ask: ChangeAsk, voters: VoterSet, kraft_version: int, *, settled: bool, caught_up: bool
) -> VoterSet | ChangeRefused:
    """The voters after the change.

    `settled`: a record of the leader's own epoch is committed, and so is the last change. `caught_up`: the new voter
    has the leader's log.
    """
    if kraft_version < 1:
        return ChangeRefused(UNSUPPORTED_VERSION, "voters given in controller.quorum.voters cannot be changed")
    if not settled:
        return ChangeRefused(REQUEST_TIMED_OUT, "an earlier change of the voters, or of the leader, is not committed")
    match ask:
        case AddAsk(voter):
            return _added(voters, voter, kraft_version, caught_up)
        case RemoveAsk(key):
            return _removed(voters, key)
        case UpdateAsk(_, voter):
            return _updated(voters, voter, kraft_version)


def _added(voters: VoterSet, voter: Voter, kraft_version: int, caught_up: bool) -> VoterSet | ChangeRefused:
    if voters.get(voter.key.id) is not None:
        return ChangeRefused(
            DUPLICATE_VOTER, f"node {voter.key.id} votes already; remove it first when it has another disk now"
        )
    if not voter.endpoints:
        return ChangeRefused(INVALID_REQUEST, "a voter needs the address of its controller listener")
    if not _speaks(voter, kraft_version):
        return ChangeRefused(INVALID_REQUEST, f"node {voter.key.id} does not speak kraft.version {kraft_version}")
    if not caught_up:
        return ChangeRefused(
            REQUEST_TIMED_OUT, f"node {voter.key.id} does not follow the metadata log closely; is it running?"
        )
    return voters.with_voter(voter)


def _removed(voters: VoterSet, key: ReplicaKey) -> VoterSet | ChangeRefused:
    found = voters.get(key.id)
    if found is None or found.key != key:
        return ChangeRefused(VOTER_NOT_FOUND, f"node {key.id} with that directory id does not vote")
    if len(voters) == 1:
        return ChangeRefused(INVALID_REQUEST, "the last voter cannot be removed")
    return voters.without_voter(key.id)


def _updated(voters: VoterSet, voter: Voter, kraft_version: int) -> VoterSet | ChangeRefused:
    found = voters.get(voter.key.id)
    if found is None or found.key != voter.key:
        return ChangeRefused(VOTER_NOT_FOUND, f"node {voter.key.id} with that directory id does not vote")
    if not voter.endpoints:
        return ChangeRefused(INVALID_REQUEST, "a voter needs the address of its controller listener")
    if not _speaks(voter, kraft_version):
        return ChangeRefused(INVALID_REQUEST, f"node {voter.key.id} does not speak kraft.version {kraft_version}")
    return voters.with_voter(voter)


def _speaks(voter: Voter, kraft_version: int) -> bool:
    return voter.kraft_version_min <= kraft_version <= voter.kraft_version_max
