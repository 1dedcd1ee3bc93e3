from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.console.sampler.picture import GROUPS, LOG_DIRS, METADATA, OFFSETS, PARTS
from penstock.console.sampler.schedule import (
    COST_TIMES,
    EARLY_MS_MAX,
    EARLY_SHARE,
    FIRST_PERIOD_MS,
    GAP_MS,
    IDLE_AFTER_MS,
    IDLE_PERIOD_MS,
    PERIODS_MS,
    Schedule,
)


def due(schedule: Schedule, now_ms: float) -> list[str]:
    found, part = [], schedule.next_due(now_ms)
    while part is not None:
        found.append(part)
        part = schedule.next_due(now_ms, part)
    return found


def looked_at(cost_ms: float = 1, idle_ms: float = 0, every_ms: int = PERIODS_MS[METADATA]) -> Schedule:
    """All parts were looked at twice; the last time at 0."""
    schedule = Schedule(every_ms)
    for now_ms in (-1, 0):
        for part in PARTS:
            schedule.looked(part, now_ms, cost_ms, idle_ms)
    return schedule


def test_everything_is_due_at_first_and_again_after_its_period() -> None:
    assert due(Schedule(), 0) == list(PARTS)
    schedule = looked_at()
    assert due(schedule, PERIODS_MS[METADATA] - 1) == []
    assert due(schedule, PERIODS_MS[METADATA]) == [METADATA]
    assert schedule.wait_ms(1_000) == PERIODS_MS[METADATA] - 1_000


def test_whoever_changed_something_does_not_wait_and_nobody_there_asks_rarely() -> None:
    schedule = looked_at(idle_ms=IDLE_AFTER_MS + 1)
    assert due(schedule, IDLE_PERIOD_MS - 1) == []
    schedule.soon([LOG_DIRS], GAP_MS + 5)
    assert due(schedule, GAP_MS + 5) == [LOG_DIRS]


def test_a_change_right_after_a_look_is_seen_by_the_next_one() -> None:
    schedule = looked_at()
    schedule.soon([LOG_DIRS], 5)
    assert (due(schedule, 5), due(schedule, GAP_MS)) == ([], [LOG_DIRS])


def test_a_part_that_was_taken_along_is_not_due_and_costs_nothing_more() -> None:
    schedule = looked_at(cost_ms=100)
    schedule.taken_along(OFFSETS, 20_000, 0)
    assert GROUPS in due(schedule, 20_000)
    assert OFFSETS not in due(schedule, 20_000 + COST_TIMES[OFFSETS] * 100 - 1)
    assert OFFSETS in due(schedule, 20_000 + COST_TIMES[OFFSETS] * 100)


def test_the_first_look_compiles_what_reads_it_and_the_second_need_not_wait_for_that() -> None:
    schedule = Schedule()
    schedule.looked(METADATA, 0, 60_000, 0)
    assert METADATA in due(schedule, FIRST_PERIOD_MS)


@given(st.floats(0.1, 400), st.integers(20, 500), st.integers(1, 5_000))
def test_changes_without_end_cost_no_more_than_their_credit(cost_ms: float, every_ms: int, pace_ms: int) -> None:
    """Ten records a second over HTTP once made the sampler look at the whole cluster without a pause."""
    schedule, end_ms, now_ms, spent_ms = looked_at(cost_ms, every_ms=pace_ms), 60_000.0, 0.0, 0.0
    last_ms = 0.0
    while now_ms < end_ms:
        schedule.soon([OFFSETS], now_ms)
        if OFFSETS in due(schedule, now_ms):
            assert now_ms - last_ms >= GAP_MS * pace_ms / PERIODS_MS[METADATA]
            schedule.looked(OFFSETS, now_ms, cost_ms, 0)
            spent_ms, last_ms = spent_ms + cost_ms, now_ms
        now_ms += every_ms
    assert spent_ms <= end_ms / COST_TIMES[OFFSETS] + cost_ms + EARLY_MS_MAX + EARLY_SHARE * end_ms


def test_all_parts_together_stay_below_a_twentieth_of_a_core() -> None:
    assert sum(1 / times for times in COST_TIMES.values()) + EARLY_SHARE <= 0.05


@given(st.lists(st.floats(0, 5_000), min_size=1, max_size=50))
def test_looks_take_no_more_than_their_share_of_a_core(costs_ms: list[float]) -> None:
    schedule, now_ms = looked_at(every_ms=1), 0.0
    for cost_ms in costs_ms:
        schedule.looked(METADATA, now_ms, cost_ms, 0)
        assert METADATA not in due(schedule, now_ms + COST_TIMES[METADATA] * cost_ms - 1)
        now_ms += max(COST_TIMES[METADATA] * cost_ms, PERIODS_MS[METADATA])
        assert METADATA in due(schedule, now_ms)
