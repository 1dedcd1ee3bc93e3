"""The blocking producer. Its `send` may be called from many threads at once."""

from __future__ import annotations

import contextlib
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack

from penstock.client.blocking.deliveries import BlockingBulkDelivery, BlockingDelivery, delivery_class
from penstock.client.blocking.loop_thread import LoopThread, close_at_the_latest
from penstock.client.errors import BufferFull, ClientError, TimedOutWaiting, TransactionAbortable
from penstock.client.producer import producer as asynchronous
from penstock.client.producer.delivery import BulkDelivery, OnDelivery
from penstock.client.producer.parked import Headers, Payload
from penstock.client.settings import ProducerSettings
from penstock.kernels import SendFront, unsendable
from penstock.model.ids import TopicPartition

if TYPE_CHECKING:
    import pyarrow

    from penstock.client.blocking.consumer import Consumer
    from penstock.client.consumer.offsets import GroupMetadata, OffsetAndMetadata
    from penstock.client.keywords import ProducerKeywords
    from penstock.client.producer.transactions.prepared import PreparedTransaction
    from penstock.kernels.shapes import HeaderPairs

FAREWELL_MS = 4_000


class _Inner(asynchronous.Producer):
    """The asyncio producer as this one drives it: records come from other threads."""

    on_doors: Callable[[bool], None]
    """Told when records may be sent and when not, if there are transactions."""

    def serve_threads(self, on_doors: Callable[[bool], None]) -> None:
        self._threads = True
        self.on_doors = on_doors
        self._accumulator.deliver_as(delivery_class(self._accumulator.lock))

    async def open(self) -> None:
        self._start()
        if self._transactions is not None:
            self._transactions.initialise_soon()

    async def add_offsets(self, group: GroupMetadata, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        await self._transactional().send_offsets(group, offsets)

    async def abort_within(self, timeout_ms: float | None) -> None:
        await self._transactional().abort(timeout_ms)

    def _doors(self, opened: bool) -> None:
        super()._doors(opened)
        self.on_doors(opened and not self._closing)

    async def bulk(self, topic: str, values: Any, named: dict[str, Any]) -> BulkDelivery:
        return self.send_batch(topic, values, **named)

    async def arrow(self, topic: str, table: Any, partition: int | None) -> BulkDelivery:
        return self.send_arrow(topic, table, partition=partition)


class Producer(SendFront[BlockingDelivery, OnDelivery]):
    """Sends records. Use it with `with`, or call `close()`, which sends what is left.

        with Producer(bootstrap_servers="localhost:9092") as producer:
            producer.send("orders", b"value", key=b"k").result()

    The settings are those of `penstock.Producer`. `send` waits for nothing but room in the buffer and a topic's first
    metadata; `result()` of its delivery waits for the `Report`. `on_delivery` is called in a background thread.
    """

    def __init__(
        self, bootstrap_servers: str | Sequence[str] | None = None, **settings: Unpack[ProducerKeywords]
    ) -> None:
        self._inner = _Inner(bootstrap_servers, **settings)
        # Weakly: the loop's thread must not keep alive what nobody else holds.
        this = weakref.ref(self)

        def on_doors(opened: bool) -> None:
            found = this()
            if found is not None:
                found._desk = found._accumulator if opened else None

        self._inner.serve_threads(on_doors)
        self._accumulator = self._inner._accumulator
        self._lock = self._accumulator.lock
        self._thread = LoopThread("penstock-producer")
        inner = self._inner
        self._farewell = close_at_the_latest(self, self._thread, lambda: inner.close(FAREWELL_MS))
        self._thread.call(inner.open())
        self._share(self._lock)
        if inner.settings.transactional_id is None:
            self._desk = self._accumulator

    @property
    def settings(self) -> ProducerSettings:
        """What it was made with, defaults included."""
        return self._inner.settings

    def __enter__(self) -> Self:
        if self.settings.transactional_id is not None:
            try:
                self._thread.call(self._inner.__aenter__())
            except BaseException:
                self.close(0)
                raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None
    ) -> None:
        interrupted = kind is not None and not issubclass(kind, Exception)
        self.close(asynchronous.INTERRUPTED_CLOSE_MS if interrupted else None)

    @asynchronous.carried_out_by(SendFront.send)
    def send(
        self,
        topic: str,
        value: Payload | None = None,
        *,
        key: Payload | None = None,
        partition: int | None = None,
        timestamp: int | None = None,
        headers: HeaderPairs = (),
        on_delivery: OnDelivery | None = None,
    ) -> BlockingDelivery:
        """Puts a record into its batch and answers its delivery, which tells the `Report` when it is asked to.

        Key and value are bytes or text, which is sent as UTF-8. `timestamp` is in milliseconds, now if None. When the
        buffer is full, or the topic not known yet, the record waits its turn for up to `max_block_ms`; `BufferFull`
        when too many wait already. `RecordTooLarge` when no request could carry it. `on_delivery` is called with
        (report, None) or (None, error). A TypeError says which argument cannot be sent.
        """
        raise AssertionError("the kernel appends to the open batch; what it cannot do goes to `_send_slowly`")

    def _send_slowly(
        self,
        topic: str,
        value: Payload | None,
        key: Payload | None,
        partition: int | None,
        timestamp: int | None,
        headers: Headers,
        on_delivery: OnDelivery | None,
    ) -> BlockingDelivery:
        """What the kernel's `send` cannot do by itself: begins batches, waits for room, learns about topics."""
        with self._lock:
            delivery: BlockingDelivery | None = self._inner._append(
                topic, value, key, partition, timestamp, headers, on_delivery
            )
        if delivery is None:
            return self._wait_and_append(topic, value, key, partition, timestamp, headers, on_delivery)
        return delivery

    def _wait_and_append(
        self, topic: str, value: Any, key: Any, partition: int | None, timestamp: int | None, headers: Any, call: Any
    ) -> BlockingDelivery:
        if words := unsendable(topic, value, key, partition, timestamp, headers):
            raise TypeError(words)
        accumulator, sender, loop = self._accumulator, self._inner._sender, self._thread.loop
        if self._thread.inside:
            raise BufferFull("there is no room, and a callback cannot wait for it", retriable=True)
        limit_ms = self.settings.max_block_ms
        deadline = time.monotonic() + limit_ms / 1000
        with accumulator.room:
            accumulator.blocked_threads += 1
            accumulator.awaited.setdefault(topic, []).append(partition)
            try:
                while True:
                    found: BlockingDelivery | None = self._inner._append(
                        topic, value, key, partition, timestamp, headers, call
                    )
                    if found is not None:
                        return found
                    refused = accumulator.refusals.get(topic)
                    if refused is not None:
                        raise refused
                    if not accumulator.knows(topic, partition):
                        loop.call_soon_threadsafe(sender.learn_if_unknown, topic, partition)
                    left_s = deadline - time.monotonic()
                    if left_s > 0:
                        # Woken or not, there may be room by now.
                        accumulator.room.wait(left_s)
                    else:
                        raise TimedOutWaiting(
                            f"no room or no metadata within {limit_ms} ms (max_block_ms)",
                            where=f"topic {topic!r}",
                            retriable=True,
                        )
            finally:
                accumulator.stopped_waiting(topic, partition)

    def send_batch(
        self,
        topic: str,
        values: Sequence[Payload | None],
        *,
        keys: Sequence[Payload | None] | None = None,
        headers: Sequence[Headers] | None = None,
        timestamps: Sequence[int] | None = None,
        partition: int | None = None,
    ) -> BlockingBulkDelivery:
        """Sends a record for each value; the lists must stay as they are until `result()` has returned."""
        named = {"keys": keys, "headers": headers, "timestamps": timestamps, "partition": partition}
        return BlockingBulkDelivery(self._thread.call(self._inner.bulk(topic, values, named)), self._lock)

    def send_arrow(
        self,
        topic: str,
        table: pyarrow.RecordBatch | pyarrow.Table,
        *,
        partition: int | None = None,
    ) -> BlockingBulkDelivery:
        """Sends a record for each row of an Arrow table; see `penstock.Producer.send_arrow`."""
        return BlockingBulkDelivery(self._thread.call(self._inner.arrow(topic, table, partition)), self._lock)

    def begin(self) -> None:
        """Begins a transaction: what is sent from now on is shown to readers with the commit, or never."""
        self._thread.call(self._inner.begin())

    def commit(self) -> None:
        """Sends what is left and commits; returns when it is decided. See `penstock.Producer.commit`."""
        self._thread.call(self._inner.commit())

    def abort(self) -> None:
        """Ends the transaction so that readers with isolation_level="read_committed" never see anything of it."""
        self._thread.call(self._inner.abort())

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Self]:
        """Begins a transaction, and commits it at the end of the block, or aborts it when the block raises."""
        self.begin()
        try:
            yield self
        except BaseException as failure:
            limit_ms = None if isinstance(failure, Exception) else asynchronous.INTERRUPTED_CLOSE_MS
            with contextlib.suppress(ClientError):
                self._thread.call(self._inner.abort_within(limit_ms))
            raise
        try:
            self.commit()
        except TransactionAbortable:
            with contextlib.suppress(ClientError):
                self.abort()
            raise

    def send_offsets(
        self,
        consumer: Consumer | GroupMetadata,
        offsets: Mapping[tuple[str, int], OffsetAndMetadata | int] | None = None,
    ) -> None:
        """Commits a group's offsets with the transaction: how far `consumer` has given records, or `offsets`."""
        group, given = asynchronous.whose_offsets(consumer, offsets)
        self._thread.call(self._inner.add_offsets(group, given))

    def prepare(self) -> PreparedTransaction:
        """Sends what is left and leaves the end of the transaction to `Admin.end_transaction`, in any process."""
        return self._thread.call(self._inner.prepare())

    def flush(self, timeout_ms: float | None = None) -> None:
        """Returns when everything that was sent before is delivered or has failed; TimedOutWaiting."""
        self._thread.call(self._inner.flush(timeout_ms))

    def close(self, timeout_ms: float | None = None) -> None:
        """Sends what is left, for up to `timeout_ms`, and ends. What is not delivered by then fails with `Closed`."""
        if not self._farewell.alive:
            return
        self._desk = None
        self._thread.call(self._inner.close(timeout_ms))
        self._farewell.detach()
        with self._accumulator.room:
            self._accumulator.room.notify_all()
        self._thread.stop()

    def partitions_for(self, topic: str) -> list[int]:
        """The partitions of a topic, which is created if brokers do that; UnknownTopic after `max_block_ms`."""
        return self._thread.call(self._inner.partitions_for(topic))

    def metrics(self) -> dict[str, int]:
        """Totals and the present state of the buffer."""
        return self._inner.metrics()
