"""Obeys the machine of a transaction: asks coordinators, drains the buffer, wakes whoever waits.

Everything runs on the loop. Calls wait for up to `max_block_ms`; what they have begun goes on without them, so that a
caller who gave up learns the outcome from the same call made again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

from penstock.client.cluster_view import ClusterView
from penstock.client.errors import ClientError, TimedOutWaiting, link_failure
from penstock.client.producer.accumulator import Accumulator
from penstock.client.producer.answers import Answers
from penstock.client.producer.delivery import fresh
from penstock.client.producer.identity import Identity
from penstock.client.producer.lane import Batch, Lane
from penstock.client.producer.transactions.effects import (
    Adopt,
    Drain,
    Effect,
    FailAll,
    ForgetCoordinator,
    Release,
    Send,
)
from penstock.client.producer.transactions.machine import OffsetsJob, State, TransactionMachine
from penstock.client.producer.transactions.messages import PRODUCE_NEWEST
from penstock.client.producer.transactions.prepared import PreparedTransaction, ProducerEpoch
from penstock.client.retry import Backoff
from penstock.client.settings import ProducerSettings
from penstock.model.errors import PenstockError
from penstock.model.ids import TopicPartition
from penstock.protocol.wire import schema_of
from penstock.transport.dial import Link, LinkError, TimedOut, Unsupported

if TYPE_CHECKING:
    from penstock.client.consumer.offsets import GroupMetadata, OffsetAndMetadata

FEATURE: Final = "transaction.version"


class Sending(Protocol):
    """The part of the sender that transactions need."""

    identity: Identity
    accumulator: Accumulator
    answers: Answers

    @property
    def in_flight(self) -> int: ...
    def nudge(self) -> None: ...
    def wake(self, lane: Lane) -> None: ...


class TransactionDriver:
    """The transactions of one producer, from `start` to `stop`.

    `doors` is called with True when records may be sent and with False when they may not, before anything else.
    """

    def __init__(
        self,
        settings: ProducerSettings,
        view: ClusterView,
        backoff: Backoff,
        sender: Sending,
        doors: Callable[[bool], None],
    ) -> None:
        assert settings.transactional_id is not None, "transactions have an id"
        self.machine = TransactionMachine(settings.transactional_id, settings.transaction_timeout_ms, backoff)
        self._settings, self._view, self._sender, self._doors = settings, view, sender, doors
        self._opened = False
        self._held: dict[tuple[str, int], Lane] = {}  # lanes whose partition has to be added first
        self._draining = False
        self._discards: ClientError | None = None
        self._losses: list[ClientError] = []
        self._wakers: list[asyncio.Future[None]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._soon = False
        self._stopped = False

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def stop(self) -> None:
        """Ends every task; nobody waits any more."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
        for task in list(self._tasks):
            task.cancel()

    # What the application calls.

    def initialise_soon(self) -> None:
        """Asks for a producer id; who begins waits for it.

        Early, because readers of a group wait for offsets that the producer before left open, and only this ends them.
        """
        self._call(self.machine.initialise)

    async def initialise(self) -> None:
        """Returns when there is a producer id; what the one before left open is aborted by then."""
        self.initialise_soon()
        await self._until(lambda: self.machine.state is not State.INITIALIZING, "the transaction coordinator", "begin")
        if self.machine.state in (State.UNINITIALIZED, State.FATAL):
            assert self.machine.failure is not None, "it says why"
            raise fresh(self.machine.failure)

    def adopt(self, producer: ProducerEpoch, transaction_version: int) -> None:
        self._call(lambda now: self.machine.adopt(producer, transaction_version, now))

    async def begin(self) -> None:
        if self.machine.state in (State.UNINITIALIZED, State.INITIALIZING):
            await self.initialise()
        self._call(self.machine.begin)

    async def commit(self) -> None:
        self._call(self.machine.commit)
        await self._ended("commit")

    async def abort(self, timeout_ms: float | None = None) -> None:
        self._call(self.machine.abort)
        await self._ended("abort", timeout_ms)

    async def prepare(self) -> PreparedTransaction:
        self._call(self.machine.prepare)
        machine = self.machine
        await self._until(lambda: machine.prepared is not None or machine.state is not State.PREPARED, "", "prepare")
        if machine.prepared is None:
            assert machine.failure is not None, "only a failure takes it out of that state"
            raise fresh(machine.failure)
        return machine.prepared

    async def send_offsets(self, group: GroupMetadata, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        self.check_open()
        if not offsets:
            return
        job = OffsetsJob(group, dict(offsets))
        self._call(lambda now: self.machine.add_offsets(job, now))
        await self._until(lambda: job.done or job.failure is not None, f"group {group.group_id!r}", "send_offsets")
        if job.failure is not None:
            raise fresh(job.failure)

    def check_open(self) -> None:
        """ClientError unless records may be sent."""
        try:
            self.machine.check_open()
        except ClientError as refused:
            raise fresh(refused) from refused.__cause__

    async def close(self, timeout_ms: float | None) -> None:
        """Aborts what is open and waits for what is ending. What is prepared is left to whoever ends it."""
        try:
            if self.machine.state in (State.OPEN, State.ABORTABLE):
                await self.abort(timeout_ms)
            elif self.machine.ending:
                await self._ended("close", timeout_ms)
        except ClientError:
            return  # the coordinator aborts it when its time is over

    def _call(self, event: Callable[[float], list[Effect]]) -> None:
        try:
            effects = event(self._now())
        except ClientError as refused:
            raise fresh(refused) from refused.__cause__
        self._feed(effects)

    async def _ended(self, call: str, timeout_ms: float | None = None) -> None:
        await self._until(lambda: not self.machine.ending, "", call, timeout_ms)
        try:
            self.machine.take_outcome()
        except ClientError as failed:
            raise fresh(failed) from failed.__cause__

    async def _until(self, happened: Callable[[], bool], whom: str, call: str, timeout_ms: float | None = None) -> None:
        limit_ms = self._settings.max_block_ms if timeout_ms is None else timeout_ms
        try:
            async with asyncio.timeout(limit_ms / 1000):
                while not happened():
                    waker = self._loop.create_future()
                    self._wakers.append(waker)
                    await waker
        except TimeoutError:
            missing = f"no answer from {whom}" if whom else "not ended"
            raise TimedOutWaiting(
                f"{missing} within {limit_ms:.0f} ms; it is tried on, and {call}() may be called again",
                where=self.machine.where,
                retriable=True,
            ) from None

    # What the sender calls.

    @property
    def produce_newest(self) -> int | None:
        """The newest version of Produce that the transaction of now may use; None for any."""
        return None if self.machine.bumping else PRODUCE_NEWEST

    def admits(self, lane: Lane) -> bool:
        """Whether a batch of the lane may be sent. Called under the lock."""
        partition = (lane.topic, lane.partition)
        if self.machine.admits(partition):
            return True
        self._held[partition] = lane
        if not self._soon:
            self._soon = True
            self._loop.call_soon(self._ask_for_held)
        return False

    def _ask_for_held(self) -> None:
        self._soon = False
        if not self._stopped:
            self._feed(self.machine.tick(self._now()))

    def settled(self, batches: list[Batch]) -> None:
        """Batches have their answers, or there is something else to look at. Called without the lock."""
        if self._stopped:
            return
        for batch in batches:
            if batch.failure is not None and batch.failure is not self._discards:
                self._losses.append(batch.failure)
        if self._losses:
            self._tell_losses()
        if self._draining:
            self._look_if_drained()

    def lose(self, failure: ClientError) -> None:
        """Records got no place in a batch and never will. Called under the lock."""
        self._losses.append(failure)
        self._loop.call_soon(self._tell_losses)

    def _tell_losses(self) -> None:
        losses, self._losses = self._losses, []
        for failure in losses:
            if not self._stopped:
                self._feed(self.machine.batch_failed(failure, self._now()))

    # Effects.

    def _now(self) -> float:
        # The loop's time, as that of its timers: pauses between tries are not what a clock of the caller's is for.
        return self._loop.time() * 1000

    def _feed(self, effects: list[Effect]) -> None:
        self._set_doors()
        for effect in effects:
            self._obey(effect)
        self._arm()
        wakers, self._wakers = self._wakers, []
        for waker in wakers:
            if not waker.done():
                waker.set_result(None)

    def _set_doors(self) -> None:
        opened = self.machine.state is State.OPEN
        if opened is not self._opened:
            self._opened = opened
            self._doors(opened)

    def _obey(self, effect: Effect) -> None:
        match effect:
            case Send():
                self._spawn(self._ask(effect))
            case ForgetCoordinator(kind, name):
                self._view.forget_coordinator(name, kind)
            case Adopt(producer):
                self._sender.identity.current = (producer.producer_id, producer.epoch)
                self._sender.nudge()
            case Release(partitions):
                for partition in partitions:
                    lane = self._held.pop(partition, None)
                    if lane is not None:
                        self._sender.wake(lane)
            case Drain(failure):
                self._drain(failure)
            case FailAll(failure):
                self._held.clear()
                self._loop.call_soon(self._fail_all, failure)

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        at = self.machine.deadline()
        if at is not None and not self._stopped:
            # Coarser than the clock, so that a timer never fires just before its deadline and spins.
            self._timer = self._loop.call_later((max(at - self._now(), 0.0) + 1) / 1000, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._feed(self.machine.tick(self._now()))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # Asking.

    async def _ask(self, sent: Send) -> None:
        reached = False
        try:
            node = await self._view.coordinator(sent.name, sent.kind)
            link = await self._view.link(node)
            version = _version(link, sent)
            self.machine.levels(self._view.finalized(FEATURE))
            reached = True
            reply = await link.request(sent.request, version, self._settings.request_timeout_ms)
        except PenstockError as broken:
            if isinstance(broken, TimedOut):
                # Brokers answer a connection in order: whatever comes next would wait behind this one.
                link.abort()
            failure = _told(broken)
            self._feed(self.machine.unanswered(sent, failure, self._now(), reached=reached))
        else:
            self._feed(self.machine.replied(sent, reply, self._now()))

    # Draining.

    def _drain(self, failure: ClientError | None) -> None:
        """Sends what is left, or gives up what no broker has, until nothing is under way."""
        accumulator = self._sender.accumulator
        with accumulator.lock:
            accumulator.close_all_open()
            if not self._draining:
                accumulator.flushing += 1
            accumulator.all_due()
        self._draining, self._discards = True, failure
        # Not from inside: whoever told the machine may be telling others about batches.
        self._loop.call_soon(self._look_if_drained)

    def _look_if_drained(self) -> None:
        if not self._draining or self._stopped:
            return
        self._tell_losses()  # nothing is committed whose loss is only on its way here
        accumulator = self._sender.accumulator
        if self._discards is not None:
            self._discard(self._discards)
        if not self._draining or accumulator.pending or accumulator.parked or self._sender.in_flight:
            return
        self._draining = False
        accumulator.flushing -= 1
        self._held.clear()
        self._feed(self.machine.quiet(self._now()))

    def _discard(self, failure: ClientError) -> None:
        """Gives up what was not sent, or was sent and surely refused. The rest has to be waited for."""
        accumulator, answers = self._sender.accumulator, self._sender.answers
        with accumulator.lock:
            unsent = [batch for batch in accumulator.pending if not batch.flying and not batch.doubtful]
            numbered = any(batch.numbered for batch in unsent)
            for batch in unsent:
                answers.drop(batch, failure)
            parked = accumulator.take_parked()
        if numbered:
            self.machine.sequences_lost()
        for item in parked:
            item.fail(failure)
        if unsent:
            answers.tell()

    def _fail_all(self, failure: ClientError) -> None:
        accumulator = self._sender.accumulator
        with accumulator.lock:
            parked = accumulator.take_parked()
        for item in parked:
            item.fail(failure)
        self._sender.answers.fail_everything(failure)


def _version(link: Link, sent: Send) -> int:
    version = link.newest(schema_of(type(sent.request)).key, sent.newest)
    if version < sent.oldest:
        raise Unsupported(link.host, link.port, f"the broker is too old: {sent.api.value} {sent.oldest} is needed")
    return version


def _told(broken: PenstockError) -> ClientError:
    if isinstance(broken, ClientError):
        return broken
    if isinstance(broken, LinkError):
        return link_failure(broken)
    return ClientError(str(broken))
