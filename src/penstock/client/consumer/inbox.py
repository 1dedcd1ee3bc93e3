"""The line of partitions that have something to give, and what was given from it.

Partitions are served in turn: whoever gave records goes to the end of the line. What `async for` holds is lent: the
part that the loop body has not seen can be called back at any time, so that seeks, pauses and rebalances find every
record either seen or in its place.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from operator import length_hint
from typing import Any, Final

from penstock.client.arrow import record_batch
from penstock.client.consumer.metrics import ConsumerMetrics
from penstock.client.consumer.partition import AssignedPartition, Run
from penstock.kernels import ColumnSink, ConsumerRecord

# Larger columns fall out of the caches and gain nothing.
ARROW_BATCH_BYTES_MAX: Final = 16 << 20


class Inbox:
    """Hands out what has arrived. One reader at a time."""

    def __init__(self, metrics: ConsumerMetrics) -> None:
        self._metrics = metrics
        self._line: deque[AssignedPartition] = deque()
        self._waiting: set[asyncio.Future[None]] = set()
        self._lent: list[ConsumerRecord] = []
        self._lent_rest: Iterator[ConsumerRecord] = iter(())
        self._lent_runs: list[Run] = []
        self.touched: dict[AssignedPartition, None] = {}
        """Who gave records that the application may still be working on."""

    # -- arriving

    def arrived(self, partition: AssignedPartition) -> None:
        """A partition may have something now."""
        if not partition.queued and partition.has_something and partition.may_give:
            partition.queued = True
            self._line.append(partition)
        self.stir()

    def stir(self) -> None:
        """Whoever waits shall look again."""
        waiting, self._waiting = self._waiting, set()
        for future in waiting:
            if not future.done():
                future.set_result(None)

    async def wait(self, timeout_s: float) -> None:
        """Until something stirs or the time is over."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        self._waiting.add(future)
        timer = loop.call_later(timeout_s, _wake, future)
        try:
            await future
        finally:
            timer.cancel()
            self._waiting.discard(future)

    # -- giving

    def take(self, limit: int) -> list[ConsumerRecord]:
        """Up to `limit` records; raises the failure of a partition when its turn comes."""
        records: list[ConsumerRecord] = []
        self._take(limit, records)
        return records

    def lend(self, limit: int) -> list[Iterator[ConsumerRecord]]:
        """Like `take`, as one iterator or none; what it has not given yet can be called back."""
        records: list[ConsumerRecord] = []
        self._lent = records
        self._lent_runs = self._take(limit, records)
        self._lent_rest = iter(records)
        return [self._lent_rest] if records else []

    def pour(self, limit: int) -> list[Any]:
        """Up to `limit` records as `pyarrow.RecordBatch`, one for each partition whose turn it is."""
        given: list[Any] = []
        left = limit
        for _ in range(len(self._line)):
            partition = self._turn(given)
            if partition is None or left <= 0:
                break
            sink = ColumnSink(ARROW_BATCH_BYTES_MAX, partition.buffered_bytes)
            count = partition.pour(left, sink)
            if count:
                left -= count
                given.append(record_batch(sink, *partition.tp))
                self.touched[partition] = None
            self._turn_over()
        self._metrics.records += limit - left
        return given

    def _take(self, limit: int, records: list[ConsumerRecord]) -> list[Run]:
        runs: list[Run] = []
        for _ in range(len(self._line)):
            partition = self._turn(records)
            if partition is None or len(records) >= limit:
                break
            taken = partition.take(limit - len(records), records)
            if taken:
                runs += taken
                self.touched[partition] = None
            self._turn_over()
        self._metrics.records += len(records)
        return runs

    def _turn(self, given: list[Any]) -> AssignedPartition | None:
        """The first of the line. A failure is raised only when nothing was given before it, so nothing is lost."""
        line = self._line
        while line:
            partition = line[0]
            if not partition.may_give:
                line.popleft().queued = False
            elif partition.failure is None or partition.batches:
                return partition
            elif given:
                return None
            else:
                line.rotate(-1)
                raise partition.failure
        return None

    def _turn_over(self) -> None:
        partition = self._line.popleft()
        if partition.has_something:
            self._line.append(partition)
        else:
            partition.queued = False

    # -- taking back

    def recall(self) -> None:
        """Puts back what was lent and not yet seen."""
        lent, runs = self._lent, self._lent_runs
        seen = len(lent) - length_hint(self._lent_rest)
        if seen == len(lent):
            return
        self._metrics.records -= len(lent) - seen
        del lent[seen:]
        # From the end to the first run that was seen in part.
        end = sum(run.taken for run in runs)
        while runs:
            run = runs[-1]
            begin = end - run.taken
            if end <= seen:
                break
            given = max(0, seen - begin)
            run.partition.put_back(run, given)
            self.arrived(run.partition)
            end = begin
            runs.pop()
            if given:
                break

    def last_seen(self) -> ConsumerRecord | None:
        """The record that the body of an `async for` is working on."""
        seen = len(self._lent) - length_hint(self._lent_rest)
        return self._lent[seen - 1] if seen else None

    def forget_lent(self) -> None:
        """The application came back for more: what it was lent is done with."""
        self._lent = []
        self._lent_rest = iter(())
        self._lent_runs = []


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
