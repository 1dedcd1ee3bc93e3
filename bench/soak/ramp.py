"""The most that the mix carries: rates that rise until somebody cannot follow, then halvings in between."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from bench.soak.look import Look
from bench.soak.looking import Observer
from bench.soak.mix import GROUPS, QUERY_TOPIC, share_of_records, total_records_per_s
from bench.soak.query import TRIGGER_S
from bench.soak.stage import Stage

FIRST_BYTES_PER_S = 10e6
RISE = 1.5
HALVINGS = 3
STEP_S, REST_S = 7.0, 4.0
SETTLE_S = 2.0

WRITTEN_LEAST = 0.95
GROUP_LAG_S_MOST = 2.0
QUERY_LAG_S_MOST = 2.0 * TRIGGER_S
"""Records of a batch and of the one before it: the query is not behind, it is at work."""


class Search:
    """Pure: which rate to try next, from what became of those before."""

    def __init__(self, first: float = FIRST_BYTES_PER_S, rise: float = RISE, halvings: int = HALVINGS) -> None:
        self.best = 0.0
        self.failed: float | None = None
        self._rise, self._left = rise, halvings
        self.trying: float | None = first

    def carried(self, whole: bool) -> None:
        """What was tried was carried, or not."""
        assert self.trying is not None, "the search is over"
        if whole:
            self.best = self.trying
        else:
            self.failed = self.trying
        self.trying = self._next()

    def _next(self) -> float | None:
        if self.failed is None:
            return self.best * self._rise
        if self._left == 0:
            return None
        self._left -= 1
        return (self.best * self.failed) ** 0.5 if self.best else self.failed / self._rise


@dataclass(frozen=True)
class Step:
    """What became of one rate."""

    bytes_per_s: float
    failing: tuple[str, ...]
    """Who could not follow, and how; nobody when it was carried."""


def judge_step(before: Look, after: Look, bytes_per_s: float, late_s: float) -> Step:
    """Pure: whether everybody followed between two looks. `late_s` is the worst the probe waited."""
    failing = []
    records = total_records_per_s(bytes_per_s)
    asked, written = after.asked - before.asked, after.written - before.written
    if written < WRITTEN_LEAST * asked:
        failing.append(f"writers: {written / asked:.0%} of what was asked")
    for group in GROUPS:
        lag_s = after.group_lags[group.name] / (records * share_of_records(group.topics))
        if lag_s > GROUP_LAG_S_MOST:
            failing.append(f"group {group.name}: {lag_s:.1f} s behind")
    lag_s = after.query_lag / (records * share_of_records([QUERY_TOPIC]))
    if lag_s > QUERY_LAG_S_MOST:
        failing.append(f"query: {lag_s:.1f} s behind")
    if after.query_batch_s > TRIGGER_S:
        failing.append(f"query: batches of {after.query_batch_s:.1f} s")
    if late_s > 1.0:
        failing.append(f"probe: {late_s:.1f} s")
    return Step(bytes_per_s, tuple(failing))


def measure(stage: Stage, observer: Observer, say: Callable[[str], None]) -> tuple[float, list[Step]]:
    """The highest rate in bytes a second at which everybody followed, and every step on the way."""
    search, steps = Search(), list[Step]()
    while search.trying is not None:
        rate = search.trying
        stage.load(rate)
        time.sleep(SETTLE_S)
        before, began = observer.look(), time.monotonic()
        time.sleep(STEP_S - SETTLE_S)
        after = observer.look()
        late_ms = max((max(ms, default=0.0) for at, ms in stage.latencies_ms if at > began), default=0.0)
        step = judge_step(before, after, rate, late_ms / 1000)
        steps.append(step)
        words = ", ".join(step.failing) or "carried"
        say(f"{rate / 1e6:.1f} MB/s, {total_records_per_s(rate):,.0f} records/s: {words}")
        search.carried(not step.failing)
        if step.failing:
            # Back to what is easy, so that the next step does not pay for this one.
            stage.load(min(search.best, FIRST_BYTES_PER_S))
            time.sleep(REST_S)
        if troubles := stage.troubles():
            raise RuntimeError("; ".join(troubles))
    if not search.best:
        raise RuntimeError("not even the least load was carried: " + "; ".join(str(step.failing) for step in steps))
    return search.best, steps
