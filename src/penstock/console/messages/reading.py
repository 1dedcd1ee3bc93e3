"""Exact ranges of offsets through a consumer that is in no group and commits nothing."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from penstock.client.consumer import Consumer, ConsumerRecord
from penstock.operations.records.matching import size_of

POLL_MS: Final = 250
FETCH_BYTES: Final = 4 << 20
PARTITION_BYTES: Final = 1 << 20
POLLED: Final = 500
API_MS: Final = 10_000


class Budget:
    """How much a read may take; `spent` says which bound was reached, if any."""

    def __init__(self, seconds: float, size_bytes: int, records: int) -> None:
        self._until, self._bytes, self._records = time.monotonic() + seconds, size_bytes, records
        self.bytes = self.records = 0

    def take(self, record: ConsumerRecord) -> None:
        self.bytes += size_of(record)
        self.records += 1

    @property
    def spent(self) -> str | None:
        if self.bytes >= self._bytes:
            return "bytes"
        if self.records >= self._records:
            return "records"
        return "time" if time.monotonic() >= self._until else None


@asynccontextmanager
async def consumer_of(
    keywords: Mapping[str, Any], topic: str, partitions: list[int], **more: Any
) -> AsyncIterator[Consumer]:
    """A consumer of partitions, under the settings of whoever looks."""
    own = {
        "group_id": None,
        "auto_commit": False,
        "create_topics": False,
        "fetch_max_bytes": FETCH_BYTES,
        "max_partition_fetch_bytes": PARTITION_BYTES,
        "default_api_timeout_ms": API_MS,
        **more,
    }
    consumer = Consumer(**{**keywords, **own})
    consumer.assign([(topic, partition) for partition in partitions])
    async with consumer:
        yield consumer


class Ranges:
    """Reads [from, to) of each partition; knows where each stands and when all were read."""

    def __init__(self, consumer: Consumer, topic: str, froms: Mapping[int, int], tos: Mapping[int, int]) -> None:
        self._consumer, self._topic = consumer, topic
        self.tos = dict(tos)
        self.positions = {partition: froms[partition] for partition in tos}
        self.open = {partition for partition in tos if froms[partition] < tos[partition]}
        for partition in self.open:
            consumer.seek((topic, partition), froms[partition])
        others = [each for each in consumer.assignment() if each.partition not in self.open]
        if others:
            consumer.pause(*others)
        if self.open:
            consumer.resume(*[(topic, partition) for partition in self.open])

    async def poll(self) -> list[ConsumerRecord]:
        """Some records of the ranges, or none for a moment; those behind a range's end are passed over."""
        polled = await self._consumer.poll(POLLED, POLL_MS)
        records = []
        for record in polled:
            if record.partition not in self.open:
                continue
            if record.offset < self.tos[record.partition]:
                records.append(record)
            self.positions[record.partition] = min(record.offset + 1, self.tos[record.partition])
        await self._look_for_ends(polled)
        return records

    def leave(self, partition: int) -> None:
        """Enough of this one."""
        self._close({partition})

    async def _look_for_ends(self, polled: list[ConsumerRecord]) -> None:
        """A range may end with offsets that hold no record: what was compacted, or the end of a transaction."""
        if not polled:
            for partition in list(self.open):
                position = await self._consumer.position((self._topic, partition))
                self.positions[partition] = max(self.positions[partition], min(position, self.tos[partition]))
        self._close({each for each in self.open if self.positions[each] >= self.tos[each]})

    def _close(self, partitions: set[int]) -> None:
        if partitions:
            self.open -= partitions
            self._consumer.pause(*[(self._topic, partition) for partition in partitions])


async def read_ranges(ranges: Ranges, budget: Budget, take: Callable[[ConsumerRecord], None]) -> str | None:
    """Gives every record of the ranges to `take`, until all are read or the budget is spent: then, on what."""
    while ranges.open:
        for record in await ranges.poll():
            budget.take(record)
            take(record)
        if budget.spent:
            return budget.spent
    return None
