"""Changing who votes: one change at a time, in effect when it is in the log, gone when it is cut off."""

from __future__ import annotations

from penstock.model.errors import (
    DUPLICATE_VOTER,
    INVALID_REQUEST,
    NOT_LEADER_OR_FOLLOWER,
    REQUEST_TIMED_OUT,
    UNSUPPORTED_VERSION,
    VOTER_NOT_FOUND,
)
from penstock.model.ids import Epoch, NodeId, Offset, Uuid
from penstock.protocol.control import KRAFT_VOTERS
from penstock.quorum.events import (
    AddAsk,
    Answer,
    Append,
    Appended,
    Asked,
    BeginAsk,
    ChangeAnswer,
    ChangeAsk,
    Effect,
    EndAsk,
    FetchedFromLeader,
    Flush,
    Flushed,
    HighWatermark,
    RemoveAsk,
    ReplicaFetched,
    Resigned,
    Send,
    Tick,
    Truncated,
    UpdateAsk,
)
from penstock.quorum.history import LoggedEntry, QuorumVersion, VoterHistory
from penstock.quorum.membership import ChangeRefused, decide_change
from penstock.quorum.node import QuorumNode
from penstock.quorum.state import ReplicaKey, Role
from penstock.quorum.voters import Voter, VoterEndpoint, VoterSet, voters_record
from tests.unit.quorum.test_node import THREE, fresh, key, leading, voter

FOUR = THREE.with_voter(voter(4))


def settled() -> QuorumNode:
    """Node 1 leads epoch 1 and its first record is committed."""
    node = leading()
    node.step(Flushed(5_003, Offset(1)))
    node.step(ReplicaFetched(5_003, key(2), Offset(1)))
    node.step(ReplicaFetched(5_003, key(3), Offset(1)))
    assert node.high_watermark == 1
    return node


def asked(node: QuorumNode, message: ChangeAsk) -> list[Effect]:
    return node.step(Asked(5_010, message))


def refused(node: QuorumNode, message: ChangeAsk) -> object:
    (answer,) = asked(node, message)
    assert isinstance(answer, Answer)
    assert isinstance(answer.message, ChangeAnswer)
    return answer.message.error


def logged(node: QuorumNode, voters: VoterSet) -> list[Effect]:
    entry = LoggedEntry(node.end, *voters_record(voters))
    return node.step(Appended(5_011, Offset(node.end + 1), node.epoch, (entry,)))


def test_a_voter_that_keeps_up_is_added_with_one_record() -> None:
    node = settled()
    node.step(ReplicaFetched(5_004, key(4), Offset(1)))
    assert asked(node, AddAsk(voter(4))) == [
        Append(Epoch(1), (voters_record(FOUR),)),
        Flush(),
        Answer(ChangeAnswer(Epoch(1), NodeId(1), end=Offset(2))),
    ]
    logged(node, FOUR)
    assert node.voters == FOUR


def test_the_new_voters_decide_what_is_committed() -> None:
    node = settled()
    node.step(ReplicaFetched(5_004, key(4), Offset(1)))
    asked(node, AddAsk(voter(4)))
    logged(node, FOUR)
    node.step(Flushed(5_012, Offset(2)))
    assert node.step(ReplicaFetched(5_013, key(2), Offset(2))) == []
    assert node.step(ReplicaFetched(5_014, key(4), Offset(2))) == [HighWatermark(Offset(2))]


def test_one_change_at_a_time() -> None:
    node = settled()
    node.step(ReplicaFetched(5_004, key(4), Offset(1)))
    asked(node, AddAsk(voter(4)))
    logged(node, FOUR)
    assert refused(node, RemoveAsk(key(2))) is REQUEST_TIMED_OUT
    node.step(Flushed(5_012, Offset(2)))
    for number in (2, 4):
        node.step(ReplicaFetched(5_013, key(number), Offset(2)))
    assert isinstance(asked(node, RemoveAsk(key(2)))[0], Append)


def test_nothing_changes_before_a_record_of_the_leaders_own_epoch_is_committed() -> None:
    node = leading()
    node.step(ReplicaFetched(5_004, key(4), Offset(1)))
    assert refused(node, AddAsk(voter(4))) is REQUEST_TIMED_OUT


def test_who_does_not_follow_closely_is_not_added() -> None:
    node = settled()
    assert refused(node, AddAsk(voter(4))) is REQUEST_TIMED_OUT
    node.step(ReplicaFetched(5_004, key(4), Offset(0)))
    assert refused(node, AddAsk(voter(4))) is REQUEST_TIMED_OUT
    other_disk = Voter(ReplicaKey(NodeId(4), Uuid(b"x" * 16)), voter(4).endpoints)
    node.step(ReplicaFetched(5_005, key(4), Offset(1)))
    assert refused(node, AddAsk(other_disk)) is REQUEST_TIMED_OUT


