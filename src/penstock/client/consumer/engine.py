"""What runs behind a consumer: the parts of this room, wired, from the first await to the close."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, TypeVar

from penstock.client.clock import SYSTEM_CLOCK
from penstock.client.cluster_view import ClusterView
from penstock.client.consumer.alone import Alone
from penstock.client.consumer.commits import Committer
from penstock.client.consumer.fetching import Fetcher
from penstock.client.consumer.group.session import GroupSession
from penstock.client.consumer.inbox import Inbox
from penstock.client.consumer.lookups import OffsetLookup
from penstock.client.consumer.metrics import ConsumerMetrics
from penstock.client.consumer.navigation import Navigator
from penstock.client.consumer.offsets import READ_COMMITTED, READ_UNCOMMITTED, OffsetAndMetadata
from penstock.client.consumer.ownership import Membership, Ownership
from penstock.client.consumer.partition import AssignedPartition, Phase
from penstock.client.consumer.reset import parse_reset
from penstock.client.errors import ClientError, Closed, TimedOutWaiting
from penstock.client.retry import Backoff
from penstock.client.settings import ConsumerSettings
from penstock.kernels import unfilled
from penstock.model.ids import TopicPartition
from penstock.model.ports import Clock

T = TypeVar("T")

# An application that finds records at every poll would never let the loop run: heartbeats and sockets want a turn.
_TURN_S: Final = 0.005
_LAST_TURNS: Final = 5
_GOODBYE_SHARE: Final = 0.25
"""Of the time for closing, what is kept for leaving the group."""
_ENDING_S: Final = 0.1
"""How long cancelled work may take to end when the time for closing is over."""

# glibc gives freed memory back to the kernel at once and fetches it anew, page by page, until it has seen a block of
# this size come and go (its own bound is 32 MB). Replies, records and columns come and go all the time.
_LARGEST_RECYCLED_BYTES: Final = (32 << 20) - (8 << 10)


class Engine:
    """Everything of one consumer that lives on a loop."""

    def __init__(self, settings: ConsumerSettings, clock: Clock | None = None) -> None:
        self.settings = settings
        self.clock = clock or SYSTEM_CLOCK
        self.partitions: dict[TopicPartition, AssignedPartition] = {}
        self.metrics = ConsumerMetrics()
        self.view = ClusterView(
            settings.bootstrap_servers,
            timeout_ms=settings.request_timeout_ms,
            client_id=settings.client_id,
            metadata_max_age_ms=settings.metadata_max_age_ms,
            backoff_ms=settings.retry_backoff_ms,
            backoff_max_ms=settings.retry_backoff_max_ms,
            clock=self.clock,
            security=settings.dial_security(),
        )
        backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms)
        committed_only = settings.isolation_level == "read_committed"
        self.inbox = Inbox(self.metrics)
        self.lookup = OffsetLookup(
            self.view, isolation=READ_COMMITTED if committed_only else READ_UNCOMMITTED, backoff=backoff
        )
        self.navigator = Navigator(
            self.partitions,
            self.lookup,
            policy=parse_reset(settings.offset_reset),
            committed=None if settings.group_id is None else self._committed,
            settled=self._settled,
            backoff=backoff,
            clock=self.clock,
        )
        self.fetcher = Fetcher(
            self.view,
            settings,
            self.partitions,
            arrived=self.inbox.arrived,
            out_of_range=self.navigator.out_of_range,
            unsettled=self.navigator.wake,
            metrics=self.metrics,
            backoff=backoff,
            clock=self.clock,
        )
        self.ownership = Ownership(self, patience_ms=settings.max_poll_interval_ms)
        self.membership = self._new_membership()
        automatic = settings.auto_commit and settings.group_id is not None
        self.committer = Committer(
            self.partitions,
            self.inbox,
            lambda: self.membership,
            self.metrics,
            interval_ms=settings.auto_commit_interval_ms if automatic else None,
        )
        self.joined = False
        self.closed = False
        self._started = False
        self._ran_at = 0.0

    # -- the life

    def start(self) -> None:
        """Needs a running loop. Starting twice is fine."""
        if self._started:
            return
        self._started = True
        unfilled(_LARGEST_RECYCLED_BYTES)  # given back as soon as it is made, and never touched
        self._ran_at = asyncio.get_running_loop().time()
        self.view.when_changed(self.fetcher.wake)
        self.committer.start()
        self.resolve()

    async def join(self) -> None:
        """Begins the membership, once a subscription was made."""
        if not self.joined:
            self.joined = True
            await self.membership.start()

    async def leave(self, *, timeout_ms: float) -> None:
        """Gives everything up, in good order, and leaves the group."""
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout_ms / 1000
        self.ownership.back()
        if self.joined:
            try:
                # The last commit and the callback may take most of the time; a little is left for saying goodbye.
                async with asyncio.timeout_at(until - timeout_ms * _GOODBYE_SHARE / 1000):
                    await self.ownership.revoke(list(self.partitions), lost=False)
            except TimeoutError:
                pass
            await self.membership.leave(timeout_ms=max(0.0, (until - loop.time()) * 1000))
            self.joined = False
            self.membership = self._new_membership()
        elif self.committer.automatic:
            await self.committer.commit_processed()
        self.drop(list(self.partitions))

    async def close(self, *, timeout_ms: float) -> None:
        """Everything ends here, also when parts of it fail: no task and no socket stays."""
        self.closed = True
        self.inbox.stir()
        until = asyncio.get_running_loop().time() + timeout_ms / 1000
        try:
            await self.leave(timeout_ms=timeout_ms)
            async with asyncio.timeout_at(until):
                await self.committer.close()
        except (ClientError, TimeoutError):
            pass
        finally:
            # Whoever is cancelled while closing must still leave nothing behind: first what needs no waiting.
            self.navigator.cancel()
            self.fetcher.cancel()
            try:
                if self.joined:
                    await self.membership.leave(timeout_ms=0)
                await self.navigator.close()
                async with asyncio.timeout_at(max(until, asyncio.get_running_loop().time() + _ENDING_S)):
                    await self.fetcher.close()
            except TimeoutError:
                pass  # brokers forget the fetch sessions by themselves
            finally:
                self.view.close()
        # What the view had under way is cancelled by now and ends in its own turns of the loop.
        for _ in range(_LAST_TURNS):
            await asyncio.sleep(0)

    def _new_membership(self) -> Membership:
        made: Membership
        if self.settings.group_id is None:
            made = Alone(self.view, self.settings, self.ownership)
        else:
            made = GroupSession(self.view, self.settings, self.ownership, clock=self.clock)
        made.on_failure = lambda _: self.inbox.stir()
        return made

    # -- partitions come and go (what `Ownership` asks for)

    def add(self, partitions: Collection[TopicPartition]) -> list[TopicPartition]:
        # A group gives a set. Brokers are asked in this order, and a seed of the simulator must tell the same twice.
        added = sorted(TopicPartition(*tp) for tp in partitions if tp not in self.partitions)
        for tp in added:
            self.partitions[tp] = AssignedPartition(tp)
        self.view.follow(*dict.fromkeys(tp.topic for tp in added))
        self.metrics.rebalances += self.joined
        return added

    def hold(self, partitions: Collection[TopicPartition]) -> list[TopicPartition]:
        self.inbox.recall()
        held = sorted(tp for tp in partitions if tp in self.partitions)
        for tp in held:
            self.partitions[tp].leaving = True
        return held

    def drop(self, partitions: Collection[TopicPartition]) -> None:
        self.inbox.recall()
        for tp in partitions:
            partition = self.partitions.pop(tp, None)
            if partition is not None:
                partition.gone = True
                partition.discard()
        self.wake()

    def resolve(self) -> None:
        if self._started and not self.closed:
            self.navigator.wake()
            self.fetcher.wake()

    def stir(self) -> None:
        self.inbox.stir()

    async def commit_processed(self, partitions: Collection[TopicPartition]) -> None:
        await self.committer.commit_processed(partitions)

    def wake(self) -> None:
        """Something about a partition changed."""
        self.resolve()
        self.inbox.stir()

    def _settled(self, partition: AssignedPartition) -> None:
        self.inbox.arrived(partition)
        self.fetcher.wake()

    async def _committed(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, OffsetAndMetadata]:
        return await self.membership.committed(partitions)

    # -- the application polls

    async def collect(self, take: Callable[[int], list[T]], limit: int, timeout_ms: float) -> list[T]:
        """What `take` gives, as soon as it gives anything. Nothing is taken unless it is also returned."""
        loop = asyncio.get_running_loop()
        await self._came_back(loop)
        deadline = loop.time() + timeout_ms / 1000
        while True:
            self._raise_failures()
            if not self.ownership.busy:
                self.fetcher.look()
                given = take(limit)
                if given:
                    self.ownership.away()
                    return given
            left = deadline - loop.time()
            if left <= 0:
                return []
            self.membership.in_poll = True
            try:
                await self.inbox.wait(left)
            finally:
                self.membership.in_poll = False
            self._ran_at = loop.time()

    async def _came_back(self, loop: asyncio.AbstractEventLoop) -> None:
        self.metrics.polls += 1
        self.membership.polled()
        room_made = self.fetcher.held_back and self._room_made()
        self.committer.came_back()
        self.ownership.back()
        if room_made:
            self.fetcher.fetch_now()
        if room_made or loop.time() - self._ran_at > _TURN_S:
            await asyncio.sleep(0)
            self._ran_at = loop.time()

    def _room_made(self) -> bool:
        enough = self.fetcher.enough_bytes
        return any(partition.buffered_bytes < enough for partition in self.inbox.touched)

    def _raise_failures(self) -> None:
        if self.closed:
            raise Closed("the consumer is closed")
        self.ownership.raise_failure()
        if self.membership.failure is not None:
            raise self.membership.failure

    async def placed(self, tp: TopicPartition, timeout_ms: float) -> AssignedPartition:
        """The partition once it is known where it is read; its failure when it cannot be."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_ms / 1000
        while True:
            self._raise_failures()
            partition = self.assigned(tp)
            if partition.phase is Phase.FAILED and not partition.batches:
                assert partition.failure is not None, "what has failed says why"
                raise partition.failure
            if partition.position >= 0 and partition.phase is not Phase.RESETTING:
                return partition
            left = deadline - loop.time()
            if left <= 0:
                raise TimedOutWaiting(f"its position is not known after {timeout_ms:.0f} ms", where=str(tp))
            await self.inbox.wait(left)

    def assigned(self, tp: TopicPartition) -> AssignedPartition:
        partition = self.partitions.get(tp)
        if partition is None:
            raise ClientError("the partition is not assigned to this consumer", where=f"{tp[0]}-{tp[1]}")
        return partition

    def measures(self) -> dict[str, float]:
        """Counters and what can be seen now, under Kafka's names where it has one."""
        lags = [lag for lag in (self.lag_of(partition) for partition in self.partitions.values()) if lag is not None]
        found: dict[str, Any] = {**self.metrics.named(), **self.membership.metrics()}
        found["assigned-partitions"] = len(self.partitions)
        found["records-lag-max"] = max(lags, default=0)
        found["buffered-bytes"] = sum(partition.buffered_bytes for partition in self.partitions.values())
        return found

    def lag_of(self, partition: AssignedPartition) -> int | None:
        """Records behind the end that this reader may see, as the last fetch told it; None when it is not known."""
        committed_only = self.settings.isolation_level == "read_committed"
        end = partition.last_stable_offset if committed_only else partition.high_watermark
        if end < 0 or partition.position < 0:
            return None
        return max(0, end - partition.position)
