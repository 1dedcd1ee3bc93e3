"""Elections, votes and commits, one step at a time."""

from __future__ import annotations

from random import Random

from penstock.model.errors import FENCED_LEADER_EPOCH, INVALID_VOTER_KEY, UNKNOWN_LEADER_EPOCH
from penstock.model.ids import Epoch, NodeId, Offset, Uuid
from penstock.protocol.control import KRAFT_VERSION, KRAFT_VOTERS, LEADER_CHANGE
from penstock.quorum.events import (
    Answer,
    Answered,
    Append,
    Appended,
    Asked,
    BecameFollower,
    BecameLeader,
    BeginAsk,
    EndAsk,
    EpochAnswer,
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
    Started,
    Tick,
    VoteAnswer,
    VoteAsk,
)
from penstock.quorum.history import QuorumVersion, VoterHistory
from penstock.quorum.node import QuorumNode
from penstock.quorum.state import QuorumState, ReplicaKey, Role
from penstock.quorum.voters import Voter, VoterEndpoint, VoterSet, leader_change, quorum_records


def key(number: int) -> ReplicaKey:
    return ReplicaKey(NodeId(number), Uuid(bytes([number] * 16)))


def voter(number: int) -> Voter:
    return Voter(key(number), (VoterEndpoint("CONTROLLER", "127.0.0.1", 9093 + number),))


ONE = VoterSet([voter(1)])
THREE = VoterSet([voter(1), voter(2), voter(3)])


def logged(voters: VoterSet) -> VoterHistory:
    """A log has named these voters."""
    return VoterHistory(QuorumVersion(Offset(1), 1, voters))


def fresh(number: int = 1, voters: VoterSet = THREE) -> QuorumNode:
    node = QuorumNode(voter(number), logged(voters), Random(7))
    begin = Started(0, None, Offset(0), Epoch(0))
    node.step(begin)
    return node


def leading(voters: VoterSet = THREE) -> QuorumNode:
    """Node 1 leads epoch 1, which starts at offset 0; one record is in its log."""
    node = fresh(1, voters)
    node.step(Tick(5_000))
    node.step(Answered(5_001, NodeId(2), VoteAnswer(Epoch(0), granted=True, pre_vote=True)))
    node.step(Answered(5_002, NodeId(2), VoteAnswer(Epoch(1), granted=True)))
    assert node.role is Role.LEADER
    node.step(Appended(5_002, Offset(1), Epoch(1)))
    return node


def ask(number: int, epoch: int, *, last: int = 0, end: int = 0, to: int = 1, pre: bool = False) -> Asked:
    return Asked(10_000, VoteAsk(Epoch(epoch), key(number), key(to), Epoch(last), Offset(end), pre))


def test_a_sole_voter_leads_from_its_first_step() -> None:
    node = QuorumNode(voter(1), VoterHistory.of(ONE), Random(7))
    effects = node.step(Started(0, None, Offset(0), Epoch(0)))
    entries = (leader_change(NodeId(1), ONE, [NodeId(1)]), *quorum_records(1, ONE))
    assert effects == [
        PersistState(QuorumState(Epoch(1), NodeId(1))),
        BecameLeader(Epoch(1), Offset(0)),
        Append(Epoch(1), entries),
        Flush(),
    ]
    assert [kind for kind, _ in entries] == [LEADER_CHANGE, KRAFT_VERSION, KRAFT_VOTERS]
    assert node.deadline is None


def test_a_sole_voter_commits_what_it_has_flushed_and_nothing_before() -> None:
    node = QuorumNode(voter(1), VoterHistory.of(ONE), Random(7))
    node.step(Started(0, None, Offset(0), Epoch(0)))
    assert node.step(Appended(1, Offset(3), Epoch(1))) == []
    assert node.step(Flushed(2, Offset(3))) == [HighWatermark(Offset(3))]
    assert node.step(Appended(3, Offset(9), Epoch(1))) == []
    assert node.step(Flushed(4, Offset(5))) == [HighWatermark(Offset(5))]
    assert node.step(Flushed(5, Offset(9))) == [HighWatermark(Offset(9))]
    assert node.step(Flushed(6, Offset(9))) == []


