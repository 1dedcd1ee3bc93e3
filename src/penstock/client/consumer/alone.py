"""Reading topics without a group: every partition is ours, and none of it is committed."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Collection, Mapping

from penstock.client.cluster_view import ClusterView
from penstock.client.consumer.offsets import GroupMetadata, OffsetAndMetadata
from penstock.client.consumer.ownership import Ownership
from penstock.client.errors import BadSetting, ClientError, UnknownTopic
from penstock.client.settings import ConsumerSettings
from penstock.model.ids import TopicPartition

_FIRST_LOOK_MS = 1_000


class Alone:
    """Follows the topics of a subscription: partitions that come into being are added, those that go are lost."""

    def __init__(self, view: ClusterView, settings: ConsumerSettings, hooks: Ownership) -> None:
        self._view, self._settings, self._hooks = view, settings, hooks
        self._topics: frozenset[str] = frozenset()
        self._pattern: re.Pattern[str] | None = None
        self._changed = asyncio.Event()
        self._seen = -1
        self._task: asyncio.Task[None] | None = None
        self.assignment: frozenset[TopicPartition] = frozenset()
        self.failure: ClientError | None = None
        self.in_poll = False
        self.on_failure: Callable[[ClientError], None] | None = None

    def subscribe(self, topics: frozenset[str] | None, pattern: str | None) -> None:
        self._topics = topics or frozenset()
        self._pattern = None if pattern is None else re.compile(pattern)
        self._seen = -1
        self._changed.set()

    async def start(self) -> None:
        if self._task is None:
            self._view.when_changed(self._changed.set)
            self._task = asyncio.get_running_loop().create_task(self._follow())

    async def leave(self, *, timeout_ms: float) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def polled(self) -> None:
        """Nobody is waiting for a sign of life."""

    def metrics(self) -> dict[str, float]:
        """No group, nothing to count."""
        return {}

    async def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], *, automatic: bool = False) -> None:
        raise BadSetting("commits need a group_id")

    def metadata(self) -> GroupMetadata:
        raise BadSetting("a place in a group needs a group_id")

    async def committed(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, OffsetAndMetadata]:
        raise BadSetting("committed offsets need a group_id")

    async def _follow(self) -> None:
        while True:
            self._changed.clear()
            missing = False
            if self._seen != self._view.generation:
                try:
                    missing = await self._look()
                    self.failure = None
                except ClientError as failure:
                    missing = True
                    self.failure = None if failure.retriable else failure
                    if self.failure is not None and self.on_failure is not None:
                        self.on_failure(self.failure)
            # What is missing is asked for more often than what may only have grown.
            age_ms = self._settings.metadata_max_age_ms
            wait_ms = min(_FIRST_LOOK_MS, age_ms) if missing else age_ms
            try:
                async with asyncio.timeout(wait_ms / 1000):
                    await self._changed.wait()
            except TimeoutError:
                self._seen = -1

    async def _look(self) -> bool:
        """Compares what there is with what is ours; True when a topic is missing."""
        missing = False
        if self._pattern is not None:
            found = await self._view.topics(None)
            names = sorted(name for name, topic in found.items() if self._matches(name, topic.internal))
            self._view.follow(*names)
        else:
            names = sorted(self._topics)
            for name in names:
                missing = not await self._exists(name) or missing
        self._seen = self._view.generation
        now_there = {
            TopicPartition(name, partition.index)
            for name in names
            if (topic := self._view.cached(name)) is not None
            for partition in topic.partitions
        }
        gone, new = self.assignment - now_there, now_there - self.assignment
        self.assignment = frozenset(now_there)
        if gone:
            await self._hooks.revoke(gone, lost=True)
        if new:
            await self._hooks.assign(sorted(new))
        return missing

    def _matches(self, name: str, internal: bool) -> bool:
        assert self._pattern is not None, "only asked for patterns"
        if internal and self._settings.exclude_internal_topics:
            return False
        return self._pattern.fullmatch(name) is not None

    async def _exists(self, name: str) -> bool:
        if self._view.cached(name) is not None:
            return True
        try:
            await self._view.topic(name, create=self._settings.create_topics, timeout_ms=_FIRST_LOOK_MS)
        except UnknownTopic:
            return False
        return True
