"""What answers mean for batches: delivered, again, in two halves, or not at all. See `lane.py` for the order."""

from __future__ import annotations

import logging
from typing import Any, Protocol

from penstock.client.cluster_view import ClusterView
from penstock.client.errors import (
    ClientError,
    NotReachable,
    TimedOutWaiting,
    TransactionAbortable,
    link_failure,
    refusal,
)
from penstock.client.producer.accumulator import Accumulator
from penstock.client.producer.channel import Channel
from penstock.client.producer.delivery import NO_OFFSET, fresh
from penstock.client.producer.identity import Identity
from penstock.client.producer.lane import Batch, Lane
from penstock.client.producer.metrics import ProducerMetrics
from penstock.client.producer.requests import Verdict, endpoints, verdicts
from penstock.client.retry import Backoff
from penstock.client.settings import ProducerSettings
from penstock.model.errors import (
    CONCURRENT_TRANSACTIONS,
    DUPLICATE_SEQUENCE_NUMBER,
    FENCED_LEADER_EPOCH,
    INVALID_PRODUCER_EPOCH,
    KAFKA_STORAGE_ERROR,
    LEADER_NOT_AVAILABLE,
    MESSAGE_TOO_LARGE,
    NETWORK_EXCEPTION,
    NONE,
    NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    NOT_LEADER_OR_FOLLOWER,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    PRODUCER_FENCED,
    REQUEST_TIMED_OUT,
    UNKNOWN_PRODUCER_ID,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    error_of,
)
from penstock.protocol.messages.produce import ProduceRequest, ProduceResponse
from penstock.transport.dial import LinkError

log = logging.getLogger("penstock.client")

MARKERS_PAUSE_MS = 20
"""The transaction before is being ended on this partition; a usual pause would cost more than that does."""

_MOVED = frozenset(
    error.code
    for error in (
        NOT_LEADER_OR_FOLLOWER,
        LEADER_NOT_AVAILABLE,
        UNKNOWN_TOPIC_OR_PARTITION,
        UNKNOWN_TOPIC_ID,
        FENCED_LEADER_EPOCH,
        KAFKA_STORAGE_ERROR,
        NETWORK_EXCEPTION,
    )
)
"""The broker that was asked is not, or no longer, the one."""

_PERHAPS_WRITTEN = frozenset(
    error.code for error in (REQUEST_TIMED_OUT, NOT_ENOUGH_REPLICAS_AFTER_APPEND, NETWORK_EXCEPTION)
)


_OF_THE_PRODUCER = frozenset(error.code for error in (INVALID_PRODUCER_EPOCH, PRODUCER_FENCED, UNKNOWN_PRODUCER_ID))


class Settling(Protocol):
    """Is told of batches that have their answer."""

    def settled(self, batches: list[Batch]) -> None: ...


class Sending(Protocol):
    """What answers change besides batches: the part of the sender that they need."""

    settings: ProducerSettings
    view: ClusterView
    backoff: Backoff
    identity: Identity
    metrics: ProducerMetrics
    accumulator: Accumulator

    @property
    def transactions(self) -> Settling | None:
        """Whoever waits for every answer before a transaction ends."""

    def nudge(self) -> None: ...
    def refresh(self, topic: str | None) -> None: ...
    def rest(self, lane: Lane, delay_ms: float) -> None: ...
    def mute(self, channel: Channel, throttle_ms: int) -> None: ...


