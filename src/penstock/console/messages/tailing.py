"""The newest records as they come, no more than somebody can read, and always how many were left out.

A window is a fifth of a second. Of what comes in it a fair sample is told; when more comes than can be looked at, the
tail goes to the end of the log and counts what it passed over. So a topic of any rate costs the broker and this process
no more than a window's worth of records.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from penstock.client.consumer import Consumer, ConsumerRecord
from penstock.client.errors import NotReachable, TimedOutWaiting
from penstock.console.failures import declined
from penstock.console.messages.reading import consumer_of
from penstock.console.messages.showing import shown
from penstock.model.errors import PenstockError
from penstock.operations.records.matching import Matcher

WINDOW_S: Final = 0.2
SHOWN_A_WINDOW: Final = 40
LOOKED_A_WINDOW: Final = 2_000
BYTES_A_WINDOW: Final = 2 << 20
FETCH_BYTES: Final = 256 << 10
SHOWN_BYTES: Final = 4 << 10
QUIET_TELL_S: Final = 5.0
"""A tail says that it lives also where nothing comes: one that says nothing for much longer does not."""
ASKED_MS: Final = 5_000
UNANSWERED_MAX: Final = 3
"""So often in a row nobody may answer where the log ends: what a broker led that hangs gets other leaders meanwhile."""
log = logging.getLogger(__name__)

Tell = Callable[[dict[str, Any]], None]


@dataclass(frozen=True, slots=True)
class TailOrder:
    """What to follow."""

    topic: str
    partitions: tuple[int, ...]
    matcher: Matcher
    isolation: str = "read_uncommitted"


class Sample:
    """A fair sample of what came in a window: each record has the same chance to be in it. Algorithm R."""

    def __init__(self, most: int, chance: random.Random) -> None:
        self._most, self._chance = most, chance
        self.kept: list[ConsumerRecord] = []
        self.seen = 0

    def put(self, record: ConsumerRecord) -> None:
        self.seen += 1
        if len(self.kept) < self._most:
            self.kept.append(record)
            return
        at = self._chance.randrange(self.seen)
        if at < self._most:
            self.kept[at] = record


async def tail(keywords: Mapping[str, Any], order: TailOrder, tell: Tell) -> None:
    """Tells what comes until it is cancelled, or cannot go on, which it tells too."""
    follower = _Follower(order, tell)
    try:
        more = {
            "isolation_level": order.isolation,
            "fetch_max_bytes": FETCH_BYTES,
            "fetch_max_wait_ms": 200,
            "default_api_timeout_ms": ASKED_MS,
        }
        async with consumer_of(keywords, order.topic, list(order.partitions), **more) as consumer:
            await follower.begin(consumer)
            while True:
                await follower.window(consumer)
    except PenstockError as failure:
        follower.tell([], 0.0, error=declined(failure).told())
    except Exception as failure:
        # Whatever it was, somebody looks at this and takes it for live.
        log.exception("a tail of %s broke off", order.topic)
        follower.tell([], 0.0, error=declined(failure).told())


class _Follower:
    """Counts of one tail."""

    def __init__(self, order: TailOrder, tell: Tell) -> None:
        self._order, self._tell = order, tell
        self._chance = random.Random()
        self._positions: dict[int, int] = {}
        self._seen = self._shown = self._skipped = 0
        self._told_at, self._quiet = time.monotonic(), True
        self._unanswered = 0

    async def begin(self, consumer: Consumer) -> None:
        consumer.seek_to_end()
        await self._look_where(consumer)
        self.tell([], 0.0)

    async def window(self, consumer: Consumer) -> None:
        """One window: look at what comes until its time is over or there is too much of it."""
        began = time.monotonic()
        sample, looked, size = Sample(SHOWN_A_WINDOW, self._chance), 0, 0
        passed = 0
        while (left_s := began + WINDOW_S - time.monotonic()) > 0:
            if looked >= LOOKED_A_WINDOW or size >= BYTES_A_WINDOW:
                await asyncio.sleep(left_s)
                passed = await self._go_to_the_end(consumer)
                break
            records = await consumer.poll(500, left_s * 1_000)
            for record in records:
                size += len(record.value or b"")
                self._positions[record.partition] = record.offset + 1
                if self._order.matcher(record):
                    sample.put(record)
            looked += len(records)
        self._seen += looked + passed
        self._shown += len(sample.kept)
        self._skipped += passed + sample.seen - len(sample.kept)
        quiet, self._quiet = self._quiet, not (looked or passed)
        overdue = time.monotonic() - self._told_at >= QUIET_TELL_S
        if self._quiet and overdue:
            await self._still_there(consumer)
        if not self._quiet or not quiet or overdue:
            seconds = max(time.monotonic() - began, 1e-3)
            self.tell(sorted(sample.kept, key=_order), (looked + passed) / seconds)

    async def _still_there(self, consumer: Consumer) -> None:
        """A fetch of what is not there any more, or whose broker is away, waits without a word."""
        try:
            await consumer.end_offsets()
            self._unanswered = 0
        except (NotReachable, TimedOutWaiting) as failure:
            self._unanswered += 1
            if not failure.retriable or self._unanswered >= UNANSWERED_MAX:
                raise

    async def _go_to_the_end(self, consumer: Consumer) -> int:
        """How many offsets were passed over."""
        before = dict(self._positions)
        consumer.seek_to_end()
        await self._look_where(consumer)
        return sum(max(self._positions[each] - before.get(each, 0), 0) for each in self._positions)

    async def _look_where(self, consumer: Consumer) -> None:
        for partition in self._order.partitions:
            self._positions[partition] = await consumer.position((self._order.topic, partition))

    def tell(self, records: list[ConsumerRecord], per_s: float, error: dict[str, Any] | None = None) -> None:
        self._told_at = time.monotonic()
        self._tell(
            {
                "records": [shown(record, SHOWN_BYTES) for record in records],
                "seen": str(self._seen),
                "shown": str(self._shown),
                "skipped": str(self._skipped),
                "per_s": per_s,
                "positions": {str(partition): str(offset) for partition, offset in sorted(self._positions.items())},
                "error": error,
            }
        )


def _order(record: ConsumerRecord) -> tuple[int, int, int]:
    return record.timestamp, record.partition, record.offset