def test_a_restarted_leader_takes_a_new_epoch_and_writes_its_voters_only_when_they_changed() -> None:
    was = QuorumState(Epoch(4), NodeId(1))
    node = QuorumNode(voter(1), logged(ONE), Random(7))
    effects = node.step(Started(0, was, Offset(50), Epoch(4)))
    assert effects[0] == PersistState(QuorumState(Epoch(5), NodeId(1)))
    assert effects[2] == Append(Epoch(5), (leader_change(NodeId(1), ONE, [NodeId(1)]),))
    moved = Voter(key(1), (VoterEndpoint("CONTROLLER", "127.0.0.1", 1),))
    node = QuorumNode(moved, logged(ONE), Random(7))
    effects = node.step(Started(0, was, Offset(50), Epoch(4)))
    after = VoterSet([moved])
    assert effects[2] == Append(Epoch(5), (leader_change(NodeId(1), after, [NodeId(1)]), *quorum_records(1, after)))


def test_with_static_voters_an_epoch_starts_with_the_leader_alone() -> None:
    node = QuorumNode(voter(1), VoterHistory.of(ONE, 0), Random(7))
    effects = node.step(Started(0, None, Offset(0), Epoch(0)))
    assert effects[2] == Append(Epoch(1), (leader_change(NodeId(1), ONE, [NodeId(1)]),))


def test_the_epoch_is_never_below_that_of_the_log() -> None:
    node = QuorumNode(voter(1), VoterHistory.of(ONE), Random(7))
    effects = node.step(Started(0, None, Offset(50), Epoch(8)))
    assert effects[0] == PersistState(QuorumState(Epoch(9), NodeId(1)))


def test_a_voter_canvasses_before_it_disturbs_the_epoch() -> None:
    node = fresh()
    assert node.deadline is not None
    assert 0 <= node.deadline < 1_000, "nobody leads, so nobody is disturbed by being asked soon"
    effects = node.step(Tick(node.deadline))
    asked = [VoteAsk(Epoch(0), key(1), key(to), Epoch(0), Offset(0), pre_vote=True) for to in (2, 3)]
    assert effects == [Send(NodeId(2), asked[0]), Send(NodeId(3), asked[1])]
    assert (node.role, node.epoch) == (Role.PROSPECTIVE, 0)


def test_a_candidates_own_vote_reaches_the_disk_before_the_wire() -> None:
    node = fresh()
    node.step(Tick(5_000))
    effects = node.step(Answered(5_001, NodeId(3), VoteAnswer(Epoch(0), granted=True, pre_vote=True)))
    assert effects[0] == PersistState(QuorumState(Epoch(1), voted=NodeId(1), voted_directory=key(1).directory))
    assert [effect.to for effect in effects if isinstance(effect, Send)] == [2, 3]


def test_a_majority_makes_a_leader_that_tells_the_others() -> None:
    node = fresh()
    node.step(Tick(5_000))
    node.step(Answered(5_001, NodeId(3), VoteAnswer(Epoch(0), granted=True, pre_vote=True)))
    effects = node.step(Answered(5_002, NodeId(3), VoteAnswer(Epoch(1), granted=True)))
    assert effects == [
        PersistState(QuorumState(Epoch(1), NodeId(1))),
        BecameLeader(Epoch(1), Offset(0)),
        Append(Epoch(1), (leader_change(NodeId(1), THREE, [NodeId(1), NodeId(3)]),)),
        Flush(),
        Send(NodeId(2), BeginAsk(Epoch(1), NodeId(1), key(2))),
        Send(NodeId(3), BeginAsk(Epoch(1), NodeId(1), key(3))),
    ]


