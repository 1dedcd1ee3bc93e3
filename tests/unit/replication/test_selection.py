"""Which replica a consumer reads from."""

from __future__ import annotations

import pytest

from penstock.model.ids import NodeId, Offset
from penstock.replication.selection import Candidate, choose_replica, chooses_by_rack


def replica(node: int, rack: str | None, *, end: int = 100, start: int = 0, caught_up_at: int = 0) -> Candidate:
    return Candidate(NodeId(node), rack, Offset(start), Offset(end), caught_up_at)


LEADER = replica(1, "a")


def test_the_leader_serves_whoever_has_nobody_nearer() -> None:
    assert choose_replica("c", 50, LEADER, [replica(2, "b"), replica(3, None)]) == 1


def test_a_replica_in_the_rack_is_nearer_than_the_leader() -> None:
    assert choose_replica("b", 50, LEADER, [replica(2, "b"), replica(3, "c")]) == 2


def test_the_leader_is_as_near_as_anybody_in_its_rack() -> None:
    assert choose_replica("a", 50, LEADER, [replica(2, "a", end=200)]) == 1


@pytest.mark.parametrize("offset", [9, 101])
def test_a_replica_that_does_not_hold_the_offset_cannot_serve_it(offset: int) -> None:
    assert choose_replica("b", offset, LEADER, [replica(2, "b", start=10, end=100)]) == 1


def test_the_furthest_of_several_serves_and_the_last_to_catch_up_breaks_a_tie() -> None:
    near = [replica(2, "b", end=90), replica(3, "b", caught_up_at=5), replica(4, "b", caught_up_at=9)]
    assert choose_replica("b", 50, LEADER, near) == 4


def test_kafkas_class_name_and_the_short_one_choose_by_rack() -> None:
    assert chooses_by_rack("org.apache.kafka.common.replica.RackAwareReplicaSelector")
    assert chooses_by_rack("rack-aware")
    assert not chooses_by_rack(None)
    assert not chooses_by_rack("org.apache.kafka.common.replica.LeaderSelector")
