"""Roles, the in-sync set and the high watermark of one partition."""

from __future__ import annotations

import pytest

from penstock.metadata.entities import PartitionImage
from penstock.model.errors import (
    FENCED_LEADER_EPOCH,
    NOT_ENOUGH_REPLICAS,
    NOT_LEADER_OR_FOLLOWER,
    UNKNOWN_LEADER_EPOCH,
    Refused,
)
from penstock.model.ids import Epoch, Millis, NodeId, Offset
from penstock.replication.partition import Eligible, Partition

A, B, C = NodeId(1), NodeId(2), NodeId(3)
T0 = Millis(1_000_000)


def image(
    *, leader: int = 1, isr: tuple[int, ...] = (1,), replicas: tuple[int, ...] = (1,), epoch: int = 0, version: int = 0
) -> PartitionImage:
    return PartitionImage(replicas, (bytes(16),) * len(replicas), isr, (), (), leader, Epoch(epoch), version, 0, (), ())


def leading(
    *,
    isr: tuple[int, ...] = (1,),
    replicas: tuple[int, ...] = (1,),
    min_isr: int = 1,
    end: int = 0,
    eligible: Eligible = lambda _node, _epoch: True,
) -> Partition:
    partition = Partition(A, min_isr=min_isr, eligible=eligible)
    assert partition.become(image(isr=isr, replicas=replicas), end=Offset(end), now=T0)
    return partition


def fetch(
    partition: Partition, follower: NodeId, offset: int, now: Millis = T0, *, broker_epoch: int = 1, log_start: int = 0
) -> bool:
    return partition.follower_at(
        partition.check_follower(follower, broker_epoch),
        Offset(offset),
        log_start=Offset(log_start),
        broker_epoch=broker_epoch,
        leader_end=partition.end,
        now=now,
    )


def test_a_lone_leader_commits_what_it_appends() -> None:
    partition = leading()
    assert partition.appended(Offset(5), T0)
    assert partition.high_watermark == 5


def test_the_high_watermark_waits_for_every_in_sync_follower() -> None:
    partition = leading(isr=(1, 2, 3), replicas=(1, 2, 3))
    assert not partition.appended(Offset(5), T0)
    assert not fetch(partition, B, 5)
    assert fetch(partition, C, 3)
    assert partition.high_watermark == 3


def test_a_follower_that_keeps_up_holds_the_high_watermark_before_it_is_in_sync() -> None:
    partition = leading(isr=(1,), replicas=(1, 2), end=4)
    fetch(partition, B, 4)
    partition.appended(Offset(9), T0)
    assert partition.high_watermark == 4


def test_the_high_watermark_stands_still_below_the_minimum_in_sync_set() -> None:
    partition = leading(isr=(1,), replicas=(1, 2, 3), min_isr=2)
    assert not partition.appended(Offset(5), T0)
    assert partition.high_watermark == 0
    with pytest.raises(Refused) as refusal:
        partition.check_append(-1)
    assert refusal.value.error is NOT_ENOUGH_REPLICAS
    assert partition.check_append(1) == 0


def test_a_topic_with_one_replica_never_waits_for_two() -> None:
    assert leading(min_isr=2).check_append(-1) == 0


def test_the_high_watermark_never_falls() -> None:
    partition = leading()
    partition.appended(Offset(7), T0)
    partition.become(image(isr=(1, 2), replicas=(1, 2), version=1), end=Offset(7), now=T0)
    assert partition.high_watermark == 7


def test_a_late_decision_changes_nothing() -> None:
    partition = leading()
    partition.become(image(epoch=3, version=5), end=Offset(0), now=T0)
    assert not partition.become(image(leader=2, epoch=2, version=4), end=Offset(0), now=T0)
    assert (partition.epoch, partition.leading) == (3, True)


def test_a_new_leader_epoch_starts_at_the_log_end() -> None:
    partition = leading(end=3)
    assert partition.become(image(epoch=1, version=1), end=Offset(9), now=T0)
    assert partition.epoch_start == 9


def test_an_in_sync_change_does_not_start_an_epoch() -> None:
    partition = leading(isr=(1, 2), replicas=(1, 2))
    assert not partition.become(image(isr=(1,), replicas=(1, 2), version=1), end=Offset(0), now=T0)


def test_only_the_leader_takes_appends() -> None:
    partition = Partition(A)
    partition.become(image(leader=2, isr=(2,), replicas=(1, 2)), end=Offset(0), now=T0)
    with pytest.raises(Refused) as refusal:
        partition.check_append(1)
    assert refusal.value.error is NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(("claimed", "error"), [(1, FENCED_LEADER_EPOCH), (3, UNKNOWN_LEADER_EPOCH)])
def test_peers_of_another_epoch_are_refused(claimed: int, error: object) -> None:
    partition = Partition(A)
    partition.become(image(epoch=2), end=Offset(0), now=T0)
    partition.check_epoch(2)
    partition.check_epoch(-1)
    with pytest.raises(Refused) as refusal:
        partition.check_epoch(claimed)
    assert refusal.value.error is error


def test_a_stranger_that_fetches_as_a_follower_is_refused() -> None:
    with pytest.raises(Refused) as refusal:
        fetch(leading(), B, 0)
    assert refusal.value.error is UNKNOWN_LEADER_EPOCH


def test_a_follower_is_caught_up_when_it_has_what_the_leader_had_at_its_last_fetch() -> None:
    partition = leading(isr=(1, 2), replicas=(1, 2))
    fetch(partition, B, 0, Millis(T0 + 10))
    partition.appended(Offset(5), Millis(T0 + 15))
    fetch(partition, B, 5, Millis(T0 + 20))
    partition.appended(Offset(50), Millis(T0 + 25))
    fetch(partition, B, 6, Millis(T0 + 30))
    assert partition.followers[B].caught_up_at == T0 + 20


