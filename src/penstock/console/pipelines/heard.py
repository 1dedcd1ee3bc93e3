"""What a cluster's pipelines have told: the topic is read once from its beginning, then what is new of it."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from penstock.client.errors import ClientError
from penstock.console.failures import Declined
from penstock.console.messages.thread import ReadingThread
from penstock.console.settings import ClusterAddress
from penstock.spark.naming import INTERNAL_TOPIC
from penstock.spark.progress.records import ProgressRecord
from penstock.spark.progress.status import PipelineStatus, merge
from penstock.spark.progress.topic import Entry, InternalTopic

HOLDS_S: Final = 1.0
READ_WITHIN_S: Final = 30.0
KEYS_MAX: Final = 20_000
BATCHES_KEPT: Final = 60
"""Of each query."""
KINDS: Final = ("pipeline/", "progress/", "control/")


@dataclass(frozen=True, slots=True)
class HeardNow:
    """All pipelines at one moment."""

    at_ms: int = 0
    pipelines: Mapping[str, PipelineStatus] = field(default_factory=dict)
    batches: Mapping[tuple[str, str], tuple[ProgressRecord, ...]] = field(default_factory=dict)
    """By pipeline and query, oldest first."""
    failed: str = ""
    """Why the topic could not be read now; what is known is from before."""


class Heard:
    """One cluster's. Asked on the console's loop; the topic is read on the reading thread."""

    def __init__(self, address: ClusterAddress, reading: ReadingThread) -> None:
        self._address, self._reading = address, reading
        self._topic: InternalTopic | None = None
        self._next: int | None = None
        self._last: dict[str, Entry] = {}
        self._batches: dict[tuple[str, str], deque[ProgressRecord]] = {}
        self._seen = HeardNow()
        self._until = 0.0
        self._looking: asyncio.Task[HeardNow] | None = None

    async def look(self) -> HeardNow:
        """ClientError when nothing could ever be read."""
        if time.monotonic() < self._until:
            return self._seen
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look_anew())
        return await asyncio.shield(self._looking)

    async def append(self, entry: Entry) -> None:
        """Tells pipelines something, as the console."""
        await self._reading.do(self._append(entry))
        self._until = 0.0

    async def close(self) -> None:
        await self._reading.do(self._hang_up())

    async def _look_anew(self) -> HeardNow:
        now_ms = time.time_ns() // 1_000_000
        try:
            await self._reading.do(self._read())
            failed = ""
        except (ClientError, TimeoutError, OSError) as failure:
            if self._next is None:
                if isinstance(failure, ClientError):
                    raise
                raise Declined(504, "timed_out", f"{INTERNAL_TOPIC} could not be read in time") from None
            failed = str(failure) or "the topic cannot be read in time"
        found = {each.name: each for each in merge(list(self._last.values()), now_ms)}
        batches = {query: tuple(told) for query, told in self._batches.items()}
        self._seen = HeardNow(now_ms, found, batches, failed)
        self._until = time.monotonic() + HOLDS_S
        return self._seen

    # On the reading thread.

    def _open(self) -> InternalTopic:
        if self._topic is None:
            self._topic = InternalTopic(self._address.consumer)
        return self._topic

    async def _read(self) -> None:
        topic = self._open()
        async with asyncio.timeout(READ_WITHIN_S):
            entries, end = await topic.read(self._next)
            if self._next is not None and end < self._next:
                # Another topic has the name now.
                self._last, self._batches = {}, {}
                entries, end = await topic.read()
        for entry in entries:
            self._take(entry)
        self._next = end

    def _take(self, entry: Entry) -> None:
        if not entry.key.startswith(KINDS):
            return
        self._last.pop(entry.key, None)
        self._last[entry.key] = entry
        if len(self._last) > KEYS_MAX:
            del self._last[next(iter(self._last))]
        if entry.value is None or not entry.key.startswith("progress/"):
            return
        try:
            record = ProgressRecord.of_json(entry.value)
        except (TypeError, ValueError):
            return
        kept = self._batches.setdefault((record.owner, record.query), deque(maxlen=BATCHES_KEPT))
        if kept and (kept[-1].run_id, kept[-1].batch_id) == (record.run_id, record.batch_id):
            kept.pop()
        kept.append(record)
        if len(self._batches) > KEYS_MAX:
            del self._batches[next(iter(self._batches))]

    async def _append(self, entry: Entry) -> None:
        async with asyncio.timeout(READ_WITHIN_S):
            await self._open().append([entry])

    async def _hang_up(self) -> None:
        topic, self._topic = self._topic, None
        if topic is not None:
            await topic.close()
