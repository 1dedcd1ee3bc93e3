"""How far a fetch may read: the order of refusals, limits, and where histories part."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.errors import (
    FENCED_LEADER_EPOCH,
    NOT_LEADER_OR_FOLLOWER,
    OFFSET_OUT_OF_RANGE,
    UNKNOWN_LEADER_EPOCH,
    UNSUPPORTED_COMPRESSION_TYPE,
    ErrorCode,
    Refused,
)
from penstock.model.ids import Epoch, Millis, NodeId, Offset
from penstock.replication.isr import Follower
from penstock.replication.partition import Partition
from penstock.replication.reading import Diverging, decide_consumer_read, decide_follower_read
from penstock.replication.selection import nearest_replica

A, B, C = NodeId(1), NodeId(2), NodeId(3)


class Wanted(NamedTuple):
    offset: int = 0
    leader_epoch: int = -1
    last_fetched_epoch: int = -1


class Log:
    """Epoch 2 from 0 to 6, epoch 5 from 6 on; written to 10, committed to 8, decided to 7, and gone below 1."""

    log_start, written, committed, last_stable = Offset(1), Offset(10), Offset(8), Offset(7)

    def __init__(self) -> None:
        self.epochs = self

    def end_of(self, epoch: int) -> tuple[Epoch, Offset]:
        if epoch < 2:
            return Epoch(-1), Offset(-1)
        return (Epoch(2), Offset(6)) if epoch < 5 else (Epoch(5), Offset(10))


def replica(leader: NodeId = A) -> Partition:
    state = Partition(A, epoch=Epoch(5), leader=leader, replicas=(A, B, C), isr=frozenset({A, B}))
    state.followers = {B: Follower(), C: Follower()} if leader == A else {}
    return state


def consume(
    wanted: Wanted, *, leader: NodeId = A, version: int = 12, read_committed: bool = False, codec: str = "producer"
) -> Offset | Diverging | ErrorCode:
    try:
        return decide_consumer_read(
            replica(leader), Log(), wanted, version=version, read_committed=read_committed, codec=codec
        )
    except Refused as refusal:
        return refusal.error


def follow(
    wanted: Wanted, *, node: NodeId = B, epoch: int = 1, outdated: bool = False
) -> Follower | Diverging | ErrorCode:
    try:
        return decide_follower_read(replica(), Log(), wanted, node, epoch, outdated=outdated)
    except Refused as refusal:
        return refusal.error


def test_a_consumer_reads_what_is_committed_or_with_read_committed_what_is_decided() -> None:
    assert (consume(Wanted(3)), consume(Wanted(3), read_committed=True)) == (8, 7)


def test_an_offset_may_lie_anywhere_from_the_first_to_the_one_after_the_last() -> None:
    found = [consume(Wanted(offset)) for offset in (0, 1, 10, 11)]
    assert found == [OFFSET_OUT_OF_RANGE, 8, 8, OFFSET_OUT_OF_RANGE]


def test_only_a_leader_serves_consumers_that_do_not_know_of_others() -> None:
    assert [consume(Wanted(3), leader=B, version=version) for version in (10, 11)] == [NOT_LEADER_OR_FOLLOWER, 8]


def test_a_topic_in_zstd_is_not_for_old_consumers() -> None:
    found = [consume(Wanted(3), version=version, codec="zstd") for version in (9, 10)]
    assert found == [UNSUPPORTED_COMPRESSION_TYPE, 8]


def test_the_epoch_is_refused_before_the_role_the_codec_and_the_range() -> None:
    out_of_range = 99
    assert consume(Wanted(out_of_range, leader_epoch=4), leader=B, version=9, codec="zstd") is FENCED_LEADER_EPOCH
    assert consume(Wanted(out_of_range, leader_epoch=6), leader=B, version=9, codec="zstd") is UNKNOWN_LEADER_EPOCH
    assert consume(Wanted(out_of_range), leader=B, version=9, codec="zstd") is NOT_LEADER_OR_FOLLOWER
    assert consume(Wanted(out_of_range), version=9, codec="zstd") is UNSUPPORTED_COMPRESSION_TYPE


@pytest.mark.parametrize(
    ("offset", "last_epoch", "found"),
    [
        (6, 2, None),  # it ends where the epoch ended here
        (7, 2, Diverging(2, 6)),  # it has more of the epoch than there was here
        (7, 4, Diverging(2, 6)),  # it has an epoch that never was here
        (99, 4, Diverging(2, 6)),  # which is told before the range: it has to cut anyway
        (10, 5, None),
        (3, 1, OFFSET_OUT_OF_RANGE),  # what it knows is older than everything here
    ],
)
def test_a_fetcher_whose_history_is_another_is_told_where_it_parts(
    offset: int, last_epoch: int, found: Diverging | ErrorCode | None
) -> None:
    wanted = Wanted(offset, last_fetched_epoch=last_epoch)
    assert consume(wanted) == (found or 8)
    followed = follow(wanted)
    assert isinstance(followed, Follower) if found is None else followed == found


def test_a_follower_is_known_by_its_replica_and_its_process() -> None:
    assert isinstance(follow(Wanted(3)), Follower)
    assert follow(Wanted(3, leader_epoch=5), node=NodeId(9)) is UNKNOWN_LEADER_EPOCH
    assert follow(Wanted(3), node=NodeId(9)) is NOT_LEADER_OR_FOLLOWER
    assert follow(Wanted(99), outdated=True, node=NodeId(9)) is NOT_LEADER_OR_FOLLOWER
    assert follow(Wanted(0)) is OFFSET_OUT_OF_RANGE


@given(
    offset=st.integers(-1, 12), epoch=st.integers(-1, 7), last=st.integers(-1, 7), read_committed=st.booleans(),
    version=st.integers(4, 18), leader=st.sampled_from([A, B]),
)  # fmt: skip
def test_nobody_is_shown_what_is_not_committed_and_nobody_reads_outside_of_the_log(
    offset: int, epoch: int, last: int, read_committed: bool, version: int, leader: NodeId
) -> None:
    found = consume(Wanted(offset, epoch, last), leader=leader, version=version, read_committed=read_committed)
    if isinstance(found, Diverging):
        assert found.epoch <= last
        assert (found.epoch, found.end) == Log().end_of(found.epoch)
    elif not isinstance(found, ErrorCode):
        assert found <= Log.committed
        assert Log.log_start <= offset <= Log.written
        assert epoch in (-1, 5)


class Brokers:
    def rack_of(self, node: NodeId) -> str:
        return f"rack-{node}"

    def is_alive(self, node: NodeId) -> bool:
        return True


def test_a_consumer_is_sent_to_a_replica_in_its_rack_only_while_that_is_in_sync_and_has_the_offset() -> None:
    state = replica()
    for follower in state.followers.values():
        follower.end, follower.log_start = Offset(5), Offset(1)

    def nearest(rack: str, offset: int) -> NodeId:
        return nearest_replica(state, Log(), rack, offset, Brokers(), Millis(0))

    assert [nearest("rack-2", 3), nearest("rack-2", 6), nearest("rack-3", 3), nearest("rack-1", 3)] == [B, A, A, A]