def test_a_lost_election_is_tried_again_after_a_while() -> None:
    node = fresh()
    node.step(Tick(5_000))
    node.step(Answered(5_001, NodeId(3), VoteAnswer(Epoch(0), granted=True, pre_vote=True)))
    for by in (2, 3):
        node.step(Answered(5_002, NodeId(by), VoteAnswer(Epoch(1), granted=False)))
    assert node.deadline is not None
    assert 5_002 < node.deadline <= 5_102
    node.step(Tick(node.deadline))
    assert (node.role, node.epoch) == (Role.PROSPECTIVE, 1)


def test_a_granted_vote_reaches_the_disk_before_the_wire() -> None:
    node = fresh()
    state = QuorumState(Epoch(3), voted=NodeId(2), voted_directory=key(2).directory)
    assert node.step(ask(2, 3)) == [PersistState(state), Answer(VoteAnswer(Epoch(3), granted=True))]


def test_one_vote_per_epoch() -> None:
    node = fresh()
    node.step(ask(2, 3))
    assert node.step(ask(3, 3)) == [Answer(VoteAnswer(Epoch(3)))]
    assert node.step(ask(2, 3)) == [Answer(VoteAnswer(Epoch(3), granted=True))]


def test_a_vote_survives_a_restart() -> None:
    node = QuorumNode(voter(1), logged(THREE), Random(7))
    node.step(Started(0, QuorumState(Epoch(3), voted=NodeId(2), voted_directory=key(2).directory), Offset(0), Epoch(0)))
    assert node.step(ask(3, 3)) == [Answer(VoteAnswer(Epoch(3)))]
    assert node.step(ask(2, 3)) == [Answer(VoteAnswer(Epoch(3), granted=True))]


def test_no_vote_for_a_shorter_log() -> None:
    node = fresh()
    node.step(Appended(1, Offset(10), Epoch(2)))
    assert node.step(ask(2, 3, last=1, end=99))[-1] == Answer(VoteAnswer(Epoch(3)))
    assert node.step(ask(3, 3, last=2, end=10))[-1] == Answer(VoteAnswer(Epoch(3), granted=True))


def test_no_vote_in_an_old_epoch_or_with_another_disk() -> None:
    node = fresh()
    node.step(ask(2, 3))
    assert node.step(ask(2, 2)) == [Answer(VoteAnswer(Epoch(3), error=FENCED_LEADER_EPOCH))]
    other_disk = VoteAsk(Epoch(4), key(2), ReplicaKey(NodeId(1), Uuid(b"x" * 16)), Epoch(0), Offset(0))
    assert node.step(Asked(1, other_disk)) == [Answer(VoteAnswer(Epoch(3), error=INVALID_VOTER_KEY))]


def test_a_follower_that_fetches_discourages_rivals() -> None:
    node = fresh()
    effects = node.step(Asked(1, BeginAsk(Epoch(1), NodeId(2), key(1))))
    assert effects == [
        PersistState(QuorumState(Epoch(1), NodeId(2))),
        BecameFollower(NodeId(2), Epoch(1)),
        Answer(EpochAnswer(Epoch(1), NodeId(2))),
    ]
    assert node.step(ask(3, 1, pre=True)) == [Answer(VoteAnswer(Epoch(1), NodeId(2), granted=True, pre_vote=True))]
    node.step(FetchedFromLeader(2, NodeId(2), Epoch(1), Offset(0)))
    assert node.step(ask(3, 1, pre=True)) == [Answer(VoteAnswer(Epoch(1), NodeId(2), pre_vote=True))]


def test_a_follower_takes_the_leaders_high_watermark_as_far_as_it_has_the_log() -> None:
    node = fresh()
    node.step(Appended(1, Offset(5), Epoch(1)))
    node.step(Asked(1, BeginAsk(Epoch(1), NodeId(2), key(1))))
    assert node.step(FetchedFromLeader(2, NodeId(2), Epoch(1), Offset(9))) == [HighWatermark(Offset(5))]
    assert node.deadline == 2_002


