"""Waits grow, end, and are forgotten after a while that went well."""

from __future__ import annotations

from penstock.spark.pipeline.retrying import Patience, Tries

PATIENCE = Patience(first_s=1.0, most_s=5.0, tries=5, forgive_s=100.0)


def test_waits_double_up_to_a_limit_and_the_last_failure_is_the_last() -> None:
    tries, waits = Tries().started(0.0), []
    for now_s in range(1, 6):
        tries, wait_s = tries.after_failure(now_s, PATIENCE)
        waits.append(wait_s)
    assert waits == [1.0, 2.0, 4.0, 5.0, None]


def test_what_ran_for_long_begins_to_count_anew() -> None:
    tries, _ = Tries(failed=4).started(0.0).after_failure(100.0, PATIENCE)
    assert tries.failed == 1


def test_so_does_what_did_its_work() -> None:
    assert Tries(failed=3).went_well().after_failure(1.0, PATIENCE) == (Tries(failed=1), 1.0)
