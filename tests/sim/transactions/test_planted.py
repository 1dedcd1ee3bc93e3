"""Every planted bug is found, within a thousand seeds.

`make test` runs the seed that found a bug last; when that finds it no more, because coordinator or world are others
now, the search goes on from the first seed.
"""

from __future__ import annotations

from itertools import chain

import pytest

from tests.sim.transactions.life import live
from tests.sim.transactions.planted import BUGS

SEEDS = 1_000
FOUND_BY = {
    "prepare_lost_at_failover": 1,
    "late_end_taken_for_current": 101,
    "fenced_producer_taken_for_a_repetition": 162,
    "epoch_behind_the_last_told": 1,
    "stuck_at_the_last_epoch": 16,
    "markers_of_anybody_complete": 1,
    "one_marker_for_all": 2,
    "partition_added_in_memory_only": 1,
    "prepare_can_be_decided_anew": 0,
    "settling_told_too_late": 15,
    "self_fencing_by_order_of_checks": 8,
    "timed_out_transactions_forgotten_at_failover": 1,
    "outcome_of_the_log_forgotten": 0,
    "bumped_twice": 0,
    "retry_of_a_rotation_refused": 72,
    "end_where_nothing_began_refused": 5,
}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    BUGS[name](monkeypatch)
    for seed in chain((FOUND_BY[name],), range(SEEDS)):
        try:
            live(seed)
        except Exception:
            return
    pytest.fail(f"{SEEDS} seeds do not find {name}")