def test_a_follower_without_a_leader_for_too_long_canvasses() -> None:
    node = fresh()
    node.step(Asked(1, BeginAsk(Epoch(1), NodeId(2), key(1))))
    assert node.step(Tick(2_000)) == []
    assert {effect.to for effect in node.step(Tick(2_001)) if isinstance(effect, Send)} == {2, 3}
    assert node.step(Tick(9_000)) == [BecameFollower(NodeId(2), Epoch(1))]


def test_only_a_record_of_its_own_epoch_lets_a_leader_commit() -> None:
    node = fresh()
    node.step(Appended(1, Offset(10), Epoch(0)))
    node.step(Flushed(1, Offset(10)))
    node.step(Tick(5_000))
    node.step(Answered(5_001, NodeId(2), VoteAnswer(Epoch(0), granted=True, pre_vote=True)))
    node.step(Answered(5_002, NodeId(2), VoteAnswer(Epoch(1), granted=True)))
    assert node.step(ReplicaFetched(5_003, key(2), Offset(10))) == []
    node.step(Appended(5_004, Offset(11), Epoch(1)))
    assert node.step(ReplicaFetched(5_005, key(2), Offset(11))) == []
    assert node.step(Flushed(5_006, Offset(11))) == [HighWatermark(Offset(11))]


def test_the_high_watermark_is_what_a_majority_has_flushed() -> None:
    node = leading()
    node.step(Appended(5_003, Offset(8), Epoch(1)))
    assert node.step(ReplicaFetched(5_004, key(2), Offset(4))) == []
    assert node.step(ReplicaFetched(5_005, key(3), Offset(6))) == [HighWatermark(Offset(4))]
    assert node.step(Flushed(5_006, Offset(8))) == [HighWatermark(Offset(6))]
    assert node.step(ReplicaFetched(5_007, ReplicaKey(NodeId(9)), Offset(8))) == []


def test_a_leader_that_nobody_fetches_from_steps_down() -> None:
    node = leading()
    node.step(ReplicaFetched(6_000, key(2), Offset(1)))
    assert [type(each) for each in node.step(Tick(8_999))] == [Send, Send]
    effects = node.step(Tick(9_000))
    assert effects[0] == Resigned(Epoch(1))
    assert effects[1:] == [Send(NodeId(to), EndAsk(Epoch(1), NodeId(1), (key(2), key(3)))) for to in (2, 3)]
    assert node.role is Role.RESIGNED


def test_a_leader_that_hears_of_a_newer_epoch_resigns_on_disk_first() -> None:
    node = leading()
    state = QuorumState(Epoch(2), voted=NodeId(3), voted_directory=key(3).directory)
    effects = node.step(ask(3, 2, last=1, end=1))
    assert effects == [PersistState(state), Resigned(Epoch(1)), Answer(VoteAnswer(Epoch(2), granted=True))]


def test_a_leader_that_shuts_down_names_its_successors_and_the_first_stands_at_once() -> None:
    node = leading()
    node.step(ReplicaFetched(5_003, key(3), Offset(1)))
    effects = node.step(ShutDown(5_004))
    farewell = EndAsk(Epoch(1), NodeId(1), (key(3), key(2)))
    assert effects == [Resigned(Epoch(1)), Send(NodeId(3), farewell), Send(NodeId(2), farewell)]
    successor = fresh(3)
    successor.step(Asked(1, BeginAsk(Epoch(1), NodeId(1), key(3))))
    successor.step(Asked(5_005, farewell))
    assert successor.deadline == 5_005


def test_an_observer_never_stands() -> None:
    node = QuorumNode(voter(9), logged(THREE), Random(7))
    node.step(Started(0, None, Offset(0), Epoch(0)))
    assert (node.deadline, node.step(Tick(1e9))) == (None, [])


