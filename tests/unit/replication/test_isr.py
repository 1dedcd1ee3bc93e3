"""Changes of the in-sync set: when a leader asks for one, what it believes meanwhile, and what the answers do."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.metadata.entities import PartitionImage
from penstock.model.errors import (
    FENCED_LEADER_EPOCH,
    INELIGIBLE_REPLICA,
    INVALID_REQUEST,
    INVALID_UPDATE_VERSION,
    NEW_LEADER_ELECTED,
    NOT_CONTROLLER,
    OPERATION_NOT_ATTEMPTED,
    REQUEST_TIMED_OUT,
    STALE_BROKER_EPOCH,
    UNKNOWN_TOPIC_ID,
    ErrorCode,
)
from penstock.model.ids import Epoch, Millis, NodeId, Offset
from penstock.replication.fetch_session import FetchSession
from penstock.replication.isr import DOUBT_MS, Proposal, Session
from penstock.replication.partition import Partition

A, B, C = NodeId(1), NodeId(2), NodeId(3)
T0 = Millis(1_000_000)
LAG_MS = 30_000


def image(*, isr: tuple[int, ...], epoch: int = 0, version: int = 0, leader: int = 1) -> PartitionImage:
    return PartitionImage((1, 2, 3), (), isr, leader=leader, leader_epoch=Epoch(epoch), partition_epoch=version)


class Leader:
    """A leads, B and C follow; `alive` are the broker epochs that the cluster knows."""

    def __init__(self, *, isr: tuple[int, ...], end: int = 10, min_isr: int = 1) -> None:
        self.alive = {B: 12, C: 13}
        self.state = Partition(A, min_isr, LAG_MS, eligible=lambda node, epoch: self.alive.get(node) == epoch)
        self.state.become(image(isr=isr), end=Offset(end), now=T0)

    def fetch(self, node: NodeId, offset: int, *, at: int = T0, session: Session | None = None) -> None:
        self.state.follower_at(
            self.state.check_follower(node, 10 + node),
            Offset(offset),
            log_start=Offset(0),
            broker_epoch=10 + node,
            leader_end=self.state.end,
            now=Millis(at),
            session=session,
        )

    def append(self, end: int, *, at: int = T0) -> None:
        self.state.appended(Offset(end), Millis(at))

    def wants(self, at: int = T0) -> list[int] | None:
        proposal = self.state.wanted_isr(Millis(at))
        return None if proposal is None else [member.node for member in proposal.members]

    def proposal(self, at: int = T0) -> Proposal:
        proposal = self.state.wanted_isr(Millis(at))
        assert proposal is not None
        return proposal

    def settled(self, proposal: Proposal, isr: set[int], *, version: int = 1, epoch: int = 0) -> bool:
        return self.state.isr_settled(
            proposal,
            frozenset(NodeId(node) for node in isr),
            leader_epoch=epoch,
            partition_epoch=version,
            now=T0,
        )


# -- going


def test_what_a_partition_asked_for_before_it_was_deleted_settles_nothing() -> None:
    leader = Leader(isr=(1, 3))
    leader.fetch(B, 10)
    proposal = leader.proposal()
    leader.state.let_go()
    assert not leader.settled(proposal, {1, 2, 3})
    assert not leader.state.leading
    assert leader.state.isr == {A, C}
    assert leader.wants() is None


# -- coming in


def test_a_follower_that_has_everything_is_proposed_with_the_broker_epoch_it_fetched_with() -> None:
    leader = Leader(isr=(1, 3))
    leader.fetch(B, 10)
    proposal = leader.proposal()
    assert proposal.members == ((A, -1), (B, 12), (C, -1)), "C has not fetched yet: it is taken as it is"
    assert (proposal.joining, proposal.leader_epoch, proposal.partition_epoch) == (frozenset({B}), 0, 0)


def test_a_follower_must_have_all_that_is_committed_and_all_that_earlier_leaders_left() -> None:
    leader = Leader(isr=(1,), end=10)
    leader.fetch(B, 9)
    assert leader.wants() is None, "the epoch began at 10"
    leader.append(20)
    assert leader.state.high_watermark == 20
    leader.fetch(B, 19)
    assert leader.wants() is None
    leader.fetch(B, 20)
    assert leader.wants() == [1, 2]


@pytest.mark.parametrize("known", [None, 11, 13])
def test_only_the_incarnation_that_the_cluster_knows_comes_in(known: int | None) -> None:
    leader = Leader(isr=(1,))
    leader.alive = {} if known is None else {B: known}
    leader.fetch(B, 10)
    assert not leader.state.may_join(B, T0)
    assert leader.wants() is None


def test_a_joining_follower_counts_at_once() -> None:
    leader = Leader(isr=(1,), end=10)
    leader.fetch(B, 10)
    leader.proposal()
    leader.append(15, at=T0 + 2 * LAG_MS)
    assert (leader.state.maximal_isr, leader.state.isr) == ({A, B}, {A})
    assert leader.state.high_watermark == 10, "however late B is, the controller may have let it in"


def test_a_joining_follower_does_not_make_up_the_minimum_before_it_is_in() -> None:
    leader = Leader(isr=(1,), end=10, min_isr=2)
    leader.fetch(B, 10)
    proposal = leader.proposal()
    assert leader.state.high_watermark == 0
    assert leader.settled(proposal, {1, 2})
    assert leader.state.high_watermark == 10


# -- going


def test_a_follower_goes_when_it_has_not_kept_up_for_too_long() -> None:
    leader = Leader(isr=(1, 2, 3), end=10)
    for node in (B, C):
        leader.fetch(node, 10)
    leader.append(11, at=T0 + 1)
    leader.fetch(C, 11, at=T0 + LAG_MS)
    assert leader.wants(T0 + LAG_MS) is None
    assert leader.wants(T0 + LAG_MS + 1) == [1, 3]
    assert leader.state.maximal_isr == {A, B, C}, "it counts until the controller has said so"


def test_who_is_late_does_not_come_back_before_it_has_caught_up() -> None:
    """With too few in sync nothing is committed, so whoever has all that is may still be far behind."""
    leader = Leader(isr=(1, 2, 3), end=10, min_isr=2)
    for node in (B, C):
        leader.fetch(node, 10)
    leader.append(20, at=T0 + 1)
    late_ms = T0 + LAG_MS + 2
    assert leader.settled(leader.proposal(late_ms), {1}) is False
    for node in (B, C):
        leader.fetch(node, 15, at=late_ms)
    assert leader.state.high_watermark == 10
    assert leader.wants(late_ms) is None, "they would be late again at once"
    leader.fetch(B, 20, at=late_ms + 1)
    assert leader.wants(late_ms + 1) == [1, 2]


def test_a_follower_with_the_whole_log_never_goes() -> None:
    leader = Leader(isr=(1, 2, 3), end=10)
    for node in (B, C):
        leader.fetch(node, 10)
    assert leader.wants(T0 + 100 * LAG_MS) is None


def test_fetches_of_a_session_count_for_partitions_that_they_do_not_name() -> None:
    leader = Leader(isr=(1, 2), end=10)
    session: FetchSession[Any, Any] = FetchSession(7, by_id=True, privileged=True, now=T0)
    leader.fetch(B, 10, session=session)
    session.used_at = Millis(T0 + 5 * LAG_MS)
    leader.append(11, at=T0 + 5 * LAG_MS + 100)
    assert leader.wants(T0 + 5 * LAG_MS + 200) is None
    assert leader.wants(T0 + 6 * LAG_MS + 1) == [1]


def test_who_is_late_goes_before_others_come() -> None:
    leader = Leader(isr=(1, 2), end=10)
    leader.append(11, at=T0 + LAG_MS + 1)
    leader.fetch(C, 11, at=T0 + LAG_MS + 1)
    assert leader.wants(T0 + LAG_MS + 1) == [1]


# -- answers


def test_one_change_is_under_way_at_a_time() -> None:
    leader = Leader(isr=(1,))
    leader.fetch(B, 10)
    leader.proposal()
    leader.fetch(C, 10)
    assert leader.wants() is None
    assert not leader.state.may_join(C, T0)


def test_a_settled_change_is_in_force_and_moves_the_high_watermark() -> None:
    leader = Leader(isr=(1, 2), end=10)
    leader.append(20, at=T0 + LAG_MS + 1)
    proposal = leader.proposal(T0 + LAG_MS + 1)
    assert leader.state.high_watermark == 0
    assert leader.settled(proposal, {1})
    assert (leader.state.high_watermark, leader.state.partition_epoch, leader.state.proposal) == (20, 1, None)


@pytest.mark.parametrize("error", [INELIGIBLE_REPLICA, OPERATION_NOT_ATTEMPTED])
def test_a_change_that_was_not_made_is_taken_back(error: ErrorCode) -> None:
    leader = Leader(isr=(1,))
    leader.fetch(B, 10)
    proposal = leader.proposal()
    assert not leader.state.isr_refused(proposal, error, T0)
    assert leader.state.proposal is None
    assert leader.wants() == [1, 2]


def test_a_refused_follower_counts_until_no_request_about_it_can_be_under_way() -> None:
    leader = Leader(isr=(1,), end=10)
    leader.fetch(B, 10)
    leader.state.isr_refused(leader.proposal(), INELIGIBLE_REPLICA, T0)
    leader.alive = {}
    leader.append(20)
    assert leader.state.high_watermark == 10
    assert leader.state.time_passed(Millis(T0 + DOUBT_MS + 1))
    assert leader.state.high_watermark == 20


@pytest.mark.parametrize(
    "error", [FENCED_LEADER_EPOCH, INVALID_UPDATE_VERSION, UNKNOWN_TOPIC_ID, INVALID_REQUEST, NEW_LEADER_ELECTED]
)
def test_what_the_controller_knows_better_is_waited_for(error: ErrorCode) -> None:
    leader = Leader(isr=(1,))
    leader.fetch(B, 10)
    proposal = leader.proposal()
    assert not leader.state.isr_refused(proposal, error, T0)
    assert leader.state.proposal is proposal
    leader.state.become(image(isr=(1, 2), version=1), end=Offset(10), now=T0)
    assert (leader.state.proposal, leader.state.isr) == (None, {A, B})


@pytest.mark.parametrize("error", [NOT_CONTROLLER, REQUEST_TIMED_OUT, STALE_BROKER_EPOCH])
def test_everything_else_is_sent_again(error: ErrorCode) -> None:
    leader = Leader(isr=(1,))
    leader.fetch(B, 10)
    proposal = leader.proposal()
    assert leader.state.isr_refused(proposal, error, T0)
    assert leader.state.proposal is proposal


def test_an_answer_to_what_the_metadata_log_has_overtaken_changes_nothing() -> None:
    leader = Leader(isr=(1,))
    leader.fetch(B, 10)
    proposal = leader.proposal()
    leader.state.become(image(isr=(1, 3), version=2), end=Offset(10), now=T0)
    assert not leader.settled(proposal, {1, 2}, version=1)
    assert (leader.state.isr, leader.state.partition_epoch) == ({A, C}, 2)


def test_the_metadata_of_an_answer_that_was_here_first_leaves_the_next_change_alone() -> None:
    """Otherwise the high watermark could pass a follower that the controller is just letting in."""
    leader = Leader(isr=(1,))
    leader.fetch(B, 10)
    leader.settled(leader.proposal(), {1, 2}, version=1)
    leader.fetch(C, 10)
    following = leader.proposal()
    leader.state.become(image(isr=(1, 2), version=1), end=Offset(10), now=T0)
    assert leader.state.proposal is following
    assert leader.state.maximal_isr == {A, B, C}


def test_an_answer_of_another_leader_epoch_is_left_to_the_metadata() -> None:
    leader = Leader(isr=(1,))
    leader.fetch(B, 10)
    proposal = leader.proposal()
    assert not leader.settled(proposal, {1, 2}, version=1, epoch=1)
    assert leader.state.proposal is proposal


def test_whoever_does_not_lead_asks_for_nothing() -> None:
    leader = Leader(isr=(1, 2))
    leader.state.become(image(isr=(2,), leader=2, epoch=1, version=1), end=Offset(10), now=T0)
    assert leader.wants(T0 + 10 * LAG_MS) is None
