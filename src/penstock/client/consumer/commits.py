"""Committing: what counts as done, and the automatic commit of it.

Records that the application still works on are not done: an automatic commit covers only what was given before it
came back for more. An explicit `commit()` covers everything that was given.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TypeAlias

from penstock.client.consumer.inbox import Inbox
from penstock.client.consumer.metrics import ConsumerMetrics
from penstock.client.consumer.offsets import OffsetAndMetadata
from penstock.client.consumer.ownership import Membership
from penstock.client.consumer.partition import AssignedPartition
from penstock.client.errors import ClientError
from penstock.model.ids import TopicPartition

Offsets: TypeAlias = Mapping[TopicPartition, OffsetAndMetadata]


class Committer:
    """Knows how far the application has come, and tells the group."""

    def __init__(
        self,
        partitions: Mapping[TopicPartition, AssignedPartition],
        inbox: Inbox,
        membership: Callable[[], Membership],
        metrics: ConsumerMetrics,
        *,
        interval_ms: float | None,
    ) -> None:
        """`interval_ms` is None when nothing is committed automatically."""
        self._partitions, self._inbox, self._membership, self._metrics = partitions, inbox, membership, metrics
        self._interval_ms = interval_ms
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._order = asyncio.Lock()

    @property
    def automatic(self) -> bool:
        return self._interval_ms is not None

    # -- how far the application is

    def came_back(self) -> None:
        """Everything that was given is done with."""
        self._inbox.recall()
        self._inbox.forget_lent()
        self._settle()

    def settle_lent(self) -> None:
        """In the middle of an `async for`: all but the record in the loop's body is done with."""
        self._inbox.recall()
        seen = self._inbox.last_seen()
        if seen is None:
            return
        self._settle()
        partition = self._partitions.get(TopicPartition(seen.topic, seen.partition))
        if partition is not None:
            partition.processed = min(partition.processed, seen.offset)
            self._inbox.touched[partition] = None

    def _settle(self) -> None:
        touched = self._inbox.touched
        for partition in touched:
            partition.processed, partition.processed_epoch = partition.position, partition.position_epoch
        touched.clear()

    def positions(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """What an explicit commit covers."""
        self._inbox.recall()
        return {
            tp: OffsetAndMetadata(partition.position, "", partition.position_epoch)
            for tp, partition in self._partitions.items()
            if partition.position >= 0
        }

    def processed(self, among: Iterable[TopicPartition] | None = None) -> dict[TopicPartition, OffsetAndMetadata]:
        """What an automatic commit covers, without what was committed already."""
        wanted = self._partitions if among is None else among
        return {
            tp: OffsetAndMetadata(partition.processed, "", partition.processed_epoch)
            for tp in wanted
            if (partition := self._partitions.get(tp)) is not None
            and partition.processed >= 0
            and partition.processed != partition.committed
        }

    # -- telling the group

    async def commit(self, offsets: Offsets, *, automatic: bool = False) -> None:
        """Commits in the order of calls, so that an earlier progress never lands on a later one."""
        if not offsets:
            return
        async with self._order:
            try:
                await self._membership().commit(offsets, automatic=automatic)
            except ClientError:
                self._metrics.commit_failures += 1
                raise
        self._metrics.commits += 1
        for tp, committed in offsets.items():
            partition = self._partitions.get(tp)
            if partition is not None:
                partition.committed = committed.offset

    async def commit_processed(self, among: Collection[TopicPartition] | None = None) -> None:
        """The automatic commit; a failure costs only that records are read again."""
        if not self.automatic:
            return
        try:
            await self.commit(self.processed(among), automatic=True)
        except ClientError:
            return

    def begin(self, offsets: Offsets, *, automatic: bool = False) -> asyncio.Task[None]:
        """A commit that nobody has to wait for; it is awaited at close."""
        task = asyncio.get_running_loop().create_task(self.commit(offsets, automatic=automatic))
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # it was counted; whoever wants to know awaits it

    # -- the clock

    def start(self) -> None:
        if self._interval_ms is not None and self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(1.0, self._interval_ms) / 1000, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self.settle_lent()
        offsets = self.processed()
        if offsets and not self._tasks:
            self.begin(offsets, automatic=True)
        self.start()

    async def close(self) -> None:
        """Waits for commits under way; those that fail have been counted."""
        self._interval_ms, timer, self._timer = None, self._timer, None
        if timer is not None:
            timer.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
