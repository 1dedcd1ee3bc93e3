from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.console.sampler.picture import LOG_DIRS, METADATA, PARTS
from penstock.console.sampler.schedule import COST_TIMES, IDLE_AFTER_MS, IDLE_PERIOD_MS, PERIODS_MS, Schedule


def test_everything_is_due_at_first_and_again_after_its_period() -> None:
    schedule = Schedule()
    assert schedule.due(0) == list(PARTS)
    for part in PARTS:
        schedule.looked(part, 0, 1, 0)
    assert schedule.due(PERIODS_MS[METADATA] - 1) == []
    assert schedule.due(PERIODS_MS[METADATA]) == [METADATA]
    assert schedule.wait_ms(1_000) == PERIODS_MS[METADATA] - 1_000


def test_whoever_changed_something_does_not_wait_and_nobody_there_asks_rarely() -> None:
    schedule = Schedule()
    for part in PARTS:
        schedule.looked(part, 0, 1, IDLE_AFTER_MS + 1)
    assert schedule.due(IDLE_PERIOD_MS - 1) == []
    schedule.soon([LOG_DIRS], 5)
    assert schedule.due(5) == [LOG_DIRS]


@given(st.floats(0, 5_000), st.integers(1, 50))
def test_looks_take_no_more_than_their_share_of_a_core(cost_ms: float, looks: int) -> None:
    schedule, now_ms = Schedule(every_ms=1), 0.0
    for _ in range(looks):
        schedule.looked(METADATA, now_ms, cost_ms, 0)
        schedule.looked(LOG_DIRS, now_ms, 0, 0)
        assert METADATA not in schedule.due(now_ms + COST_TIMES * cost_ms - 1)
        now_ms += max(COST_TIMES * cost_ms, PERIODS_MS[METADATA])
        assert METADATA in schedule.due(now_ms)
