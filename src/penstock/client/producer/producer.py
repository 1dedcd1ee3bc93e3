"""The asyncio producer: what users touch."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from penstock.client.clock import SYSTEM_CLOCK, on_jump
from penstock.client.cluster_view import ClusterView
from penstock.client.errors import BadSetting, ClientError, Closed, TimedOutWaiting, TransactionAbortable
from penstock.client.producer.accumulator import Accumulator
from penstock.client.producer.bulk import Bulk, ListRows, Rows
from penstock.client.producer.delivery import BulkDelivery, Delivery, OnDelivery, waker
from penstock.client.producer.parked import Headers, Parked, ParkedBulk, Payload
from penstock.client.producer.sender import Sender
from penstock.client.retry import Backoff
from penstock.client.settings import ProducerSettings
from penstock.kernels import SendFront, unsendable
from penstock.model.ids import TopicPartition
from penstock.model.ports import Clock

if TYPE_CHECKING:
    import pyarrow

    from penstock.client.consumer import Consumer, GroupMetadata, OffsetAndMetadata
    from penstock.client.keywords import ProducerKeywords
    from penstock.client.producer.transactions.driver import TransactionDriver
    from penstock.client.producer.transactions.prepared import PreparedTransaction, ProducerEpoch
    from penstock.kernels.shapes import HeaderPairs

M = TypeVar("M", bound=Callable[..., Any])

INTERRUPTED_CLOSE_MS = 3_000
"""How long leaving `async with` flushes when the task is being cancelled: Ctrl-C must not take minutes."""


def carried_out_by(kernel: Any) -> Callable[[M], M]:
    """What is declared is how a method is called and what it promises; `kernel` is what calls of it run.

    Nothing stands in between: a frame of Python around the compiled `send` would cost 290 ns where that takes 200.
    """
    return lambda _declared: kernel


class Producer(SendFront[Delivery, OnDelivery]):
    """Sends records. Use it with `async with`, or call `close()`, which sends what is left.

        async with Producer(bootstrap_servers="localhost:9092") as producer:
            report = await producer.send("orders", b"value", key=b"k")

    Settings are those of `ProducerSettings`. A record is in its batch when `send` returns; awaiting the delivery is
    only needed by those who want to know what became of it. All calls belong on one event loop; see
    `penstock.blocking.Producer` for threads.

    With a `transactional_id` records are sent in transactions, and only there: `async with producer.transaction():`, or
    `begin`, `commit` and `abort`.
    """

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] | None = None,
        *,
        clock: Clock | None = None,
        chance: random.Random | None = None,
        **settings: Unpack[ProducerKeywords],
    ) -> None:
        """`clock` counts delivery timeouts and stamps records; `chance` spreads retries and sticky partitions."""
        self.settings = ProducerSettings.of({"bootstrap_servers": bootstrap_servers, **settings})
        self._clock = clock or SYSTEM_CLOCK
        self._chance = chance or random.Random()
        self._threads = False
        options = self.settings
        try:
            self._view = ClusterView(
                options.bootstrap_servers,
                timeout_ms=options.request_timeout_ms,
                client_id=options.client_id,
                metadata_max_age_ms=options.metadata_max_age_ms,
                backoff_ms=options.retry_backoff_ms,
                backoff_max_ms=options.retry_backoff_max_ms,
                clock=self._clock,
                security=options.dial_security(),
            )
        except ValueError as wrong:
            raise BadSetting(f"bootstrap_servers: {wrong}") from None
        backoff = Backoff(options.retry_backoff_ms, options.retry_backoff_max_ms, self._chance.random)
        self._sender = Sender(options, self._view, self._clock, backoff)
        self._accumulator = Accumulator(options, self._clock, self._sender.nudge, self._chance)
        self._transactions: TransactionDriver | None = None
        if options.transactional_id is not None:
            from penstock.client.producer.transactions.driver import TransactionDriver

            self._transactions = self._sender.transactions = TransactionDriver(
                options, self._view, backoff, self._sender, self._doors
            )
        # Until the loop is known, and again after closing, appending takes another way.
        self._append: Any = self._start_and_append
        self._started = False
        self._closing = False

    async def __aenter__(self) -> Producer:
        self._start()
        if self._transactions is not None:
            try:
                await self._transactions.initialise()
            except BaseException:
                await self.close(0)
                raise
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        interrupted = kind is not None and not issubclass(kind, Exception)
        await self.close(INTERRUPTED_CLOSE_MS if interrupted else None)

    @carried_out_by(SendFront.send)
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
    ) -> Delivery:
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
    ) -> Delivery:
        """What the kernel's `send` cannot do by itself: begins batches, waits for room, learns about topics."""
        delivery: Delivery | None = self._append(topic, value, key, partition, timestamp, headers, on_delivery)
        if delivery is None:
            return self._park(topic, value, key, partition, timestamp, headers, on_delivery)
        return delivery

    def send_batch(
        self,
        topic: str,
        values: Sequence[Payload | None],
        *,
        keys: Sequence[Payload | None] | None = None,
        headers: Sequence[Headers] | None = None,
        timestamps: Sequence[int] | None = None,
        partition: int | None = None,
    ) -> BulkDelivery:
        """Sends a record for each value, at a fraction of the cost of as many `send`s. Await it for a `BatchReport`.

        The lists must stay as they are until then.
        """
        self._start_to_send()
        return self._send_rows(topic, ListRows(values, keys, headers, timestamps, self._clock.now_ms()), partition)

    def send_arrow(
        self,
        topic: str,
        table: pyarrow.RecordBatch | pyarrow.Table,
        *,
        partition: int | None = None,
    ) -> BulkDelivery:
        """Sends a record for each row of an Arrow table or record batch, without making Python objects of them.

        Columns: `value` and `key` (binary or string), `timestamp` (milliseconds or an Arrow timestamp), `headers`
        (list<struct<key, value>>), `partition` (integers; null leaves the choice to the partitioner). One of the first
        two must be there. `topic` and `offset` of a consumer's batch are ignored, other names are an error.
        """
        from penstock.client.producer.arrow_rows import arrow_rows

        self._start_to_send()
        return self._send_rows(topic, arrow_rows(table, self._clock.now_ms()), partition)

    def _send_rows(self, topic: str, rows: Rows, partition: int | None) -> BulkDelivery:
        delivery = BulkDelivery(topic, rows.count)
        bulk = Bulk(topic, rows, partition)
        accumulator = self._accumulator
        with accumulator.lock:
            if accumulator.knows(topic, partition) and not accumulator.waiting and bulk.fill(accumulator, delivery):
                if delivery.failure is not None and accumulator.on_lost is not None:
                    accumulator.on_lost(delivery.failure)
                return delivery
            deadline_ms = self._clock.monotonic_ms() + self.settings.max_block_ms
            unknown = accumulator.park(ParkedBulk(topic, bulk, delivery, rows.bytes, deadline_ms))
        if unknown:
            self._sender.learn(topic)
        return delivery

    def _park(
        self,
        topic: str,
        value: Payload | None,
        key: Payload | None,
        partition: int | None,
        timestamp: int | None,
        headers: Headers,
        on_delivery: OnDelivery | None,
    ) -> Delivery:
        # What cannot be sent is told now, and not when its turn comes.
        if words := unsendable(topic, value, key, partition, timestamp, headers):
            raise TypeError(words)
        at = self._clock.now_ms() if timestamp is None else timestamp
        deadline_ms = self._clock.monotonic_ms() + self.settings.max_block_ms
        parked = Parked(topic, value, key, partition, at, headers, on_delivery, deadline_ms)
        self._accumulator.check_size(parked.size, f"topic {topic!r}")
        delivery = self._accumulator.kind(parked, 0, at)
        if self._accumulator.park(parked):
            self._sender.learn(topic)
        parked.delivery = delivery
        self._sender.nudge()  # so that its deadline is kept
        return delivery

    async def wait_for_room(self) -> None:
        """Returns when there is room for many more records; lets the loop run in any case.

        The way to send without awaiting deliveries and without running into `BufferFull`.
        """
        self._start()
        await asyncio.sleep(0)
        accumulator = self._accumulator
        while not accumulator.roomy and not self._closing:
            with accumulator.lock:
                accumulator.all_due()  # what lingers would hold the room
            future = asyncio.get_running_loop().create_future()
            accumulator.room_wakers.append(waker(future))
            await future

    # Transactions.

    def adopt(self, producer: ProducerEpoch, transaction_version: int) -> None:
        """Goes on with what `Admin.begin_producers` was given for this `transactional_id`, in whatever process.

        In place of asking for a producer id, which would fence; call it first, and once. `transaction_version` is the
        level of that feature in the cluster. Two producers with one epoch write over each other: give each to one.
        The blocking twin has no such call: it asks as soon as it is made.
        """
        self._transactional().adopt(producer, transaction_version)

    @property
    def producer_epoch(self) -> ProducerEpoch | None:
        """As whom brokers know it in transactions; the epoch rises as they end."""
        return self._transactional().machine.producer

    async def begin(self) -> None:
        """Begins a transaction: what is sent from now on is shown to readers with the commit, or never.

        The first one fences every older producer with this `transactional_id`, and what that left open is aborted.
        """
        await self._transactional().begin()

    async def commit(self) -> None:
        """Sends what is left and commits; returns when it is decided, and readers will see it within moments.

        TransactionAbortable when something was lost: `abort()`, and do it again. TransactionFenced when another one
        took over. TimedOutWaiting after `max_block_ms`: then the outcome is open, and calling again waits on.
        """
        await self._transactional().commit()

    async def abort(self) -> None:
        """Ends the transaction so that readers with isolation_level="read_committed" never see anything of it."""
        await self._transactional().abort()

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncIterator[Producer]:
        """Begins a transaction, and commits it at the end of the block, or aborts it when the block raises.

            async with producer.transaction():
                producer.send("orders", b"value")
                await producer.send_offsets(consumer)

        When the commit raises TransactionAbortable, the transaction has been aborted.
        """
        transactions = self._transactional()
        await transactions.begin()
        try:
            yield self
        except BaseException as failure:
            interrupted = not isinstance(failure, Exception)
            # What the block raised is what its caller has to know; a producer that is over says so at its next call.
            with contextlib.suppress(ClientError):
                await transactions.abort(INTERRUPTED_CLOSE_MS if interrupted else None)
            raise
        try:
            await transactions.commit()
        except TransactionAbortable:
            with contextlib.suppress(ClientError):
                await transactions.abort()
            raise

    async def send_offsets(
        self,
        consumer: Consumer | GroupMetadata,
        offsets: Mapping[tuple[str, int], OffsetAndMetadata | int] | None = None,
    ) -> None:
        """Commits a group's offsets with the transaction: how far `consumer` has given records, or `offsets`.

        The consumer needs `auto_commit=False`. In place of it, `GroupMetadata` says which group. TransactionAbortable
        when others have the partitions by now.
        """
        transactions = self._transactional()
        group, given = whose_offsets(consumer, offsets)
        await transactions.send_offsets(group, given)

    async def prepare(self) -> PreparedTransaction:
        """Sends what is left and leaves the end of the transaction to `Admin.end_transaction`, in any process.

        It is aborted when `transaction_timeout_ms` is over before that. Close this producer, or end it here after all.
        """
        return await self._transactional().prepare()

    def _transactional(self) -> TransactionDriver:
        if self._transactions is None:
            raise BadSetting("transactions need a transactional_id")
        self._start_open()
        return self._transactions

    def _doors(self, opened: bool) -> None:
        """A transaction has begun, or takes no more records."""
        if opened and not self._closing:
            self._append, self._desk = self._accumulator.append, self._accumulator
        elif not self._closing:
            self._append, self._desk = self._refuse_outside, None

    # All of it.

    async def flush(self, timeout_ms: float | None = None) -> None:
        """Returns when everything that was sent before is delivered or has failed; TimedOutWaiting."""
        self._start()
        accumulator = self._accumulator
        with accumulator.lock:
            accumulator.flushing += 1
            accumulator.all_due()
            batches = list(accumulator.pending)
            items = [*accumulator.waiting, *(item for queue in accumulator.unknown.values() for item in queue)]
            parked = [item.delivery for item in items]
        try:
            async with asyncio.timeout(None if timeout_ms is None else timeout_ms / 1000):
                for delivery in parked:
                    await _quietly(delivery)
                for batch in batches:
                    await _quietly(Delivery(batch, 0, -1))
                    for whole in batch.wholes():
                        await _quietly(Delivery(whole, 0, -1))
        except TimeoutError:
            raise TimedOutWaiting(f"not everything was delivered within {timeout_ms:.0f} ms") from None
        finally:
            accumulator.flushing -= 1

    async def close(self, timeout_ms: float | None = None) -> None:
        """Sends what is left, for up to `timeout_ms`, and ends. What is not delivered by then fails with `Closed`."""
        if self._closing:
            return
        self._closing = True
        self._append = self._refuse
        self._desk = None
        try:
            if self._started:
                if self._transactions is not None:
                    await self._transactions.close(timeout_ms)
                await self.flush(timeout_ms)
        except TimedOutWaiting:
            pass
        finally:
            self._shut()
        # Connections are closed by the loop in its next round.
        await asyncio.sleep(0)

    def _shut(self) -> None:
        if self._started:
            failure = Closed("the producer was closed before the record was delivered")
            accumulator = self._accumulator
            with accumulator.lock:
                items = accumulator.take_parked()
            for item in items:
                item.fail(failure)
            self._sender.answers.fail_everything(failure)
            accumulator.wake_all()
            self._sender.stop()
        self._view.close()

    async def partitions_for(self, topic: str) -> list[int]:
        """The partitions of a topic, which is created if brokers do that; UnknownTopic after `max_block_ms`."""
        self._start()
        options = self.settings
        found = await self._view.topic(topic, create=options.create_topics, timeout_ms=options.max_block_ms)
        return [partition.index for partition in found.partitions]

    def metrics(self) -> dict[str, int]:
        """Totals and the present state of the buffer."""
        accumulator = self._accumulator
        return {
            **self._sender.metrics.as_dict(),
            "buffer_total_bytes": self.settings.buffer_memory,
            "buffer_available_bytes": accumulator.free_bytes,
            "batches_under_way": len(accumulator.pending),
            "waiting_bytes": accumulator.waiting_bytes,
            "requests_in_flight": self._sender.in_flight,
            "epoch_bumps": self._sender.identity.bumps,
        }

    # The beginning and the end.

    def _start(self) -> None:
        """Takes the running loop, once."""
        if self._started:
            return
        if self._closing:
            raise Closed("the producer is closed")
        loop = asyncio.get_running_loop()
        self._started = True
        self._sender.start(loop, self._accumulator, threads=self._threads)
        on_jump(self._clock, lambda: _from_any_thread(loop, self._sender.pump))
        if self._transactions is not None:
            self._append = self._refuse_outside
            return
        self._append = self._accumulator.append
        self._desk = self._accumulator

    def _start_open(self) -> None:
        """The same for what a closed producer must refuse."""
        if self._closing:
            raise Closed("the producer is closed")
        self._start()

    def _start_to_send(self) -> None:
        """The same for what is refused outside of a transaction, if there are transactions."""
        self._start_open()
        if self._transactions is not None:
            self._transactions.check_open()

    def _start_and_append(self, *record: Any) -> Delivery | None:
        self._start()
        delivery: Delivery | None = self._append(*record)
        return delivery

    def _refuse(self, *_: Any) -> Delivery | None:
        raise Closed("the producer is closed")

    def _refuse_outside(self, *record: Any) -> Delivery | None:
        assert self._transactions is not None, "there are transactions"
        self._transactions.check_open()
        # Another thread has begun one just now.
        return self._accumulator.append(*record)


