"""What is promised of sinks, and whether it is kept: `fresh_within` of a sink. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.declared.fields import Table
from penstock.model.units import duration_text
from penstock.spark.pipeline import home
from penstock.spark.pipeline.home import SinkProgress

if TYPE_CHECKING:
    from penstock.spark.pipeline.flow import Flow

FRESH_WITHIN: Final = "fresh_within"
_SECONDS: Final = {"millisecond": 0.001, "second": 1, "minute": 60, "hour": 3_600, "day": 86_400, "week": 604_800}
_PART: Final = re.compile(r"\s*(\d+)\s*(millisecond|second|minute|hour|day|week)s?\s*", re.IGNORECASE)


class Standing(NamedTuple):
    """A sink, what is promised of it and how it is. `fresh_s` is None when nobody knows; `within_s` 0: no promise."""

    sink: str
    state: str
    fresh_s: float | None
    within_s: float
    words: str
    met: bool


def seconds_of(interval: str) -> float | None:
    """`30 seconds`, `1 hour 30 minutes`; None for what is no such thing, or nothing at all."""
    total, at = 0.0, 0
    while at < len(interval):
        part = _PART.match(interval, at)
        if part is None:
            return None
        total += int(part[1]) * _SECONDS[part[2].lower()]
        at = part.end()
    return total or None


def promises(flow: Flow) -> dict[str, float]:
    """By the name of the query; of sinks that share one the strictest."""
    found: dict[str, float] = {}
    for sink in flow.sinks:
        if sink.fresh_within_s:
            query = flow.query_name(sink)
            found[query] = min(sink.fresh_within_s, found.get(query, sink.fresh_within_s))
    return found


def judge(sink: SinkProgress, within_s: float, now_ms: int) -> Standing:
    """Whether a sink is as fresh as is promised of it. Who does not know how fresh it is keeps no promise."""
    fresh_s = sink.fresh_s(now_ms)
    waits = _words(sink, fresh_s)
    met = within_s == 0 or (fresh_s is not None and fresh_s <= within_s)
    if within_s and not met:
        waits += f", and {duration_text(within_s * 1000)} is promised"
    return Standing(sink.sink, sink.state, fresh_s, within_s, waits, met)


def missing(sink: str, within_s: float) -> Standing:
    """Of a sink that nobody has heard of."""
    return Standing(sink, "unknown", None, within_s, "it has never run, as far as is known here", within_s == 0)


def _words(sink: SinkProgress, fresh_s: float | None) -> str:
    if not sink.begun:
        return "it had no batch yet"
    if fresh_s is None:
        return "when the oldest record was written that waits for it cannot be told"
    rest = "" if sink.state in home.GOING else f", and it is {sink.state}"
    if fresh_s == 0:
        return f"nothing waits for it{rest}"
    return f"{sink.lag:,} records wait for it, the oldest for {duration_text(fresh_s * 1000)}{rest}"


def fresh_within_of(table: Table) -> float:
    """`fresh_within = "30 seconds"` of a sink; 0 without one."""
    given = table.text(FRESH_WITHIN)
    if given is None:
        return 0.0
    found = seconds_of(given)
    if found is None:
        table.wrong(FRESH_WITHIN, f'fresh_within = {given!r} is no time such as "30 seconds" or "1 hour 30 minutes"')
    return found or 0.0
