"""The consumer that applications hold. What runs behind it is in `engine.py`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack

from penstock.client.consumer.engine import Engine
from penstock.client.consumer.offsets import (
    EARLIEST,
    LATEST,
    GroupMetadata,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    as_committed,
)
from penstock.client.consumer.ownership import Callbacks, OnPartitions
from penstock.client.errors import BadSetting, ClientError, Closed
from penstock.client.settings import ConsumerSettings
from penstock.kernels import ConsumerRecord
from penstock.model.ids import TopicPartition
from penstock.model.ports import Clock

if TYPE_CHECKING:
    from penstock.client.keywords import ConsumerKeywords

POLL_TIMEOUT_MS = 1_000
ARROW_RECORDS = 100_000
INTERRUPTED_CLOSE_MS = 3_000
"""Whoever presses Ctrl-C does not want to wait for a broker that is away."""


class Consumer:
    """Reads topics, alone or in a group.

        async with Consumer("orders", bootstrap_servers="localhost:9092", group_id="g") as consumer:
            async for record in consumer:
                ...

    Settings are keywords: see `ConsumerSettings`. A consumer belongs to one event loop and is read by one task at a
    time. Where a partition is expected, any (topic, partition) pair will do.
    """

    def __init__(
        self,
        *topics: str,
        bootstrap_servers: str | Sequence[str] | None = None,
        clock: Clock | None = None,
        **settings: Unpack[ConsumerKeywords],
    ) -> None:
        """`topics` are subscribed to; without any, `subscribe` or `assign` says what to read."""
        self._settings = ConsumerSettings.of({"bootstrap_servers": bootstrap_servers, **settings})
        self._clock = clock
        self._running: Engine | None = None
        self._topics: frozenset[str] | None = None
        self._pattern: str | None = None
        self._manual = False
        self._assigned_early: list[TopicPartition] = []
        self._callbacks = Callbacks(None, None, None)
        self._stream: Any = None
        self._closed = False
        if topics:
            self.subscribe(topics)

    @property
    def settings(self) -> ConsumerSettings:
        """What it was made with, defaults included."""
        return self._settings

    async def __aenter__(self) -> Self:
        await self._start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Records that the application failed on are not done with: the next reader shall get them.
        interrupted = kind is not None and issubclass(kind, KeyboardInterrupt | asyncio.CancelledError)
        await self._close(done=kind is None, timeout_ms=INTERRUPTED_CLOSE_MS if interrupted else None)

    # -- what to read

    def subscribe(
        self,
        topics: Iterable[str] | str | None = None,
        *,
        pattern: str | None = None,
        on_assigned: OnPartitions | None = None,
        on_revoked: OnPartitions | None = None,
        on_lost: OnPartitions | None = None,
    ) -> None:
        """Reads these topics, or all whose whole name matches `pattern`; replaces an earlier subscription.

        The callbacks get lists of partitions when the group gives or takes some; they may be coroutine functions.
        `on_revoked` comes before the partitions are given up, `on_lost` when it is too late for anything.
        """
        names = frozenset([topics] if isinstance(topics, str) else topics or ())
        if bool(names) == (pattern is not None):
            raise BadSetting("subscribe to topics or to a pattern, one of them")
        self._check_open()
        if self._manual:
            raise ClientError("partitions were assigned by hand; unsubscribe() first")
        self._topics, self._pattern = (names, None) if pattern is None else (None, pattern)
        self._callbacks = Callbacks(on_assigned, on_revoked, on_lost)
        if self._running is not None:
            self._running.ownership.callbacks = self._callbacks
            self._running.membership.subscribe(self._topics, self._pattern)

    def assign(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Reads exactly these partitions, without a group's say; what was assigned before and still is, goes on."""
        self._check_open()
        if self._topics is not None or self._pattern is not None:
            raise ClientError("topics are subscribed to; unsubscribe() first")
        wanted = [TopicPartition(*tp) for tp in partitions]
        self._manual = True
        if self._running is None:
            self._assigned_early = wanted
        else:
            self._assign(self._running, wanted)

    @staticmethod
    def _assign(engine: Engine, wanted: list[TopicPartition]) -> None:
        removed = [tp for tp in engine.partitions if tp not in set(wanted)]
        engine.inbox.recall()
        if removed and engine.committer.automatic and (offsets := engine.committer.processed(removed)):
            engine.committer.begin(offsets, automatic=True)
        engine.drop(removed)
        engine.add(wanted)
        engine.resolve()

    async def unsubscribe(self) -> None:
        """Commits if that is automatic, gives all partitions up and leaves the group."""
        engine = await self._start()
        engine.committer.came_back()
        await engine.leave(timeout_ms=self._settings.default_api_timeout_ms)
        self._topics = self._pattern = None
        self._manual = False

    def subscription(self) -> frozenset[str]:
        """The topics that were subscribed to by name."""
        return self._topics or frozenset()

    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that are read now."""
        if self._running is None:
            return frozenset(self._assigned_early)
        return frozenset(self._running.partitions)

    # -- records

    async def poll(self, max_records: int | None = None, timeout_ms: float = POLL_TIMEOUT_MS) -> list[ConsumerRecord]:
        """Up to `max_records` (`max_poll_records` if None) as soon as there are any; none when the time is over.

        Cancelling it loses nothing.
        """
        engine = await self._start()
        return await engine.collect(engine.inbox.take, max_records or self._settings.max_poll_records, timeout_ms)

    async def poll_arrow(self, max_records: int = ARROW_RECORDS, timeout_ms: float = POLL_TIMEOUT_MS) -> list[Any]:
        """The same as a list of `pyarrow.RecordBatch`, one for each partition that has something."""
        engine = await self._start()
        return await engine.collect(engine.inbox.pour, max_records, timeout_ms)

    def __aiter__(self) -> AsyncIterator[ConsumerRecord]:
        # One generator for all loops: leaving a loop early must leave no generator to clean up, and no record in one.
        if self._stream is None or self._stream.ag_frame is None:
            self._stream = self._records()
        stream: AsyncIterator[ConsumerRecord] = self._stream
        return stream

    async def _records(self) -> AsyncIterator[ConsumerRecord]:
        limit = self._settings.max_poll_records
        while not self._closed:
            engine = await self._start()
            try:
                found = await engine.collect(engine.inbox.lend, limit, POLL_TIMEOUT_MS)
            except Closed:
                return
            for records in found:
                for record in records:
                    yield record

    # -- where to read

    def seek(self, partition: tuple[str, int], offset: int) -> None:
        """The next record comes from `offset`, or the first after it. What was fetched before is dropped."""
        if offset < 0:
            raise ValueError(f"{offset} is no offset; seek_to_start() and seek_to_end() go to the ends")
        engine = self._engine()
        engine.inbox.recall()
        engine.assigned(TopicPartition(*partition)).place(offset)
        engine.wake()

    def seek_to_start(self, *partitions: tuple[str, int]) -> None:
        """To the oldest record; of all assigned partitions when none is named."""
        self._seek_to(dict.fromkeys(self._named(partitions), EARLIEST))

    def seek_to_end(self, *partitions: tuple[str, int]) -> None:
        """Past the newest record; of all assigned partitions when none is named."""
        self._seek_to(dict.fromkeys(self._named(partitions), LATEST))

    async def seek_to_time(self, when: int | Mapping[tuple[str, int], int]) -> None:
        """To the first record at or after a time in milliseconds, or to the end where there is none that late."""
        await self._start()
        times = dict.fromkeys(self._named(()), when) if isinstance(when, int) else when
        wanted = {TopicPartition(*tp): time for tp, time in times.items()}
        if any(time < 0 for time in wanted.values()):
            raise ValueError("times are milliseconds since 1970")
        self._seek_to(wanted)
        for tp in wanted:
            await self.position(tp)

    def _seek_to(self, wanted: Mapping[TopicPartition, int]) -> None:
        engine = self._engine()
        engine.inbox.recall()
        for partition, timestamp in [(engine.assigned(tp), timestamp) for tp, timestamp in wanted.items()]:
            partition.reset(timestamp)
        engine.wake()

    async def position(self, partition: tuple[str, int]) -> int:
        """The offset of the next record; waits until it is known."""
        engine = await self._start()
        engine.inbox.recall()
        found = await engine.placed(TopicPartition(*partition), self._settings.default_api_timeout_ms)
        return found.position

    def pause(self, *partitions: tuple[str, int]) -> None:
        """Gives no records of these (of all) until `resume`; they stay assigned and what is buffered stays."""
        engine = self._engine()
        engine.inbox.recall()
        for tp in self._named(partitions):
            engine.assigned(tp).paused = True

    def resume(self, *partitions: tuple[str, int]) -> None:
        """Polls give records of these partitions again; of all that are paused if none is named."""
        engine = self._engine()
        for tp in self._named(partitions):
            partition = engine.assigned(tp)
            partition.paused = False
            engine.inbox.arrived(partition)
        engine.wake()

    def paused(self) -> frozenset[TopicPartition]:
        """The partitions that polls leave out for now."""
        partitions = self._running.partitions if self._running is not None else {}
        return frozenset(tp for tp, partition in partitions.items() if partition.paused)

    # -- committing

    async def commit(self, offsets: Mapping[tuple[str, int], OffsetAndMetadata | int] | None = None) -> None:
        """Commits how far records were given, or the given offsets (of the next record to read); waits for it."""
        self._needs_group()
        engine = await self._start()
        wanted = engine.committer.positions() if offsets is None else as_committed(offsets)
        await engine.committer.commit(wanted)

    def commit_nowait(
        self, offsets: Mapping[tuple[str, int], OffsetAndMetadata | int] | None = None
    ) -> asyncio.Task[None]:
        """Begins a commit; the task may be awaited, or forgotten: close() waits for it."""
        self._needs_group()
        engine = self._engine()
        return engine.committer.begin(engine.committer.positions() if offsets is None else as_committed(offsets))

    def positions(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """How far records were given, of every partition where that is known: what `commit()` would commit."""
        return self._engine().committer.positions()

    def group_metadata(self) -> GroupMetadata:
        """This consumer's place in its group, for `Producer.send_offsets`; CommitFailed when it has none right now."""
        self._needs_group()
        return self._engine().membership.metadata()

    async def committed(self, *partitions: tuple[str, int]) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group has committed; None where it has nothing. Of all assigned when none is named."""
        self._needs_group()
        engine = await self._start()
        wanted = self._named(partitions)
        found = await engine.membership.committed(wanted)
        return {tp: found.get(tp) for tp in wanted}

    def _needs_group(self) -> None:
        if self._settings.group_id is None:
            raise BadSetting("commits need a group_id")

    # -- looking around

    async def beginning_offsets(self, *partitions: tuple[str, int]) -> dict[TopicPartition, int]:
        """The oldest offset of partitions, assigned or not; of all assigned when none is named."""
        return await self._offsets_at(EARLIEST, partitions)

    async def end_offsets(self, *partitions: tuple[str, int]) -> dict[TopicPartition, int]:
        """The offset after the newest record that this consumer may see."""
        return await self._offsets_at(LATEST, partitions)

    async def partitions_for(self, topic: str) -> list[int]:
        """The partitions of a topic; UnknownTopic after `default_api_timeout_ms`."""
        engine = await self._start()
        found = await engine.view.topic(topic, timeout_ms=self._settings.default_api_timeout_ms)
        return [partition.index for partition in found.partitions]

    async def offsets_for_times(
        self, times: Mapping[tuple[str, int], int]
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record at or after each time; None where there is none that late."""
        engine = await self._start()
        wanted = {TopicPartition(*tp): time for tp, time in times.items()}
        if any(time < 0 for time in wanted.values()):
            raise ValueError("times are milliseconds since 1970")
        found = await engine.lookup.find(wanted, self._settings.default_api_timeout_ms)
        return {tp: found[tp] if found[tp].offset >= 0 else None for tp in wanted}

    async def lag(self) -> dict[TopicPartition, int]:
        """How many records each assigned partition is behind, as the last fetch told, or as its leader is asked."""
        engine = await self._start()
        engine.inbox.recall()
        found = {}
        for tp in sorted(engine.partitions):
            partition = await engine.placed(tp, self._settings.default_api_timeout_ms)
            known = engine.lag_of(partition)
            if known is None:
                end = (await self._offsets_at(LATEST, [tp]))[tp]
                known = max(0, end - partition.position)
            found[tp] = known
        return found

    def metrics(self) -> dict[str, float]:
        """Counters since the start, and what is assigned, buffered and behind right now."""
        return {} if self._running is None else self._running.measures()

    async def _offsets_at(self, timestamp: int, partitions: Iterable[tuple[str, int]]) -> dict[TopicPartition, int]:
        engine = await self._start()
        wanted = dict.fromkeys(self._named(partitions), timestamp)
        found = await engine.lookup.find(wanted, self._settings.default_api_timeout_ms)
        return {tp: found[tp].offset for tp in wanted}

    # -- the end

    async def close(self, *, timeout_ms: float | None = None) -> None:
        """Commits what was given if that is automatic, leaves the group and ends everything. Closing twice is fine."""
        await self._close(done=True, timeout_ms=timeout_ms)

    async def _close(self, *, done: bool, timeout_ms: float | None) -> None:
        engine, closing, self._closed = self._running, self._closed, True
        if engine is None or closing:
            return
        if done:
            engine.committer.came_back()
        else:
            engine.committer.settle_lent()
        limit_ms = self._settings.default_api_timeout_ms if timeout_ms is None else timeout_ms
        try:
            # A callback may still commit and look around while partitions are given up.
            await engine.close(timeout_ms=limit_ms)
        finally:
            self._running = None
        stream, self._stream = self._stream, None
        if stream is not None and not stream.ag_running:
            await stream.aclose()

    # -- inside

    async def _start(self) -> Engine:
        engine = self._running
        if engine is None:
            self._check_open()
            engine = self._running = Engine(self._settings, self._clock)
            engine.ownership.callbacks = self._callbacks
            if self._topics is not None or self._pattern is not None:
                engine.membership.subscribe(self._topics, self._pattern)
            engine.start()
            self._assign(engine, self._assigned_early)
        if not engine.joined and (self._topics is not None or self._pattern is not None):
            await engine.join()
        return engine

    def _engine(self) -> Engine:
        self._check_open()
        if self._running is None:
            raise ClientError("the consumer has not started: enter `async with`, or poll first")
        return self._running

    def _check_open(self) -> None:
        if self._closed:
            raise Closed("the consumer is closed")

    def _named(self, partitions: Iterable[tuple[str, int]]) -> list[TopicPartition]:
        return [TopicPartition(*tp) for tp in partitions] or sorted(self.assignment())
