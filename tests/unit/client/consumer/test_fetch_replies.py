"""What a broker's answer means for one partition."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.client.clock import SYSTEM_CLOCK
from penstock.client.consumer.fetch_replies import ReplyReader, Verdict
from penstock.client.consumer.partition import AssignedPartition, Phase
from penstock.client.settings import ConsumerSettings
from penstock.model.errors import (
    NOT_LEADER_OR_FOLLOWER,
    OFFSET_OUT_OF_RANGE,
    TOPIC_AUTHORIZATION_FAILED,
    ErrorCode,
)
from penstock.protocol.messages.fetch import FetchResponse
from tests.unit.client.consumer.made import batch, partition_at

LEADER, FOLLOWER = 1, 2


class View:
    """Remembers what it was told."""

    def __init__(self, news: bool) -> None:
        self.news = news
        self.told: list[tuple[Any, ...]] = []

    def learned(self, *told: Any) -> bool:
        self.told.append(told)
        return self.news

    def leader_of(self, topic: str, partition: int) -> int:
        return LEADER


def refused(error: ErrorCode) -> FetchResponse.PartitionData:
    leader = FetchResponse.LeaderIdAndEpoch(leader_id=3, leader_epoch=7)
    return FetchResponse.PartitionData(error_code=error.code, current_leader=leader)


class Desk:
    def __init__(self, news: bool = False) -> None:
        self.view = View(news)
        self.out_of_range: list[int] = []
        self.reader = ReplyReader(
            self.view,  # type: ignore[arg-type]
            ConsumerSettings.of({}),
            lambda partition, offset: self.out_of_range.append(offset),
            SYSTEM_CLOCK,
        )

    def read(self, partition: AssignedPartition, data: FetchResponse.PartitionData, node: int = LEADER) -> Verdict:
        return self.reader.read(partition, data, partition.fetch_offset, node, {3: ("host", 9092)})


@pytest.mark.parametrize(("news", "verdict"), [(True, Verdict.AGAIN), (False, Verdict.LATER)])
def test_a_hint_at_the_new_leader_saves_asking_for_metadata(news: bool, verdict: Verdict) -> None:
    desk = Desk(news)
    assert desk.read(partition_at(0), refused(NOT_LEADER_OR_FOLLOWER)) is verdict
    assert desk.view.told == [("t", 0, 3, 7, ("host", 9092))]


def test_a_follower_that_lacks_the_offset_is_left_for_the_leader() -> None:
    desk, partition = Desk(), partition_at(5)
    partition.read_replica = FOLLOWER
    assert desk.read(partition, refused(OFFSET_OUT_OF_RANGE), FOLLOWER) is Verdict.AGAIN
    assert (partition.read_replica, desk.out_of_range) == (None, [])
    assert desk.read(partition, refused(OFFSET_OUT_OF_RANGE)) is Verdict.AGAIN
    assert desk.out_of_range == [5]


def test_a_former_leader_that_lacks_the_offset_resets_nothing() -> None:
    """The answer was under way while another was elected; it came back with less than it once had."""
    desk, partition = Desk(), partition_at(5)
    assert desk.read(partition, refused(OFFSET_OUT_OF_RANGE), FOLLOWER) is Verdict.LATER
    assert desk.out_of_range == []


def test_an_offset_out_of_range_waits_until_what_is_buffered_was_given() -> None:
    desk, partition = Desk(), partition_at(0, batch(0, 2))
    assert desk.read(partition, refused(OFFSET_OUT_OF_RANGE)) is Verdict.LATER
    partition.take(9, [])
    assert desk.read(partition, refused(OFFSET_OUT_OF_RANGE)) is Verdict.AGAIN
    assert desk.out_of_range == [2]


def test_the_replica_that_a_leader_prefers_is_remembered() -> None:
    desk, partition = Desk(), partition_at(0)
    data = FetchResponse.PartitionData(preferred_read_replica=FOLLOWER, high_watermark=9, log_start_offset=1)
    assert desk.read(partition, data) is Verdict.AGAIN
    assert (partition.read_replica, partition.high_watermark, partition.log_start) == (FOLLOWER, 9, 1)


def test_what_no_time_can_heal_is_a_failure() -> None:
    partition = partition_at(0)
    assert Desk().read(partition, refused(TOPIC_AUTHORIZATION_FAILED)) is Verdict.AGAIN
    assert partition.phase is Phase.FAILED
    assert "t-0" in str(partition.failure)