def test_changes_that_make_no_sense_are_refused_by_name() -> None:
    def outcome(ask: ChangeAsk, voters: VoterSet = THREE, kraft_version: int = 1) -> object:
        decided = decide_change(ask, voters, kraft_version, settled=True, caught_up=True)
        assert isinstance(decided, ChangeRefused)
        return decided.error

    assert outcome(AddAsk(voter(2))) is DUPLICATE_VOTER
    assert outcome(AddAsk(Voter(key(4)))) is INVALID_REQUEST
    assert outcome(AddAsk(Voter(key(4), voter(4).endpoints, 0, 0))) is INVALID_REQUEST
    assert outcome(RemoveAsk(key(4))) is VOTER_NOT_FOUND
    assert outcome(RemoveAsk(ReplicaKey(NodeId(2), Uuid(b"x" * 16)))) is VOTER_NOT_FOUND
    assert outcome(RemoveAsk(key(1)), VoterSet([voter(1)])) is INVALID_REQUEST
    assert outcome(UpdateAsk(Epoch(1), voter(4))) is VOTER_NOT_FOUND
    assert outcome(AddAsk(voter(4)), kraft_version=0) is UNSUPPORTED_VERSION
    assert refused(fresh(), AddAsk(voter(4))) is NOT_LEADER_OR_FOLLOWER


def test_a_leader_that_is_removed_leads_until_that_is_committed_and_counts_itself_no_more() -> None:
    node = settled()
    asked(node, RemoveAsk(key(1)))
    rest = VoterSet([voter(2), voter(3)])
    logged(node, rest)
    assert node.role is Role.LEADER
    node.step(Flushed(5_012, Offset(2)))
    assert node.step(ReplicaFetched(5_013, key(2), Offset(2))) == []
    farewell = EndAsk(Epoch(1), NodeId(1), (key(2), key(3)))
    assert node.step(ReplicaFetched(5_014, key(3), Offset(2))) == [
        HighWatermark(Offset(2)),
        Resigned(Epoch(1)),
        Send(NodeId(2), farewell),
        Send(NodeId(3), farewell),
    ]
    assert (node.role, node.deadline) == (Role.UNATTACHED, None)


def test_a_leader_whose_removal_is_not_committed_stands_again_without_its_own_vote() -> None:
    node = settled()
    asked(node, RemoveAsk(key(1)))
    logged(node, VoterSet([voter(2), voter(3)]))
    node.step(Tick(20_000))
    assert node.role is Role.RESIGNED
    assert node.deadline is not None
    effects = node.step(Tick(node.deadline))
    assert [each.to for each in effects if isinstance(each, Send)] == [2, 3]
    assert node.role is Role.PROSPECTIVE


def test_a_change_that_is_cut_off_was_never_made() -> None:
    node = fresh(4, THREE)
    node.step(Asked(1, BeginAsk(Epoch(1), NodeId(1), key(4))))
    node.step(Appended(2, Offset(5), Epoch(1), (LoggedEntry(Offset(4), *voters_record(FOUR)),)))
    assert node.is_voter
    node.step(Truncated(3, Offset(4), Epoch(1)))
    assert (node.voters, node.is_voter) == (THREE, False)


def test_a_voter_that_moved_tells_the_leader_until_the_log_says_so() -> None:
    moved = Voter(key(2), (VoterEndpoint("CONTROLLER", "127.0.0.1", 1),))
    node = QuorumNode(moved, VoterHistory(QuorumVersion(Offset(1), 1, THREE)), fresh()._random)
    node.step(Asked(1, BeginAsk(Epoch(1), NodeId(1), key(2))))
    told = Send(NodeId(1), UpdateAsk(Epoch(1), moved))
    assert told in node.step(FetchedFromLeader(2, NodeId(1), Epoch(1), Offset(0)))
    assert told not in node.step(FetchedFromLeader(3, NodeId(1), Epoch(1), Offset(0)))
    assert told in node.step(FetchedFromLeader(2_002, NodeId(1), Epoch(1), Offset(0)))
    entry = LoggedEntry(Offset(1), *voters_record(THREE.with_voter(moved)))
    node.step(Appended(2_003, Offset(2), Epoch(1), (entry,)))
    assert told not in node.step(FetchedFromLeader(9_000, NodeId(1), Epoch(1), Offset(0)))
    assert entry.kind == KRAFT_VOTERS


def test_history_tells_what_held_at_an_offset_and_forgets_what_nobody_can_ask_for() -> None:
    history = VoterHistory.of(THREE)
    history.read([LoggedEntry(Offset(9), *voters_record(FOUR))])
    assert history.at(Offset(9)).voters == THREE
    assert history.at(Offset(10)).voters == FOUR
    assert [each.voters for each in history.since(Offset(9))] == [THREE, FOUR]
    history.forget_before(Offset(10))
    assert not history.cut(Offset(10))
    assert history.newest.voters == FOUR
