"""How much a trigger takes."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.model.ids import TopicPartition
from penstock.spark.source.limits import Pace, cut, share
from tests.properties import examples

PARTITIONS = st.builds(TopicPartition, st.sampled_from(["a", "b", "c"]), st.integers(0, 20))
BACKLOGS = st.dictionaries(PARTITIONS, st.integers(0, 10**12), max_size=30)
T0, T1, T2 = (TopicPartition("t", number) for number in range(3))


@settings(deadline=None, max_examples=examples(60))
@given(BACKLOGS, st.integers(1, 10**12))
def test_shares_use_the_limit_up_and_starve_nobody(backlogs: dict[TopicPartition, int], limit: int) -> None:
    shares = share(backlogs, limit)
    waiting = {tp: size for tp, size in backlogs.items() if size > 0}
    assert shares.keys() == waiting.keys()
    assert all(1 <= shares[tp] <= size for tp, size in waiting.items())
    if limit >= len(waiting):
        assert sum(shares.values()) == min(limit, sum(waiting.values()))
    else:
        assert set(shares.values()) == {1}


@settings(deadline=None, max_examples=examples(60))
@given(BACKLOGS, st.integers(1, 10**6), st.randoms(use_true_random=False))
def test_shares_do_not_depend_on_order(backlogs: dict[TopicPartition, int], limit: int, order: random.Random) -> None:
    shuffled = list(backlogs.items())
    order.shuffle(shuffled)
    assert share(dict(shuffled), limit) == share(backlogs, limit)


@settings(deadline=None, max_examples=examples(60))
@given(BACKLOGS, st.integers(1, 10**6))
def test_more_backlog_never_means_less(backlogs: dict[TopicPartition, int], limit: int) -> None:
    shares = share(backlogs, limit)
    by_backlog = sorted(shares, key=lambda tp: backlogs[tp])
    for smaller, larger in itertools.pairwise(by_backlog):
        assert backlogs[smaller] == backlogs[larger] or shares[smaller] <= shares[larger] + 1


def test_shares_are_in_proportion() -> None:
    assert share({T0: 900, T1: 100, T2: 0}, 100) == {T0: 90, T1: 10}


def test_ends_are_cut_to_the_limit() -> None:
    begins, ends = {T0: 100, T1: 50, T2: 7}, {T0: 1000, T1: 150, T2: 7}
    assert cut(begins, ends, 100) == {T0: 190, T1: 60, T2: 7}
    assert cut(begins, ends, 10**9) == ends
    assert cut(begins, ends, None) == ends


@settings(deadline=None, max_examples=examples(60))
@given(BACKLOGS, st.integers(1, 1000))
def test_cutting_again_and_again_reaches_the_end(backlogs: dict[TopicPartition, int], limit: int) -> None:
    ends = {tp: size % 300 for tp, size in backlogs.items()}
    begins = dict.fromkeys(ends, 0)
    for _ in range(sum(ends.values()) // limit + 2):
        begins = cut(begins, ends, limit)
    assert begins == ends


@pytest.mark.parametrize(("waiting", "now_ms", "worth"), [(5, 1500, False), (10, 1500, True), (1, 61_000, True)])
def test_a_batch_waits_for_enough_records_but_not_for_ever(waiting: int, now_ms: float, worth: bool) -> None:
    pace = Pace(least_offsets=10, delay_max_ms=60_000)
    assert pace.worth(1, 1000), "the first batch waits for nothing"
    assert pace.worth(waiting, now_ms) is worth
    assert pace.last_ms == (now_ms if worth else 1000)