def test_fetches_are_served_in_the_leaders_epoch_only() -> None:
    node = leading()
    assert node.check_fetch(Epoch(1)).code == 0
    assert node.check_fetch(Epoch(0)) is FENCED_LEADER_EPOCH
    assert node.check_fetch(Epoch(2)) is UNKNOWN_LEADER_EPOCH


def test_a_leader_that_restarts_remembers_that_its_vote_was_its_own() -> None:
    node = QuorumNode(voter(1), logged(THREE), Random(7))
    node.step(Started(0, QuorumState(Epoch(4), NodeId(1)), Offset(9), Epoch(4)))
    node.step(Tick(5_000))
    assert node.role is Role.PROSPECTIVE
    assert node.step(ask(2, 4, last=9, end=99)) == [Answer(VoteAnswer(Epoch(4)))]


def test_a_last_answer_after_the_goodbye_does_not_renew_the_belief_in_a_leader() -> None:
    node = fresh(3)
    node.step(Asked(1, BeginAsk(Epoch(1), NodeId(1), key(3))))
    node.step(FetchedFromLeader(2, NodeId(1), Epoch(1), Offset(0)))
    node.step(Asked(3, EndAsk(Epoch(1), NodeId(1), (key(2), key(3)))))
    due = node.deadline
    node.step(FetchedFromLeader(4, NodeId(1), Epoch(1), Offset(0)))
    assert node.deadline == due
    assert node.step(ask(2, 1, to=3, pre=True))[-1] == Answer(
        VoteAnswer(Epoch(1), NodeId(1), granted=True, pre_vote=True)
    )


def test_prospects_are_not_given_up_for_what_others_remember_of_a_silent_leader() -> None:
    node = fresh()
    node.step(Asked(1, BeginAsk(Epoch(1), NodeId(2), key(1))))
    node.step(Tick(2_001))
    node.step(Answered(2_002, NodeId(3), EpochAnswer(Epoch(1), NodeId(2))))
    assert node.role is Role.PROSPECTIVE
    node.step(Asked(2_003, BeginAsk(Epoch(1), NodeId(2), key(1))))
    assert node.role is Role.FOLLOWER


def test_an_observer_that_hears_nothing_from_its_leader_no_longer_speaks_against_others() -> None:
    node = QuorumNode(voter(9), logged(THREE), Random(7))
    node.step(Started(0, QuorumState(Epoch(1), NodeId(1)), Offset(0), Epoch(0)))
    node.step(FetchedFromLeader(1, NodeId(1), Epoch(1), Offset(0)))
    wanted = ask(2, 1, to=9, pre=True)
    assert node.step(wanted)[-1] == Answer(VoteAnswer(Epoch(1), NodeId(1), pre_vote=True))
    assert node.deadline == 2_001
    assert node.step(Tick(2_001)) == []
    assert node.step(wanted)[-1] == Answer(VoteAnswer(Epoch(1), NodeId(1), granted=True, pre_vote=True))
    assert (node.role, node.deadline) == (Role.FOLLOWER, None)


def test_a_follower_whose_leader_is_gone_stands_soon_but_only_once() -> None:
    node = fresh()
    node.step(Asked(1, BeginAsk(Epoch(1), NodeId(2), key(1))))
    node.step(FetchedFromLeader(2, NodeId(2), Epoch(1), Offset(0)))
    assert node.step(LeaderGone(10, NodeId(2), Epoch(0))) == []
    assert node.deadline == 2_002
    node.step(LeaderGone(10, NodeId(2), Epoch(1)))
    assert node.deadline is not None
    assert 10 <= node.deadline < 260
    node.step(Tick(260))
    assert node.role is Role.PROSPECTIVE
    for by in (2, 3):
        node.step(Answered(270, NodeId(by), VoteAnswer(Epoch(1), NodeId(2), pre_vote=True)))
    assert (node.role, node.deadline) == (Role.FOLLOWER, 2_270)
    node.step(LeaderGone(280, NodeId(2), Epoch(1)))
    assert node.deadline == 2_270
