"""Whose partitions are whose: what happens here when a group gives or takes some.

A partition is given up only after the application came back from what it does with the records it was given (bounded
by `max_poll_interval_ms`), its progress was committed and `on_revoked` was told. Partitions that are lost are another
member's already: they go at once, uncommitted, and `on_lost` is told.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any, Protocol, TypeAlias

from penstock.client.consumer.offsets import GroupMetadata, OffsetAndMetadata
from penstock.client.errors import ClientError
from penstock.model.ids import TopicPartition

OnPartitions: TypeAlias = Callable[[list[TopicPartition]], Any]
"""A callback of the application; it may be a coroutine function."""


class Membership(Protocol):
    """A group as the consumer sees it; `Alone` stands in where there is none."""

    in_poll: bool
    """The application waits in a poll, which counts as polling."""
    on_failure: Callable[[ClientError], None] | None

    @property
    def failure(self) -> ClientError | None: ...
    @property
    def assignment(self) -> frozenset[TopicPartition]: ...
    def subscribe(self, topics: frozenset[str] | None, pattern: str | None) -> None: ...
    async def start(self) -> None: ...
    async def leave(self, *, timeout_ms: float) -> None: ...
    def polled(self) -> None: ...
    def metrics(self) -> dict[str, float]: ...
    async def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], *, automatic: bool = False) -> None: ...
    def metadata(self) -> GroupMetadata: ...
    async def committed(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, OffsetAndMetadata]: ...


class Callbacks:
    """What the application wants to be told."""

    __slots__ = ("on_assigned", "on_lost", "on_revoked")

    def __init__(
        self, on_assigned: OnPartitions | None, on_revoked: OnPartitions | None, on_lost: OnPartitions | None
    ) -> None:
        self.on_assigned, self.on_revoked = on_assigned, on_revoked
        # Who does not tell the two apart hears of both, as with Kafka's own listener.
        self.on_lost = on_lost or on_revoked


class Owned(Protocol):
    """What `Ownership` needs of the consumer."""

    def hold(self, partitions: Collection[TopicPartition]) -> list[TopicPartition]: ...
    def drop(self, partitions: Collection[TopicPartition]) -> None: ...
    def add(self, partitions: Collection[TopicPartition]) -> list[TopicPartition]: ...
    def resolve(self) -> None: ...
    def stir(self) -> None: ...
    async def commit_processed(self, partitions: Collection[TopicPartition]) -> None: ...


class Ownership:
    """The hooks of a membership."""

    def __init__(self, owned: Owned, *, patience_ms: float) -> None:
        """`patience_ms` is how long the application may work on what it was given."""
        self._owned, self._patience_ms = owned, patience_ms
        self._back = asyncio.Event()
        self._back.set()
        self._turn = asyncio.Lock()
        self.callbacks = Callbacks(None, None, None)
        self.failure: BaseException | None = None

    @property
    def busy(self) -> bool:
        """Whether a callback or a commit before a revocation is under way."""
        return self._turn.locked() and self._back.is_set()

    def away(self) -> None:
        """The application has records to work on."""
        self._back.clear()

    def back(self) -> None:
        """It came for more, or closes."""
        self._back.set()

    async def revoke(self, partitions: Collection[TopicPartition], *, lost: bool) -> None:
        # Giving stops at once, also for whoever waits for a hook that runs already.
        held = self._owned.hold(partitions)
        if not held:
            return
        async with self._turn:
            if lost:
                self._owned.drop(held)
                await self._tell(self.callbacks.on_lost, held)
            else:
                await self._wait_for_application()
                await self._owned.commit_processed(held)
                await self._tell(self.callbacks.on_revoked, held)
                self._owned.drop(held)
        self._owned.stir()

    async def assign(self, partitions: Collection[TopicPartition]) -> None:
        async with self._turn:
            added = self._owned.add(partitions)
            # Told even when nothing was added: it is how an application learns that a rebalance is over.
            await self._tell(self.callbacks.on_assigned, added)
            # Only now: the callback may have said where to begin.
            self._owned.resolve()
        self._owned.stir()

    async def _wait_for_application(self) -> None:
        if self._back.is_set():
            return
        try:
            async with asyncio.timeout(self._patience_ms / 1000):
                await self._back.wait()
        except TimeoutError:
            return

    async def _tell(self, callback: OnPartitions | None, partitions: list[TopicPartition]) -> None:
        """A callback that raises must not end the membership; the next poll raises it instead."""
        if callback is None:
            return
        try:
            told = callback(partitions)
            if inspect.isawaitable(told):
                await told
        except Exception as broken:
            self.failure = broken

    def raise_failure(self) -> None:
        failure, self.failure = self.failure, None
        if failure is not None:
            raise failure
