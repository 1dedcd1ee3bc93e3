"""Which partition a record goes to."""

from __future__ import annotations

import itertools
import random
import warnings
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from penstock.client.errors import BadSetting
from penstock.client.producer.lane import Batch
from penstock.client.producer.topic_lanes import TopicLanes
from penstock.kernels import RecordsBuilder

with warnings.catch_warnings():
    # kafka-python reads its schemas in a way that Python 3.11 calls old.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.partitioner.default import murmur2 as their_murmur2


def topic(partitions: int, partitioner: Any = "default") -> TopicLanes:
    made = TopicLanes("t", partitioner, random.Random(1))
    made.learn([1] * partitions)
    return made


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 5, 7, 8, 16, 100])
def test_keys_are_spread_as_kafkas_clients_do(size: int) -> None:
    held = topic(12)
    for seed in range(20):
        key = random.Random(seed * 1_000 + size).randbytes(size)
        assert held.lane_of(key, b"").partition == (their_murmur2(key) & 0x7FFFFFFF) % 12


def test_text_keys_are_hashed_as_they_are_sent() -> None:
    assert topic(12).lane_of("schlüssel", None).partition == topic(12).lane_of("schlüssel".encode(), None).partition


def test_records_without_a_key_stay_until_a_batch_is_full_and_then_move() -> None:
    held = topic(4)
    stuck = held.sticky
    assert stuck is not None
    assert {held.lane_of(None, b"v").partition for _ in range(10)} == {stuck.partition}
    builder = RecordsBuilder(1_000)
    builder.append(1, None, bytes(400), ())
    batch = Batch(stuck, builder, 0, 0)
    held.left(batch, 1_000)
    held.left(batch, 1_000)  # counted once
    assert held.sticky is stuck
    builder = RecordsBuilder(1_000)
    builder.append(1, None, bytes(700), ())
    held.left(Batch(stuck, builder, 0, 0), 1_000)
    assert held.sticky is not stuck


def turns(held: TopicLanes, count: int) -> list[int]:
    """The partitions that records without a key go to, one after the other."""
    found = []
    for _ in range(count):
        held.restick()
        assert held.sticky is not None
        found.append(held.sticky.partition)
    return found


@given(st.lists(st.sampled_from([None, 1, 2]), min_size=1, max_size=12), st.integers(0, 1 << 32))
def test_partitions_with_a_leader_get_turns_alike_and_others_none(leaders: list[int | None], seed: int) -> None:
    held = TopicLanes("t", "default", random.Random(seed))
    held.learn(leaders)
    led = [partition for partition, leader in enumerate(leaders) if leader is not None]
    assume(led)
    assert held.sticky is not None
    found = [held.sticky.partition, *turns(held, 10 * len(led) - 1)]
    assert sorted(found) == sorted(led * 10)
    if len(led) > 1:
        assert all(one != after for one, after in itertools.pairwise(found))


@given(st.lists(st.lists(st.sampled_from([None, 1]), min_size=4, max_size=8), min_size=1, max_size=6))
def test_a_turn_goes_to_a_partition_that_has_a_leader_now(news: list[list[int | None]]) -> None:
    held = topic(4)
    for leaders in news:
        held.learn(leaders)
        led = {lane.partition for lane in held.lanes if lane.leader is not None} or set(range(len(held.lanes)))
        assert held.sticky is not None
        assert held.sticky.partition in led
        assert set(turns(held, 3)) <= led
    if held.lanes[0].leader is not None:
        assert set(turns(held, 2 * len(held.lanes))) == led


def test_lanes_that_another_broker_leads_are_named() -> None:
    held = topic(3)
    assert held.learn([1, None, 2, 1]) == [held.lanes[2], held.lanes[3]]


def test_round_robin_visits_every_partition_in_turn() -> None:
    held = topic(3, "round_robin")
    visited = [held.lane_of(b"same", None).partition for _ in range(6)]
    assert sorted(visited[:3]) == [0, 1, 2]
    assert visited[:3] == visited[3:]


def test_a_function_chooses_by_topic_key_value_and_count() -> None:
    seen: list[Any] = []
    held = topic(3, lambda *given: seen.append(given) or 2)
    assert held.lane_of(b"k", b"v").partition == 2
    assert seen == [("t", b"k", b"v", 3)]


@pytest.mark.parametrize("chosen", [3, -1, "1", None])
def test_a_function_that_chooses_nonsense_is_told(chosen: Any) -> None:
    with pytest.raises(BadSetting, match="partitions 0 to 2"):
        topic(3, lambda *_: chosen).lane_of(b"k", b"v")