def whose_offsets(
    consumer: Any, offsets: Mapping[tuple[str, int], OffsetAndMetadata | int] | None
) -> tuple[GroupMetadata, Mapping[TopicPartition, OffsetAndMetadata]]:
    """The group and the offsets that a transaction shall commit, of a consumer of either kind or as they are given."""
    from penstock.client.consumer.offsets import GroupMetadata, as_committed

    if isinstance(consumer, GroupMetadata):
        if offsets is None:
            raise ValueError("send_offsets of a group needs the offsets, or a consumer that has them")
        if consumer.generation > 0 and not consumer.member_id:
            raise ValueError("a generation needs the member_id that belongs to it")
        return consumer, as_committed(offsets)
    if consumer.settings.auto_commit and consumer.settings.group_id is not None:
        raise BadSetting(
            "send_offsets needs a consumer with auto_commit=False: else it commits outside of transactions"
        )
    group = consumer.group_metadata()
    return group, consumer.positions() if offsets is None else as_committed(offsets)


async def _quietly(delivery: Delivery | BulkDelivery | None) -> None:
    """Waits; failures are for those who asked."""
    assert delivery is not None
    while not delivery.done():
        future = asyncio.get_running_loop().create_future()
        delivery.add_waker(waker(future))
        await future


def _from_any_thread(loop: asyncio.AbstractEventLoop, call: Any) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(call)
