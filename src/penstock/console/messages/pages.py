"""One page of records, forwards from somewhere or backwards to it, over all partitions of a topic."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from penstock.client.consumer import Consumer, ConsumerRecord
from penstock.console.messages.merging import first_of, last_of
from penstock.console.messages.places import LogEnds
from penstock.console.messages.reading import Budget, Ranges, consumer_of, read_ranges

SECONDS: Final = 8.0
BYTES_MAX: Final = 32 << 20
"""What one page may hold while it is put together. Sixteen at once are half a gigabyte at the very worst."""
RECORDS_MAX: Final = 200_000
WAITED_BYTES: Final = 64 << 10
ROUNDS_MAX: Final = 6
WIDEN: Final = 8
"""Where offsets hold no records a page backwards looks so many times further at each round."""
NARROW: Final = 16
"""Where records are very large it is tried again with so many times fewer."""


@dataclass(frozen=True, slots=True)
class PageOfRecords:
    """Records in the order of the page; where it began and ended in each partition; why it has no more."""

    records: list[ConsumerRecord]
    first: dict[int, int]
    next: dict[int, int]
    reached: str
    """`limit`: there is more. `end`: there is not. `time`, `bytes`, `records`: it took too much to go on."""


async def page_forwards(
    keywords: Mapping[str, Any], topic: str, positions: Mapping[int, int], ends: LogEnds, limit: int
) -> PageOfRecords:
    """The first records from positions on."""
    found: dict[int, list[ConsumerRecord]] = {partition: [] for partition in positions}
    async with consumer_of(keywords, topic, list(positions)) as consumer:
        ranges = Ranges(consumer, topic, positions, {each: ends.ends[each] for each in positions})

        def take(record: ConsumerRecord) -> None:
            mine = found[record.partition]
            if len(mine) < limit:
                mine.append(record)
            if len(mine) >= limit and record.partition in ranges.open:
                ranges.leave(record.partition)

        spent = await read_ranges(ranges, Budget(SECONDS, BYTES_MAX, RECORDS_MAX), take)
    page = first_of(found, limit)
    given = dict.fromkeys(positions, 0)
    for record in page:
        given[record.partition] += 1
    after = {
        partition: mine[given[partition]].offset
        if given[partition] < len(mine)
        else (mine[-1].offset + 1 if len(mine) >= limit else ranges.positions[partition])
        for partition, mine in found.items()
    }
    more = any(after[partition] < ends.ends[partition] for partition in after)
    return PageOfRecords(page, dict(positions), after, spent or ("limit" if more else "end"))


async def something_comes(keywords: Mapping[str, Any], topic: str, positions: Mapping[int, int], wait_s: float) -> bool:
    """Whether there is a record behind positions, or one comes within a time: brokers hold the question back."""
    little = {"fetch_max_bytes": WAITED_BYTES, "max_partition_fetch_bytes": WAITED_BYTES, "fetch_max_wait_ms": 1_000}
    async with consumer_of(keywords, topic, list(positions), **little) as consumer:
        for partition, offset in positions.items():
            consumer.seek((topic, partition), offset)
        return bool(await consumer.poll(1, wait_s * 1_000))


async def page_backwards(
    keywords: Mapping[str, Any], topic: str, positions: Mapping[int, int], ends: LogEnds, limit: int
) -> PageOfRecords:
    """The last records before positions; fewer of them where they are very large."""
    found = _Backwards(topic, positions, ends, limit)
    async with consumer_of(keywords, topic, list(positions)) as consumer:
        spent = await found.read(consumer)
        while spent == "bytes" and found.limit > 1:
            found = _Backwards(topic, positions, ends, max(found.limit // NARROW, 1))
            spent = await found.read(consumer)
    return found.page(spent)


class _Backwards:
    """Reads the ranges before positions, and further back where they turn out to hold too few records."""

    def __init__(self, topic: str, positions: Mapping[int, int], ends: LogEnds, limit: int) -> None:
        self._topic, self._positions, self._starts, self.limit = topic, positions, ends.starts, limit
        self._froms = dict(positions)
        self._found: dict[int, deque[ConsumerRecord]] = {}

    async def read(self, consumer: Consumer) -> str | None:
        """Which bound was reached, if any: then of some partitions nothing is known."""
        budget, step, wanted = Budget(SECONDS, BYTES_MAX, RECORDS_MAX), self.limit, dict(self._positions)
        for _ in range(ROUNDS_MAX):
            for partition, to in wanted.items():
                self._found[partition] = deque(maxlen=self.limit)
                self._froms[partition] = max(to - step, self._starts[partition])
            ranges = Ranges(consumer, self._topic, self._froms, wanted)
            spent = await read_ranges(ranges, budget, lambda record: self._found[record.partition].append(record))
            if spent:
                for partition in ranges.open:  # what was read of it is not what comes right before its position
                    self._found[partition].clear()
                    self._froms[partition] = self._positions[partition]
                return spent
            wanted = {each: to for each, to in wanted.items() if self._too_few(each)}
            if not wanted:
                break
            step *= WIDEN
        return None

    def page(self, spent: str | None) -> PageOfRecords:
        lists = {partition: list(records) for partition, records in self._found.items()}
        page = last_of(lists, self.limit)
        first = dict(self._froms)
        for partition, mine in lists.items():
            shown = [record.offset for record in page if record.partition == partition]
            if len(shown) < len(mine):  # what was read and is not shown is still before us
                first[partition] = shown[0] if shown else self._positions[partition]
            elif len(mine) >= self.limit:
                first[partition] = mine[0].offset
        more = any(first[partition] > self._starts[partition] for partition in first)
        return PageOfRecords(page, first, dict(self._positions), spent or ("limit" if more else "end"))

    def _too_few(self, partition: int) -> bool:
        return len(self._found[partition]) < self.limit and self._froms[partition] > self._starts[partition]
