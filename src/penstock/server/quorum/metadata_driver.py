"""The published image: what this node believes of the cluster, always at a committed offset.

Batches come in as soon as they are in the log (`learned`) and wait here until the high watermark passes them
(`commit_to`). Then they are applied and published in one step that nothing interrupts, so a reader that does not await
sees one state. No image is published inside a metadata transaction.

An image belongs to one loop: it changes in place. So a node has two of them, one beside the quorum and one that its
broker acts on (`MetadataMirror`), and what passes from one to the other are batches, which nobody changes
(`metadata_feed.py`).
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from penstock.metadata.delta import Delta
from penstock.metadata.difference import delta_between
from penstock.metadata.image import ClusterImage
from penstock.model.ids import Epoch, Millis, NodeId, Offset, Uuid
from penstock.server.loops.duty import tell

if TYPE_CHECKING:
    from penstock.metadata.records import Record
    from penstock.protocol.messages.metadata import MetadataResponse

Listener = Callable[[ClusterImage, Delta], None]


class Feed(Protocol):
    """Carries publications to the broker's image."""

    def applied(self, batches: Sequence[LogBatch], image: ClusterImage) -> None:
        """These batches show now; `image` is what they led to."""

    def replaced(self, image: ClusterImage) -> None:
        """Everything is another now."""


class LogBatch(NamedTuple):
    """One batch of the metadata log, decoded. A control batch has no metadata records."""

    base: Offset
    end: Offset
    epoch: Epoch
    timestamp: Millis
    size: int
    records: Sequence[Record]

    def apply_to(self, image: ClusterImage) -> None:
        for offset, record in enumerate(self.records, self.base):
            image.apply(record, Offset(offset), self.epoch)
        if not self.records:
            image.skip_to(Offset(self.end - 1), self.epoch)


class PublishedMetadata:
    """An image and those who are told of it. The door `Services.metadata`."""

    def __init__(self, node_id: NodeId, cluster_id: str) -> None:
        self.node_id, self.cluster_id = node_id, cluster_id
        self.fragments: dict[Uuid, dict[tuple[object, ...], MetadataResponse.MetadataResponseTopic]] = {}
        """Encoded pieces of replies by topic id and whatever else they depend on, kept until the topic or a broker
        changes."""
        self._image = ClusterImage()
        self._listeners: list[Listener] = []
        self._advance_listeners: list[Callable[[], None]] = []

    @property
    def image(self) -> ClusterImage:
        return self._image

    @property
    def published_end(self) -> Offset:
        """The offset after the last record that shows."""
        return Offset(self._image.offset + 1)

    def on_publish(self, listener: Listener) -> None:
        """Calls back after each publication that changed something, in the order of subscription.

        What is published already is handed over at once, so a late subscriber misses nothing.
        """
        self._listeners.append(listener)
        if not self._image.empty:
            self._tell(listener, delta_between(ClusterImage(), self._image))

    def on_advance(self, listener: Callable[[], None]) -> None:
        """Calls back whenever the published offset moved, also when nothing else changed."""
        self._advance_listeners.append(listener)

    def _publish(self, delta: Delta) -> None:
        if delta:
            self._forget_fragments(delta)
            for listener in self._listeners:
                self._tell(listener, delta)

    def _advanced(self) -> None:
        for advanced in self._advance_listeners:
            advanced()

    def _tell(self, listener: Listener, delta: Delta) -> None:
        try:
            listener(self._image, delta)
        except Exception as broken:
            # The others still hear of it. But a node of which a part knows another cluster than the rest cannot go on:
            # it would serve topics that are gone, or lead what another leads.
            tell(f"the listener {listener.__name__} of the metadata", broken)

    def _forget_fragments(self, delta: Delta) -> None:
        if delta.brokers:
            self.fragments.clear()
            return
        for topic_id in delta.partitions.keys() | delta.deleted.keys() | delta.created.keys():
            self.fragments.pop(topic_id, None)


class MetadataMirror(PublishedMetadata):
    """The image that the broker acts on: what the quorum's side has published, a moment later, on the broker's loop."""

    def take(self, batches: Sequence[LogBatch]) -> None:
        """Committed batches that follow what shows; the last of them ends outside of a metadata transaction."""
        for batch in batches:
            batch.apply_to(self._image)
        self._publish(self._image.take_delta())
        self._advanced()

    def replace(self, image: ClusterImage) -> None:
        """Another image takes the place of this one, which now belongs here; only what differs is published."""
        delta = delta_between(self._image, image)
        image.take_delta()
        self._image = image
        self._publish(delta)
        self._advanced()


