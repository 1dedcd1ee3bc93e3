"""A search: bounded, told as it goes, stopped within one fetch, and gone on with from where it stopped."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from penstock.client.consumer import ConsumerRecord
from penstock.console.failures import declined
from penstock.console.messages.cursors import cursor_text
from penstock.console.messages.reading import Budget, Ranges, consumer_of
from penstock.console.messages.showing import shown
from penstock.console.messages.turns import Slices
from penstock.model.errors import PenstockError
from penstock.operations.records.matching import Matcher

log = logging.getLogger(__name__)

TELL_EVERY_S: Final = 0.25
HITS_BYTES: Final = 1 << 20
HIT_BYTES: Final = 8 << 10
"""So much of a key, a value or all headers is told with a hit, and less where many hits are wanted: all of them have to
wait for a browser in bounded room. A record that is cut has an address of its own."""
HIT_BYTES_MIN: Final = 512

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
    froms: dict[int, int]
    tos: dict[int, int]
    where: str | None = None
    contains: str | None = None
    bounds: SearchBounds = SearchBounds()
    isolation: str = "read_uncommitted"

    @property
    def hit_bytes(self) -> int:
        return min(max(HITS_BYTES // (3 * self.bounds.hits), HIT_BYTES_MIN), HIT_BYTES)


@dataclass(slots=True)
class _Found:
    """What there is to tell since it was last told."""

    hits: list[dict[str, Any]] = field(default_factory=list)
    count: int = 0
    batch: list[ConsumerRecord] = field(default_factory=list)
    looked: int = 0
    """How many of the batch were looked at. Where a search stops in the middle of one, it goes on there."""

    def left(self) -> dict[int, int]:
        """The first offset of each partition that was fetched and not looked at."""
        first: dict[int, int] = {}
        for record in self.batch[self.looked :]:
            first.setdefault(record.partition, record.offset)
        return first


def told(
    positions: Mapping[int, int], tos: Mapping[int, int], state: str, why: str | None = None, **more: Any
) -> dict[str, Any]:
    """What is said of a search at one moment."""
    unfinished = any(positions[partition] < to for partition, to in tos.items())
    return {
        "hits": [],
        "found": 0,
        "scanned": "0",
        "bytes": "0",
        "rate": 0.0,
        "elapsed_s": 0.0,
        "positions": {str(partition): str(offset) for partition, offset in sorted(positions.items())},
        "unreadable": "0",
        "state": state,
        "why": why,
        "error": None,
        "next": cursor_text(positions) if state == "stopped" and unfinished else None,
        **more,
    }


async def search(keywords: Mapping[str, Any], order: SearchOrder, tell: Tell) -> None:
    """Tells what it finds until it ends; the last thing that it tells says why it ended and how to go on."""
    began, matcher = time.monotonic(), Matcher(order.where, order.contains)
    budget, found = Budget(order.bounds.seconds, order.bounds.bytes, order.bounds.records), _Found()
    positions = dict(order.froms)

    def report(state: str, why: str | None = None, error: dict[str, Any] | None = None) -> None:
        seconds = max(time.monotonic() - began, 1e-3)
        hits, found.hits = found.hits, []
        tell(
            told(
                {**positions, **found.left()},
                order.tos,
                state,
                why,
                hits=hits,
                found=found.count,
                scanned=str(budget.records),
                bytes=str(budget.bytes),
                rate=budget.records / seconds,
                elapsed_s=seconds,
                unreadable=str(matcher.unreadable),
                error=error,
            )
        )

    try:
        more = {"isolation_level": order.isolation}
        async with consumer_of(keywords, order.topic, list(order.froms), **more) as consumer:
            ranges = Ranges(consumer, order.topic, order.froms, order.tos)
            positions = ranges.positions
            why = await _look_through(ranges, order, matcher, budget, found, lambda: report("running"))
        report("stopped", why)
    except asyncio.CancelledError:
        report("stopped", "cancelled")
        raise
    except PenstockError as failure:
        report("stopped", "failed", declined(failure).told())
    except Exception as failure:
        log.exception("a search of %s broke off", order.topic)
        report("stopped", "failed", declined(failure).told())


async def _look_through(
    ranges: Ranges, order: SearchOrder, matcher: Matcher, budget: Budget, found: _Found, report: Callable[[], None]
) -> str:
    told_at, slices = time.monotonic(), Slices()
    while ranges.open:
        found.batch, found.looked = await ranges.poll(), 0
        for record in found.batch:
            budget.take(record)
            if matcher(record):
                found.hits.append(shown(record, order.hit_bytes))
                found.count += 1
            found.looked += 1
            if found.count >= order.bounds.hits:
                return "hits"
            if await slices.step() and budget.spent:
                return budget.spent
        if time.monotonic() - told_at >= TELL_EVERY_S:
            told_at = time.monotonic()
            report()
        if ranges.open and budget.spent:
            return budget.spent
    return "end"
