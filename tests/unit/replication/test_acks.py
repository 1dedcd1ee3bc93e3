"""When acks are due: every role, log and in-sync set, for each `acks`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.errors import (
    KAFKA_STORAGE_ERROR,
    NONE,
    NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    NOT_LEADER_OR_FOLLOWER,
    REQUEST_TIMED_OUT,
)
from penstock.model.ids import Epoch, NodeId, Offset
from penstock.replication.acks import decide_ack, holds
from penstock.replication.isr import Proposal
from penstock.replication.partition import Partition

A, B, C = NodeId(1), NodeId(2), NodeId(3)
END = Offset(10)


class Replica:
    """A leader whose log ends where the batch does, and of which everything is committed."""

    def __init__(self, *, isr: frozenset[NodeId] = frozenset({A, B, C}), min_isr: int = 1) -> None:
        self.state = Partition(A, min_isr=min_isr, leader=A, replicas=(A, B, C), isr=isr, high_watermark=END)
        self.log: object | None = object()
        self.counted = END

    def counted_end(self) -> Offset:
        return self.counted


@pytest.mark.parametrize("acks", [-1, 1])
def test_what_is_kept_is_told_as_kept(acks: int) -> None:
    replica = Replica()
    assert holds(replica, END, acks)
    assert decide_ack(replica, END, acks) is NONE


def test_all_in_sync_means_the_high_watermark_and_one_means_what_the_own_log_counts() -> None:
    uncommitted, unsynced = Replica(), Replica()
    uncommitted.state.high_watermark = unsynced.counted = Offset(9)
    assert [holds(uncommitted, END, acks) for acks in (-1, 0, 1)] == [False, True, True]
    assert [holds(unsynced, END, acks) for acks in (-1, 0, 1)] == [True, True, False]
    assert decide_ack(uncommitted, END, -1) is decide_ack(unsynced, END, 1) is REQUEST_TIMED_OUT


def test_nobody_waits_for_a_log_that_is_gone() -> None:
    replica = Replica()
    replica.log, replica.counted = None, Offset(0)
    assert holds(replica, END, 1)
    assert decide_ack(replica, END, 1) is decide_ack(replica, END, -1) is KAFKA_STORAGE_ERROR


def test_a_node_that_leads_no_more_says_so_first() -> None:
    replica = Replica()
    replica.state.leader, replica.log = B, None
    assert decide_ack(replica, END, -1) is NOT_LEADER_OR_FOLLOWER


def test_too_few_in_sync_after_the_append_is_told_with_acks_all_alone() -> None:
    replica = Replica(isr=frozenset({A}), min_isr=2)
    assert decide_ack(replica, END, -1) is NOT_ENOUGH_REPLICAS_AFTER_APPEND
    assert decide_ack(replica, END, 1) is NONE


def test_a_follower_that_was_asked_in_counts_as_in_sync() -> None:
    replica = Replica(isr=frozenset({A}), min_isr=2)
    replica.state.proposal = Proposal((), frozenset({B}), Epoch(0), 0)
    assert decide_ack(replica, END, -1) is NONE


NODES = st.frozensets(st.sampled_from([A, B, C]))


@given(
    acks=st.sampled_from([-1, 1]),
    leader=st.sampled_from([A, B]),
    online=st.booleans(),
    high_watermark=st.integers(8, 11),
    counted=st.integers(8, 11),
    isr=NODES,
    doubted=NODES,
    min_isr=st.integers(1, 5),
)
def test_success_is_told_exactly_when_the_promise_holds_here_and_enough_replicas_count(
    acks: int, leader: NodeId, online: bool, high_watermark: int, counted: int,
    isr: frozenset[NodeId], doubted: frozenset[NodeId], min_isr: int,
) -> None:  # fmt: skip
    replica = Replica(isr=isr, min_isr=min_isr)
    state = replica.state
    state.leader, state.high_watermark, state.doubted = leader, Offset(high_watermark), doubted
    replica.log, replica.counted = replica.log if online else None, Offset(counted)
    enough = len(state.maximal_isr) >= state.effective_min_isr
    kept = (high_watermark >= END and enough) if acks == -1 else counted >= END
    assert (decide_ack(replica, END, acks) is NONE) == (leader == A and online and kept)