class MetadataDriver(PublishedMetadata):
    """The published image at the quorum, and those who wait for it."""

    def __init__(self, node_id: NodeId, cluster_id: str) -> None:
        super().__init__(node_id, cluster_id)
        self.last_timestamp = Millis(0)
        """When the last published batch was written."""
        self.bytes_published = 0
        """Size of all batches published since the start; what snapshots are measured by."""
        self.feed: Feed | None = None
        """Who carries what is published to the broker's image, if there is one."""
        self._pending: deque[LogBatch] = deque()
        self._held: list[LogBatch] = []
        self._waiting: list[tuple[Offset, int, asyncio.Future[None]]] = []
        self._waiting_as_controller: list[tuple[Offset, int, asyncio.Future[None]]] = []
        self._order = itertools.count()

    @property
    def uncommitted(self) -> Sequence[LogBatch]:
        """What is in the log and does not show in the image yet, in log order."""
        return (*self._held, *self._pending)

    def replace(self, image: ClusterImage) -> None:
        """Starts over from a snapshot; only what differs from the old image is published."""
        delta = delta_between(self._image, image)
        image.take_delta()
        self._image, self._held = image, []
        while self._pending and self._pending[0].end <= self.published_end:
            self._pending.popleft()
        if self.feed is not None:
            self.feed.replaced(image)
        self._publish(delta)
        self._release()

    def learned(self, batch: LogBatch) -> None:
        """A batch is in the log; whether it stays is decided by the high watermark."""
        assert not self._pending or batch.base >= self._pending[-1].end, "batches are learned in log order"
        if batch.end > self.published_end:
            self._pending.append(batch)

    def commit_to(self, high_watermark: Offset) -> None:
        """Applies and publishes every batch below the high watermark."""
        applied: list[LogBatch] = []
        while self._pending and self._pending[0].end <= high_watermark:
            self._held.append(self._pending.popleft())
            if not _inside_transaction(self._held):
                applied += self._apply_held()
        if applied:
            # First of all: whoever is answered because of this publication finds it at the broker too.
            if self.feed is not None:
                self.feed.applied(applied, self._image)
            self._publish(self._image.take_delta())
            self._release()
            self._advanced()

    def _apply_held(self) -> list[LogBatch]:
        """The batches of a transaction are applied together, so the image never stands inside one."""
        held, self._held = self._held, []
        for batch in held:
            batch.apply_to(self._image)
            self.last_timestamp = batch.timestamp
            self.bytes_published += batch.size
        return held

    async def published(self, end: Offset, *, as_controller: bool = False) -> None:
        """Returns when the published image shows everything before `end`.

        Who waits for what it decided itself, `as_controller`, is refused when this node no longer leads. All others
        wait for the cluster, whoever leads it.
        """
        if self.published_end < end:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            waiting = self._waiting_as_controller if as_controller else self._waiting
            heapq.heappush(waiting, (end, next(self._order), future))
            await future

    def unlearn(self, end: Offset) -> None:
        """The log was cut at `end`: batches that go beyond it were never there."""
        while self._pending and self._pending[-1].end > end:
            self._pending.pop()

    def resigned(self, why: Exception) -> None:
        """This node no longer leads: whoever waits for its decisions is refused, because they may be overwritten."""
        waiting, self._waiting_as_controller = self._waiting_as_controller, []
        _refuse(waiting, why)

    def abandon(self, why: Exception) -> None:
        """Fails everybody who waits: this node will publish nothing more."""
        self.resigned(why)
        waiting, self._waiting = self._waiting, []
        _refuse(waiting, why)

    def _release(self) -> None:
        end = self.published_end
        for waiting in (self._waiting, self._waiting_as_controller):
            while waiting and waiting[0][0] <= end:
                future = heapq.heappop(waiting)[2]
                if not future.done():
                    future.set_result(None)


def _refuse(waiting: Sequence[tuple[Offset, int, asyncio.Future[None]]], why: Exception) -> None:
    for _, _, future in waiting:
        if not future.done():
            future.set_exception(why)


def _inside_transaction(batches: Sequence[LogBatch]) -> bool:
    """Whether the last of these batches leaves a metadata transaction open."""
    for batch in reversed(batches):
        for record in reversed(batch.records):
            kind = record.__class__.__name__
            if kind == "BeginTransactionRecord":
                return True
            if kind in ("EndTransactionRecord", "AbortTransactionRecord"):
                return False
    return False