def test_a_leader_knows_its_end_once_the_high_watermark_has_come_to_where_it_began() -> None:
    partition = Partition(A)
    partition.become(image(), end=Offset(3), log_end=Offset(5), now=T0)
    assert not partition.knows_its_end
    partition.appended(Offset(5), T0)
    assert partition.knows_its_end


def test_a_follower_that_may_not_be_in_sync_does_not_hold_the_high_watermark() -> None:
    partition = leading(isr=(1,), replicas=(1, 2), end=4, eligible=lambda _node, _epoch: False)
    fetch(partition, B, 4)
    partition.appended(Offset(9), T0)
    assert partition.high_watermark == 9


def test_a_new_epoch_forgets_what_followers_had_proved() -> None:
    partition = leading(isr=(1, 2), replicas=(1, 2), end=5)
    fetch(partition, B, 5)
    partition.become(image(isr=(1, 2), replicas=(1, 2), epoch=1, version=1), end=Offset(5), now=T0)
    partition.appended(Offset(6), T0)
    assert (partition.followers[B].end, partition.high_watermark) == (-1, 5)


def test_a_reassignment_adds_and_removes_followers_within_an_epoch() -> None:
    partition = leading(isr=(1, 2), replicas=(1, 2), end=5)
    fetch(partition, B, 5)
    partition.become(image(isr=(1, 2), replicas=(1, 2, 3), version=1), end=Offset(5), now=T0)
    assert (partition.followers[B].end, partition.followers[C].end) == (5, -1)
    partition.become(image(isr=(1,), replicas=(1, 3), version=2), end=Offset(5), now=T0)
    assert list(partition.followers) == [C]


def test_whoever_stops_leading_knows_no_followers() -> None:
    partition = leading(isr=(1, 2), replicas=(1, 2))
    partition.become(image(leader=2, isr=(1, 2), replicas=(1, 2), epoch=1, version=1), end=Offset(0), now=T0)
    assert (partition.followers, partition.leading) == ({}, False)


def test_the_epoch_is_checked_before_the_role() -> None:
    partition = Partition(A)
    partition.become(image(leader=2, isr=(2,), replicas=(1, 2), epoch=5), end=Offset(0), now=T0)
    for claimed, error in ((4, FENCED_LEADER_EPOCH), (6, UNKNOWN_LEADER_EPOCH), (5, NOT_LEADER_OR_FOLLOWER)):
        with pytest.raises(Refused) as refusal:
            partition.check_read(claimed)
        assert refusal.value.error is error


def test_a_process_that_was_replaced_proves_nothing() -> None:
    partition = leading(isr=(1, 2), replicas=(1, 2), end=0)
    fetch(partition, B, 0, broker_epoch=8)
    partition.appended(Offset(5), T0)
    with pytest.raises(Refused) as refusal:
        fetch(partition, B, 5, broker_epoch=7)
    assert refusal.value.error is NOT_LEADER_OR_FOLLOWER
    assert partition.high_watermark == 0


def test_a_follower_takes_its_leaders_high_watermark_as_far_as_its_log_goes() -> None:
    partition = Partition(A)
    partition.become(image(leader=2, isr=(1, 2), replicas=(1, 2)), end=Offset(0), now=T0)
    assert partition.followed(Offset(9), Offset(5))
    assert partition.high_watermark == 5
    assert not partition.followed(Offset(3), Offset(6)), "a new leader may know less than the one before"
    assert partition.high_watermark == 5
    assert not partition.followed(Offset(3), Offset(4))
    assert partition.high_watermark == 4, "an unclean election has cut the log"


def test_a_topic_with_a_lower_minimum_commits_what_had_to_wait() -> None:
    partition = leading(isr=(1,), replicas=(1, 2), min_isr=2)
    partition.appended(Offset(5), T0)
    partition.min_isr = 1
    assert partition.time_passed(T0)
    assert partition.high_watermark == 5


def test_records_are_gone_when_every_live_replica_has_deleted_them() -> None:
    partition = leading(isr=(1, 2, 3), replicas=(1, 2, 3), end=9)
    fetch(partition, B, 9, log_start=4)
    assert partition.low_watermark(Offset(6)) == -1, "C has not said anything yet"
    assert partition.low_watermark(Offset(6), lambda node: node != C) == 4
    fetch(partition, C, 9, log_start=6)
    fetch(partition, B, 9, log_start=6)
    assert partition.low_watermark(Offset(6)) == 6


def test_a_log_that_was_cut_takes_the_high_watermark_with_it() -> None:
    partition = leading(end=9)
    assert partition.high_watermark == 9
    partition.become(image(leader=2, isr=(2,), replicas=(1, 2), epoch=1, version=1), end=Offset(9), now=T0)
    partition.become(image(epoch=2, version=2), end=Offset(4), log_end=Offset(4), now=T0)
    assert partition.high_watermark == 4


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (image(isr=(2,), replicas=(1, 2), version=1), "a leader is in sync with itself"),
        (image(isr=(1, 3), replicas=(1, 2), version=1), "who is in sync is a replica"),
        (image(isr=(1, 2), replicas=(1, 2, 2), version=1), "a leader follows up on the other replicas"),
        (image(isr=(1, 2), replicas=(1, 2), epoch=-1, version=1), "leader epochs never fall"),
    ],
)
def test_a_role_that_cannot_be_is_our_own_mistake(told: PartitionImage, words: str) -> None:
    partition = leading(isr=(1, 2), replicas=(1, 2))
    with pytest.raises(AssertionError, match=words):
        partition.become(told, end=Offset(0), now=T0)