class Answers:
    """Judges what came back. Batches are settled under the lock and those who wait are told outside of it."""

    def __init__(self, sender: Sending) -> None:
        self._sender = sender
        self._told: list[Batch] = []

    # What came back.

    def arrived(
        self,
        channel: Channel,
        request: ProduceRequest,
        version: int,
        batches: list[Batch],
        reply: ProduceResponse | None,
        error: LinkError | None,
    ) -> None:
        if reply is None:
            assert error is not None
            self.unknown(batches, error)
            return
        found = verdicts(reply, request, version)
        if any(verdict.leader is not None for verdict in found.values()):
            self._hints(reply, found)
        accumulator = self._sender.accumulator
        with accumulator.lock:
            for batch in batches:
                verdict = found.get((batch.lane.topic, batch.lane.partition))
                if verdict is None:
                    self._doubt(batch, NotReachable("the reply leaves the partition out", retriable=True))
                elif verdict.code in (NONE.code, DUPLICATE_SEQUENCE_NUMBER.code):
                    self._accept(batch, verdict.base_offset, verdict.append_time)
                else:
                    self._judge(batch, verdict)
            self._after(batches)
        if reply.throttle_time_ms > 0:
            self._sender.mute(channel, reply.throttle_time_ms)
        self.tell()

    def unknown(self, batches: list[Batch], error: LinkError) -> None:
        """No answer: nobody knows whether the broker has them."""
        failure = link_failure(error)
        with self._sender.accumulator.lock:
            for batch in batches:
                self._doubt(batch, failure)
            self._after(batches)
        self._sender.refresh(batches[0].lane.topic)
        self.tell()

    def unconfirmed(self, batches: list[Batch]) -> None:
        """Sent with acks=0."""
        with self._sender.accumulator.lock:
            for batch in batches:
                self._accept(batch, NO_OFFSET, -1)
            self._after(batches)
        self.tell()

    def refused(self, batches: list[Batch], failure: ClientError) -> None:
        """Cannot be sent at all."""
        with self._sender.accumulator.lock:
            for batch in batches:
                batch.lane.land(batch)
                self._give_up(batch, failure)
            self._after(batches)
        self.tell()

    def _after(self, batches: list[Batch]) -> None:
        accumulator = self._sender.accumulator
        for batch in batches:
            if batch.lane.has_work() and not batch.lane.resting:
                accumulator.ready[batch.lane] = None
        accumulator.serve_waiting()
        self._sender.nudge()

    # One batch.

    def _accept(self, batch: Batch, base_offset: int, append_time: int) -> None:
        batch.lane.land(batch)
        batch.lane.accepted(batch)
        if batch.done:  # it came too late for those who waited
            self._sender.accumulator.release(batch)
            return
        self._sender.metrics.records_sent += batch.count
        self._settle(batch, base_offset, append_time, None)

    def _doubt(self, batch: Batch, failure: ClientError) -> None:
        batch.lane.land(batch)
        batch.doubtful = True
        self._again(batch, failure)

    def _judge(self, batch: Batch, verdict: Verdict) -> None:
        lane = batch.lane
        lane.land(batch)
        code = verdict.code
        failure = refusal(code, verdict.why, lane.name)
        if self._sender.transactions is not None and code in _OF_THE_PRODUCER and batch.sequence >= 0:
            # A transaction ends with what went wrong in it; only its end brings another epoch.
            batch.doubtful = False
            self._give_up(batch, failure)
        elif code in (OUT_OF_ORDER_SEQUENCE_NUMBER.code, UNKNOWN_PRODUCER_ID.code) and batch.sequence >= 0:
            # Only what is not written can be out of order. If it is not because of one before it, it never will be.
            batch.doubtful = False
            lost = code == OUT_OF_ORDER_SEQUENCE_NUMBER.code and not lane.broken and lane.came_too_late(batch)
            if lost or batch.done:
                self._give_up(batch, failure)
                return
            if code == UNKNOWN_PRODUCER_ID.code:
                lane.broken = True
            self._again(batch, failure, rest=not lane.flying and not lane.broken)
        elif code in (INVALID_PRODUCER_EPOCH.code, PRODUCER_FENCED.code) and batch.sequence >= 0:
            if lane.producer == self._sender.identity.current:
                self._sender.identity.forget()
            lane.broken = True
            batch.doubtful = False
            self._again(batch, failure)
        elif code == MESSAGE_TOO_LARGE.code and batch.count > 1 and not batch.done:
            self._split(batch)
        elif error_of(code).retriable:
            batch.doubtful = batch.doubtful or code in _PERHAPS_WRITTEN
            hinted = verdict.leader is not None and lane.leader == verdict.leader[0]
            if code == CONCURRENT_TRANSACTIONS.code and not lane.resting:
                self._sender.rest(lane, MARKERS_PAUSE_MS)
            self._again(batch, failure, rest=not hinted)
            if code in _MOVED and not hinted:
                self._sender.refresh(lane.topic)
        else:
            self._give_up(batch, failure)

    def _again(self, batch: Batch, failure: ClientError, rest: bool = True) -> None:
        """Puts a batch back, unless it has had its chances."""
        sender, lane = self._sender, batch.lane
        batch.last_error = failure
        if batch.done:  # given up while it was out; whether it is written stays open
            lane.lost(batch)
            sender.accumulator.release(batch)
        elif batch.attempts > sender.settings.retries:
            self._give_up(batch, failure)
        else:
            sender.metrics.retries += 1
            lane.again(batch)
        if rest and not lane.resting:
            lane.failures += 1
            sender.rest(lane, sender.backoff.delay_ms(lane.failures))

    def _split(self, batch: Batch) -> None:
        """The halves may fit where the whole did not."""
        accumulator = self._sender.accumulator
        self._sender.metrics.splits += 1
        log.info("%s: a batch of %d records is too large for the broker; it goes in two", batch.lane.name, batch.count)
        accumulator.pending.pop(batch, None)
        pieces = batch.split()
        batch.lane.replace(batch, pieces)
        for piece in reversed(pieces):
            accumulator.expiring.appendleft(piece)
        accumulator.pending.update(dict.fromkeys(pieces))

    def _give_up(self, batch: Batch, failure: ClientError) -> None:
        """The batch has landed and will not be sent again."""
        batch.lane.lost(batch)
        if batch.done:
            self._sender.accumulator.release(batch)
        else:
            self._settle(batch, NO_OFFSET, -1, failure)

    def expire(self, batch: Batch) -> None:
        """delivery_timeout_ms is over. Called under the lock."""
        lane = batch.lane
        last = "" if batch.last_error is None else f"; last: {batch.last_error}"
        why = f"not delivered within {self._sender.settings.delivery_timeout_ms} ms (delivery_timeout_ms){last}"
        self.drop(batch, TimedOutWaiting(why, where=lane.name, retriable=True))

    def drop(self, batch: Batch, failure: ClientError) -> None:
        """Fails a batch wherever it is. Called under the lock."""
        if not batch.flying:
            batch.lane.drop(batch)
            batch.lane.lost(batch)
        self._settle(batch, NO_OFFSET, -1, failure)

    def fail_everything(self, failure: ClientError) -> None:
        """Fails all batches that are under way."""
        accumulator = self._sender.accumulator
        with accumulator.lock:
            for batch in list(accumulator.pending):
                self.drop(batch, failure)
            accumulator.serve_waiting()
        self.tell()

    def _settle(self, batch: Batch, base_offset: int, append_time: int, failure: ClientError | None) -> None:
        batch.settle(base_offset, append_time, failure)
        accumulator = self._sender.accumulator
        accumulator.pending.pop(batch, None)
        if not batch.flying:
            accumulator.release(batch)
        if failure is not None:
            self._sender.metrics.records_failed += batch.count
        self._told.append(batch)

    def tell(self) -> None:
        """Wakes those who wait for what was settled. Called without the lock: they may send at once."""
        told, self._told = self._told, []
        for batch in told:
            unheard = batch.failure is not None and not batch.waiters and not batch.callbacks
            if unheard and not isinstance(batch.failure, TransactionAbortable):
                log.error("%d records were not delivered: %s", batch.count, batch.failure)
            for _, wake in batch.waiters:
                wake()
            batch.waiters = []
            callbacks, batch.callbacks = batch.callbacks, []
            for index, timestamp, callback in callbacks:
                _call(callback, batch, index, timestamp)
        if self._sender.transactions is not None:
            self._sender.transactions.settled(told)

    def _hints(self, reply: ProduceResponse, found: dict[tuple[str, int], Verdict]) -> None:
        """KIP-951: the broker names the leader, and where it is."""
        where = endpoints(reply)
        for (topic, partition), verdict in found.items():
            if verdict.leader is not None:
                leader, epoch = verdict.leader
                self._sender.view.learned(topic, partition, leader, epoch, where.get(leader))


def _call(callback: Any, batch: Batch, index: int, timestamp: int) -> None:
    try:
        if batch.failure is not None:
            callback(None, fresh(batch.failure))
        else:
            callback(batch.report(index, timestamp), None)
    except Exception:
        log.exception("an on_delivery callback raised")
