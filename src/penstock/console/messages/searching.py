"""A search: bounded, told as it goes, stopped within one fetch, and gone on with from where it stopped."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from penstock.client.consumer import ConsumerRecord
from penstock.console.failures import declined
from penstock.console.messages.cursors import cursor_text
from penstock.console.messages.matching import Matcher
from penstock.console.messages.reading import Budget, Ranges, consumer_of
from penstock.console.messages.showing import shown
from penstock.model.errors import PenstockError

TELL_EVERY_S: Final = 0.25
SLICE: Final = 100
"""After so many records others get a turn on the loop."""
HIT_BYTES: Final = 8 << 10
"""So much of a key or value is told with a hit; the record has an address of its own."""

Tell = Callable[[dict[str, Any]], None]


@dataclass(frozen=True, slots=True)
class SearchBounds:
    """Whichever comes first ends a search."""

    hits: int = 50
    seconds: float = 10.0
    bytes: int = 200_000_000
    records: int = 5_000_000


@dataclass(frozen=True, slots=True)
class SearchOrder:
    """What to look for, and where: offsets [from, to) of each partition."""

    topic: str
    froms: Mapping[int, int]
    tos: Mapping[int, int]
    matcher: Matcher
    bounds: SearchBounds = SearchBounds()
    isolation: str = "read_uncommitted"


@dataclass(slots=True)
class _Found:
    """What there is to tell since it was last told."""

    hits: list[dict[str, Any]] = field(default_factory=list)
    count: int = 0
    unprocessed: dict[int, int] = field(default_factory=dict)
    """The first offset of each partition that was fetched and not looked at."""


async def search(keywords: Mapping[str, Any], order: SearchOrder, tell: Tell) -> None:
    """Tells what it finds until it ends; the last thing that it tells says why it ended and how to go on."""
    began = time.monotonic()
    bounds = order.bounds
    budget, found = Budget(bounds.seconds, bounds.bytes, bounds.records), _Found()
    positions = dict(order.froms)

    def report(state: str, why: str | None = None, error: dict[str, Any] | None = None) -> None:
        nonlocal positions
        standing = {**positions, **found.unprocessed}
        unfinished = any(standing[partition] < to for partition, to in order.tos.items())
        seconds = max(time.monotonic() - began, 1e-3)
        told = {
            "hits": found.hits,
            "found": found.count,
            "scanned": str(budget.records),
            "bytes": str(budget.bytes),
            "rate": budget.records / seconds,
            "elapsed_s": seconds,
            "positions": {str(partition): str(offset) for partition, offset in sorted(standing.items())},
            "unreadable": str(order.matcher.unreadable),
            "state": state,
            "why": why,
            "error": error,
            "next": cursor_text(standing) if state == "stopped" and unfinished else None,
        }
        found.hits = []
        tell(told)

    try:
        more = {"isolation_level": order.isolation}
        async with consumer_of(keywords, order.topic, list(order.froms), **more) as consumer:
            ranges = Ranges(consumer, order.topic, order.froms, order.tos)
            positions = ranges.positions
            why = await _look_through(ranges, order, budget, found, lambda: report("running"))
        report("stopped", why)
    except asyncio.CancelledError:
        report("stopped", "cancelled")
        raise
    except PenstockError as failure:
        report("stopped", "failed", declined(failure).told())


async def _look_through(
    ranges: Ranges, order: SearchOrder, budget: Budget, found: _Found, report: Callable[[], None]
) -> str:
    told_at = time.monotonic()
    while ranges.open:
        records = await ranges.poll()
        for at, record in enumerate(records):
            budget.take(record)
            if order.matcher(record):
                found.hits.append(shown(record, HIT_BYTES))
                found.count += 1
            if at % SLICE == SLICE - 1:
                await asyncio.sleep(0)
            if found.count >= order.bounds.hits:
                found.unprocessed = _first_offsets(records[at + 1 :])
                return "hits"
        if time.monotonic() - told_at >= TELL_EVERY_S:
            told_at = time.monotonic()
            report()
        if ranges.open and budget.spent:
            return budget.spent
    return "end"


def _first_offsets(records: list[ConsumerRecord]) -> dict[int, int]:
    first: dict[int, int] = {}
    for record in records:
        first.setdefault(record.partition, record.offset)
    return first
