"""The judge of the soak, and the numbers in its records."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bench.soak import verdict
from bench.soak.look import Look
from bench.soak.numbered import HEADER, Course, fillers, numbers_in, numbers_of, values
from bench.soak.pace import CATCH_UP_S, Pace
from bench.soak.ramp import Search, judge_step

AT_REST = Look(
    at_s=0.0,
    asked=0.0,
    written=0,
    read=0,
    group_lags={"ledger": 0, "counter": 0, "mirror": 0},
    query_lag=0,
    query_batch_s=0.5,
    node_rss_mb=50.0,
    node_cpu_s=0.0,
    clients_rss_mb=400.0,
    clients_cpu_s=0.0,
    spark_rss_mb=900.0,
    spark_cpu_s=0.0,
    files=100,
    disk_mb=10.0,
    loop_stalls=0.0,
    loop_lag_p99_ms=1.0,
    segments_deleted=0.0,
    errors=0,
)


def run(seconds: int, *, asked: int = 1_000, written: int = 1_000) -> list[Look]:
    return [
        replace(AT_REST, at_s=float(at), asked=float(at * asked), written=at * written, read=at * written)
        for at in range(seconds + 1)
    ]


def calm_run(seconds: int, ms: float = 1.0) -> list[tuple[float, list[float]]]:
    return [(at + 0.5, [ms] * 100) for at in range(seconds)]


def take(course: Course, first: int, *numbers: tuple[int, int]) -> list[str]:
    records = [HEADER.pack(*each) for each in numbers]
    return course.take(np.arange(first, first + len(numbers), dtype=np.int64), numbers_of(records))


def test_records_of_one_size_say_the_same_one_by_one_and_in_a_row() -> None:
    records = values(7, 5, 300, fillers(100))
    assert {len(record) for record in records} == {100}
    together = numbers_in(b"".join(records), 100)
    assert together.tolist() == numbers_of(records).tolist() == [(7, number) for number in range(5, 305)]


def test_two_writers_of_a_partition_each_have_their_own_count() -> None:
    course = Course()
    assert take(course, 0, (1, 0), (2, 0), (1, 1), (1, 2)) == []
    assert take(course, 4, (2, 1), (1, 3)) == []
    assert (course.next_offset, course.next_numbers, course.again) == (6, {1: 4, 2: 2}, 0)


def test_what_is_read_again_at_the_same_offset_is_no_double() -> None:
    course = Course()
    take(course, 0, (1, 0), (1, 1), (1, 2))
    assert take(course, 1, (1, 1), (1, 2), (1, 3)) == []
    assert (course.next_offset, course.again) == (4, 2)


def test_a_record_twice_is_found() -> None:
    assert take(Course(), 0, (1, 0), (1, 1), (1, 1)) == ["writer 1: 1 comes after 1, and 0 more breaks"]


def test_a_lost_record_is_found_within_and_between_what_comes_together() -> None:
    course = Course()
    assert take(course, 0, (1, 0), (1, 2)) == ["writer 1: 2 comes after 0, and 0 more breaks"]
    assert take(course, 2, (1, 5)) == ["writer 1: 5 comes after 2, and 0 more breaks"]
    assert take(course, 9, (1, 6)) == ["offsets 3 to 8 were not given"]


def test_a_pace_asks_for_all_but_lets_off_who_is_far_behind() -> None:
    pace = Pace(0.0)
    assert pace.take(100.0, 0.0, 10) == 0
    assert [pace.take(100.0, 0.5, 10), pace.take(100.0, 0.5, 100)] == [10, 40]
    assert pace.take(100.0, 60.5, 10_000) == 100 * CATCH_UP_S
    assert pace.asked == 6_050


def test_the_search_rises_until_something_fails_and_then_halves() -> None:
    search, tried = Search(10.0, 2.0, 2), list[float]()
    while search.trying is not None:
        tried.append(search.trying)
        search.carried(search.trying < 45.0)
    assert [round(each, 1) for each in tried] == [10.0, 20.0, 40.0, 80.0, 56.6, 47.6]
    assert search.best == 40.0


def test_a_step_fails_with_the_name_of_who_could_not_follow() -> None:
    before, after = run(5)[0], run(5)[-1]
    assert judge_step(before, after, 1e6, 0.01).failing == ()
    late = replace(after, written=4_000, group_lags={**after.group_lags, "mirror": 7_000}, query_batch_s=6.0)
    assert judge_step(before, late, 1e6, 0.01).failing == (
        "writers: 80% of what was asked",
        "group mirror: 10.0 s behind",
        "query: batches of 6.0 s",
    )


def test_windows_are_ten_seconds_of_rates() -> None:
    found = verdict.windows(run(35), calm_run(35, 2.5), 0.0)
    assert [window.at_s for window in found] == [10.0, 20.0, 30.0]
    assert {(window.asked_per_s, window.written_per_s, window.p50_ms, window.p99_ms) for window in found} == {
        (1_000, 1_000, 2.5, 2.5)
    }


def test_who_is_behind_is_measured_by_what_is_written_for_him() -> None:
    looks = run(10)
    looks[5] = replace(looks[5], query_lag=1_000, group_lags={**looks[5].group_lags, "ledger": 2_000})
    (window,) = verdict.windows(looks, calm_run(10), 0.0)
    share = 700 / 3_700  # orders of 1,000 bytes, clicks of 100
    assert (window.query_lag_s, window.group_lag_s) == (round(1 / share, 2), 2.0)


def test_a_run_without_fault_passes() -> None:
    windows = verdict.windows(run(60), calm_run(60), 0.0)
    blocks = verdict.blocks(calm_run(60), 0.0, 60.0)
    assert blocks == [1.0, 1.0, 1.0]
    assert all(each.passed for each in verdict.verdicts(windows, blocks, [], 0))


def test_each_fault_fails_its_own_verdict() -> None:
    windows = verdict.windows(run(60), calm_run(60), 0.0)
    slow = replace(windows[2], written_per_s=899)
    fat = replace(windows[5], node_rss_mb=56.0)
    stale = replace(windows[1], query_lag_s=31.0)
    failing = [
        verdict.steady([*windows, slow]),
        verdict.flat([*windows, fat]),
        verdict.clean(["writer 1: gone"]),
        verdict.calm([1.0, 1.5, 2.1]),
        verdict.whole(1),
        verdict.fresh([*windows, stale]),
    ]
    assert [each.passed for each in failing] == [False] * 6


def test_a_run_that_saw_nothing_proves_nothing() -> None:
    assert [each.passed for each in (verdict.steady([]), verdict.flat([]), verdict.calm([]), verdict.fresh([]))] == [
        False
    ] * 4


def test_latency_is_compared_by_five_minutes_of_a_long_run() -> None:
    latencies = [(at + 0.5, [1.0 if at < 600 else 3.0] * 10) for at in range(1_000)]
    assert verdict.blocks(latencies, 0.0, 1_000.0) == [1.0, 1.0, 3.0]
