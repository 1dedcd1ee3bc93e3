"""Spans into tasks."""

from __future__ import annotations

import math
import random

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.client.spans import Span
from penstock.model.ids import TopicPartition
from penstock.spark.source.packing import BYTES_WORTH_A_TASK, ROW_BYTES, PackingLimits, pack
from tests.properties import examples

LIMITS = st.builds(PackingLimits, st.integers(1, 12), st.none() | st.integers(1, 40), st.none() | st.integers(50, 2000))


@st.composite
def spans(draw: st.DrawFn) -> list[Span]:
    numbers = draw(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 30)), unique=True, max_size=25))
    return [
        Span(topic, "id", partition, start := draw(st.integers(0, 1000)), start + draw(st.integers(0, 5000)))
        for topic, partition in numbers
    ]


RATES = st.dictionaries(
    st.builds(TopicPartition, st.sampled_from("abc"), st.integers(0, 30)), st.floats(0, 1e6), max_size=20
)


def offsets(of: list[Span]) -> list[tuple[str, int, int, int]]:
    """The same ranges whichever way they are split."""
    joined: list[list[object]] = []
    for span in sorted((each for each in of if each.end > each.start), key=lambda each: (each.tp, each.start)):
        if joined and joined[-1][0] == span.tp and joined[-1][2] == span.start:
            joined[-1][2] = span.end
        else:
            joined.append([span.tp, span.start, span.end])
    return [(*tp, start, end) for tp, start, end in joined]  # type: ignore[misc,has-type]


@settings(deadline=None, max_examples=examples(60))
@given(spans(), LIMITS, RATES)
def test_every_offset_is_in_exactly_one_task(
    given_spans: list[Span], limits: PackingLimits, rates: dict[TopicPartition, float]
) -> None:
    packed = pack(given_spans, limits, rates)
    assert offsets([span for task in packed for span in task]) == offsets(given_spans)
    assert sum(span.end - span.start for task in packed for span in task) == sum(
        span.end - span.start for span in given_spans
    )
    assert all(task and all(span.end > span.start for span in task) for task in packed)


@settings(deadline=None, max_examples=examples(60))
@given(spans(), LIMITS, RATES)
def test_the_number_of_tasks_keeps_what_was_asked_for(
    given_spans: list[Span], limits: PackingLimits, rates: dict[TopicPartition, float]
) -> None:
    packed = pack(given_spans, limits, rates)
    total = sum(span.end - span.start for span in given_spans)
    if limits.tasks_min is not None:
        assert len(packed) >= min(limits.tasks_min, total)
    if limits.offsets_max is not None:
        assert all(sum(span.end - span.start for span in task) <= limits.offsets_max for task in packed)
    if limits.tasks_min is None and limits.offsets_max is None:
        assert len(packed) <= limits.tasks_max
        assert [span for task in packed for span in task if span not in given_spans] == [], "nothing is split unasked"


@settings(deadline=None, max_examples=examples(60))
@given(spans(), LIMITS, RATES, st.randoms(use_true_random=False))
def test_a_plan_made_again_is_the_same(
    given_spans: list[Span], limits: PackingLimits, rates: dict[TopicPartition, float], order: random.Random
) -> None:
    shuffled = list(given_spans)
    order.shuffle(shuffled)
    assert pack(shuffled, limits, rates) == pack(given_spans, limits, rates)


def test_nothing_to_read_is_no_task() -> None:
    assert pack([], PackingLimits(8), {}) == []
    assert pack([Span("t", "", 0, 5, 5)], PackingLimits(8), {}) == []


def test_a_small_batch_is_one_task_however_many_partitions_it_has() -> None:
    (only,) = pack([Span("t", "", number, 0, 10) for number in range(100)], PackingLimits(8), {})
    assert len(only) == 100


def test_tasks_are_as_many_as_the_bytes_are_worth() -> None:
    rate = 1024 - ROW_BYTES
    many = [Span("t", "", number, 0, 1024) for number in range(12)]
    packed = pack(many, PackingLimits(8), {span.tp: rate for span in many})
    assert len(packed) == math.ceil(12 * (1 << 20) / BYTES_WORTH_A_TASK) == 3


def test_bytes_are_balanced_not_counts() -> None:
    heavy = [Span("heavy", "", number, 0, 1000) for number in range(2)]
    light = [Span("light", "", number, 0, 1000) for number in range(20)]
    rates = {span.tp: 1e6 for span in heavy} | {span.tp: 1e5 for span in light}
    packed = pack(heavy + light, PackingLimits(2), rates)
    assert [sorted(span.topic for span in task) for task in packed] == [["heavy"] + ["light"] * 10] * 2


def test_one_large_partition_is_split_only_when_asked() -> None:
    large = Span("t", "", 0, 100, 1_000_100)
    assert pack([large], PackingLimits(8), {}) == [(large,)]
    four = pack([large], PackingLimits(2, tasks_min=4), {})
    assert sorted((task[0].start, task[0].end) for task in four) == [
        (100, 250_100),
        (250_100, 500_100),
        (500_100, 750_100),
        (750_100, 1_000_100),
    ]


def test_spans_of_a_task_are_in_order() -> None:
    spread = [Span("t", "", number, 0, 1000) for number in (5, 1, 3)]
    (task,) = pack(spread, PackingLimits(1), {})
    assert [span.partition for span in task] == [1, 3, 5]
