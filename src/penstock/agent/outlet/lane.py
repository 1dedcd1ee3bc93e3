"""One input's shipments, in order: waiting, under way, failed and to be tried again, in the spool."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Protocol

from penstock.agent.counting import Counts
from penstock.agent.environment import monotonic_ms
from penstock.agent.inputs.input import Done, StagedDone
from penstock.agent.outlet.memory import Share
from penstock.agent.outlet.shipment import Shipment
from penstock.agent.outlet.spooling import Spooling, SpoolingOutlet
from penstock.agent.outlet.unsendable import again, dead_letters, too_large, too_large_words, why_never
from penstock.agent.portion import EVENT_OVERHEAD_BYTES, Parcel
from penstock.client.errors import ClientError, Closed, TransactionAbortable, TransactionFenced, UnknownTopic
from penstock.client.producer.delivery import BulkDelivery

if TYPE_CHECKING:
    from penstock.agent.outlet.column_producer import ColumnProducer
    from penstock.agent.outlet.topics import Topics
    from penstock.client.retry import Backoff

log = logging.getLogger("penstock.agent")

_ENDED = (TransactionAbortable, TransactionFenced, Closed)
"""What records fail with that were only in the company of others."""


class LaneOutlet(SpoolingOutlet, Protocol):
    """What a lane asks of the outlet that it belongs to, and tells it."""

    producer: ColumnProducer
    topics: Topics
    record_bytes_max: int
    backoff: Backoff
    closing: bool

    def took_off(self, shipment: Shipment, /) -> None: ...

    def landed(self, shipment: Shipment, /) -> None: ...

    def settled(self) -> None: ...


class Lane:
    """The queue of one input.

    `queue` waits, first what is in the spool too; `flying` is in the producer's hands; `failed` waits until everything
    that is flying has landed, and then goes first again: so nothing newer overtakes it. With `exactly_once` what has
    landed is `uncommitted`, with all of its records, until its transaction is committed, or aborted: then all of it
    goes first again, in the same order.
    """

    def __init__(self, name: str, outlet: LaneOutlet, share: Share, counts: Counts, *, spools: bool) -> None:
        self.name, self.share, self.counts = name, share, counts
        self.retired = False
        """Nothing more comes; it goes when it is empty."""
        self.queue: deque[Shipment] = deque()
        self.flying: dict[Shipment, None] = {}
        self.uncommitted: dict[Shipment, None] = {}
        self.failed: list[Shipment] = []
        self.flying_bytes = 0
        self.spooling = Spooling(self, outlet) if spools and outlet.spool is not None else None
        self._outlet = outlet
        self._numbers = 0
        self._failures = 0
        self._resting: asyncio.TimerHandle | None = None
        self._needs_rest = False
        self._awaits_topic = False
        self._progress_ms = 0.0

    # In.

    def ship(self, parcels: list[Parcel], size_bytes: int, dead_letters: str | None, done: Done) -> None:
        """Takes what a portion became; its memory is charged already."""
        self.queue.append(Shipment(parcels, size_bytes, dead_letters, done))
        if self.spooling is not None:
            self.spooling.arrived()
        self._outlet.pump()

    def put_first(self, shipments: list[Shipment]) -> None:
        """What goes before everything that waits."""
        self.queue.extendleft(reversed(shipments))

    # State.

    @property
    def idle(self) -> bool:
        """Nothing waits and nothing is under way; what only the spool has does not count."""
        return not self.queue and not self.flying and not self.uncommitted and not self.failed

    @property
    def unsafe(self) -> bool:
        """Whether something would be lost, or would have to be read again, if the agent ended now."""
        return any(not shipment.safe for shipment in chain(self.flying, self.uncommitted, self.failed, self.queue))

    @property
    def oldest(self) -> Shipment | None:
        """What has been in the producer's hands for the longest time."""
        return next(iter(self.flying), None)

    @property
    def _waiting(self) -> bool:
        """Whether brokers owe an answer, or have refused something that is tried again."""
        held_up = self._held_up and bool(self.uncommitted or self.queue)
        return bool(self.flying or self.failed) or held_up or self._failures > 0 or self._awaits_topic

    @property
    def _held_up(self) -> bool:
        """Whether brokers owe the end of a transaction, before which nothing takes off."""
        transactions = self._outlet.transactions
        return transactions is not None and not transactions.open

    def _begin_waiting(self) -> None:
        """Silence is counted from now, if nothing is waited for yet."""
        if not self._waiting:
            self._progress_ms = monotonic_ms()

    @property
    def silent_ms(self) -> float:
        """How long something has been waiting without any acknowledgement."""
        if not self._waiting:
            return 0.0
        since_ms, transactions = self._progress_ms, self._outlet.transactions
        if transactions is not None and self._held_up and not self.flying:
            since_ms = max(since_ms, transactions.closed_since_ms)
        return monotonic_ms() - since_ms

    @property
    def ready(self) -> bool:
        """Whether `hand_over` may be called."""
        if not self.queue or self.failed or self._resting is not None or self._awaits_topic:
            return False
        first = self.queue[0]
        # What was in an aborted transaction is older than all that the spool has.
        older = self._outlet.transactions is not None and first.number > 0
        return self.spooling is None or not self.spooling.active or first.kept is not None or older

    # Out.

    def hand_over(self) -> None:
        """Gives the first shipment to the producer; or finds that its topic is not known yet."""
        shipment = self.queue[0]
        if not self._topics_known(shipment):
            return
        self.queue.popleft()
        self._screen(shipment)
        if self._outlet.transactions is not None and shipment.dead_later:
            # All of a transaction is seen at once: nothing has to be later.
            shipment.dead, shipment.dead_later = [*shipment.dead, *shipment.dead_later], []
            if not self._topics_known(shipment):
                self.queue.appendleft(shipment)
                return
        if not shipment.parcels and not shipment.dead:
            self._next_leg(shipment)
            if self.failed and not self.flying:
                self._mend()
            return
        self._begin_waiting()
        self._numbers += 1
        shipment.number, shipment.took_off_ms = self._numbers, monotonic_ms()
        self.flying[shipment] = None
        self.flying_bytes += shipment.size_bytes
        self._outlet.took_off(shipment)
        send = self._send
        shipment.fly([*map(send, shipment.parcels), *map(send, shipment.dead)], self._landed)

    def _send(self, parcel: Parcel) -> BulkDelivery:
        try:
            return self._outlet.producer.send_batch(
                parcel.topic,
                parcel.sent_values(),
                keys=parcel.keys,
                headers=parcel.headers,
                timestamps=parcel.timestamps_ms,
            )
        except ClientError as wrong:
            failed = BulkDelivery(parcel.topic, len(parcel.values))
            failed.all_placed(wrong)
            return failed

    def _topics_known(self, shipment: Shipment) -> bool:
        topics = self._outlet.topics
        for parcel in (*shipment.parcels, *shipment.dead):
            if not topics.known(parcel.topic) and topics.refusal(parcel.topic) is None:
                topics.ask(parcel.topic)
                self._begin_waiting()
                self._awaits_topic = True
                return False
        return True

    def topic_answered(self) -> None:
        """Some topic is known better than before."""
        self._awaits_topic = False

    def _screen(self, shipment: Shipment) -> None:
        """Takes out what can be seen to be unsendable."""
        topics, limit = self._outlet.topics, self._outlet.record_bytes_max
        kept: list[Parcel] = []
        dead: list[Parcel] = []
        for parcel in shipment.parcels:
            words = topics.refusal(parcel.topic)
            if words is not None:
                rows: Sequence[int] = range(len(parcel.values))
                self._bury(shipment, parcel, rows, [words] * len(rows), dead)
            elif large := too_large(parcel, limit):
                self._bury(shipment, parcel, large, [too_large_words(parcel, row, limit) for row in large], dead)
                others = sorted(set(range(len(parcel.values))).difference(large))
                kept += again(parcel, others, Closed("")) if others else []
            else:
                kept.append(parcel)
        shipment.parcels = kept
        for parcel in shipment.dead:
            words = topics.refusal(parcel.topic)
            if words is not None:
                self._drop(parcel, len(parcel.values), words)
        shipment.dead = [parcel for parcel in shipment.dead if topics.refusal(parcel.topic) is None]
        shipment.dead_later += dead

    # Back.

    def _landed(self, shipment: Shipment) -> None:
        del self.flying[shipment]
        self.flying_bytes -= shipment.size_bytes
        outlet = self._outlet
        outlet.landed(shipment)
        if not outlet.closing and any(delivery.delivered for delivery in shipment.deliveries):
            self._progress_ms = monotonic_ms()
        if outlet.transactions is not None:
            self.uncommitted[shipment] = None
            if any(delivery.exception() is not None for delivery in shipment.deliveries):
                outlet.transactions.spoiled()
            outlet.pump()
            return
        if all(delivery.exception() is None for delivery in shipment.deliveries):
            self._failures = 0
            self._count_out(shipment)
            shipment.parcels, shipment.dead = [], []
            self._next_leg(shipment)
        elif outlet.closing:
            return
        else:
            self._sort_out(shipment)
        if self.failed and not self.flying:
            self._mend()
        outlet.pump()

    # Transactions.

    def stage(self) -> None:
        """All that took off is in the transaction that is about to be committed."""
        for shipment in (*self.uncommitted, *self.flying):
            if isinstance(shipment.done, StagedDone):
                shipment.done.stage()
            if shipment.mark is not None and self.spooling is not None and self.spooling.marks is not None:
                self.spooling.marks.stage(shipment.mark, in_order=shipment.in_order)

    def committed(self) -> None:
        """It was committed, and everything had landed."""
        assert not self.flying, "what flies is in no committed transaction"
        landed, self.uncommitted = self.uncommitted, {}
        self._failures = 0
        for shipment in landed:
            self._count_out(shipment)
            shipment.parcels, shipment.dead = [], []
            if shipment.mark is not None and self.spooling is not None and self.spooling.marks is not None:
                self.spooling.marks.committed(shipment.mark, in_order=shipment.in_order)
            self._settle(shipment)

    def aborted(self) -> None:
        """It was aborted: all of it goes first again, but for records that no broker will ever take."""
        assert not self.flying, "what flies may still land"
        landed, self.uncommitted = self.uncommitted, {}
        for shipment in landed:
            if isinstance(shipment.done, StagedDone):
                shipment.done.unstage()
            self._sort_out_again(shipment)
            self.failed.append(shipment)
        if self.spooling is not None and self.spooling.marks is not None:
            self.spooling.marks.unstage()
        if self.failed:
            self._mend()

    def _sort_out_again(self, shipment: Shipment) -> None:
        dead: list[Parcel] = []
        parts: tuple[list[Parcel], list[Parcel]] = ([], [])
        sent = (*shipment.parcels, *shipment.dead)
        for index, (parcel, delivery) in enumerate(zip(sent, shipment.deliveries, strict=True)):
            is_dead = index >= len(shipment.parcels)
            parts[is_dead].extend(self._left_of(shipment, parcel, delivery, None if is_dead else dead))
        shipment.parcels, shipment.dead = parts
        shipment.dead += dead

    def _left_of(
        self, shipment: Shipment, parcel: Parcel, delivery: BulkDelivery, dead: list[Parcel] | None
    ) -> list[Parcel]:
        """What of a parcel is to be sent again: all that may ever be taken, in its order."""
        refused = [(rows, why) for rows, why in delivery.failures() if not isinstance(why, _ENDED)]
        limit = self._outlet.record_bytes_max
        never = {row: words for rows, why in refused for row in rows if (words := why_never(parcel, row, why, limit))}
        if never:
            rows = sorted(never)
            if dead is None:
                self._drop(parcel, len(rows), never[rows[0]])
            else:
                self._bury(shipment, parcel, rows, [never[row] for row in rows], dead)
        others = [row for row in range(len(parcel.values)) if row not in never]
        if not refused or not others:
            return [parcel] if others else []
        why = refused[0][1]
        self.counts.retried += len(others)
        if isinstance(why, UnknownTopic):
            self._outlet.topics.forget(parcel.topic)
        if not never:
            self._needs_rest = True
            self._outlet.tell(f"input {self.name}: {why}; {len(others)} records are tried again")
        return again(parcel, others, why)

    def _count_out(self, shipment: Shipment) -> None:
        counts = self.counts
        counts.events_out += sum(len(parcel.values) for parcel in shipment.parcels)
        counts.dead += sum(len(parcel.values) for parcel in shipment.dead)
        counts.bytes_out += max(shipment.size_bytes - EVENT_OVERHEAD_BYTES * shipment.records, 0)

    def _sort_out(self, shipment: Shipment) -> None:
        """Some records failed: they are tried again, become dead letters, or are given up."""
        retry: list[Parcel] = []
        dead: list[Parcel] = []
        dead_again: list[Parcel] = []
        for index, (parcel, delivery) in enumerate(
            zip((*shipment.parcels, *shipment.dead), shipment.deliveries, strict=True)
        ):
            is_dead = index >= len(shipment.parcels)
            delivered = delivery.delivered
            if is_dead:
                self.counts.dead += delivered
            else:
                self.counts.events_out += delivered
            for rows, failure in delivery.failures():
                self._judge(
                    shipment, parcel, rows, failure, dead_again if is_dead else retry, None if is_dead else dead
                )
        shipment.parcels, shipment.dead = retry, dead_again
        shipment.dead_later += dead
        self._next_leg(shipment)

    def _next_leg(self, shipment: Shipment) -> None:
        """What is left of it goes first as soon as everything has landed; when nothing is, it has arrived."""
        if not shipment.parcels and not shipment.dead:
            shipment.dead, shipment.dead_later = shipment.dead_later, []
        if shipment.parcels or shipment.dead:
            self.failed.append(shipment)
        else:
            self._settle(shipment)

    def _judge(
        self,
        shipment: Shipment,
        parcel: Parcel,
        rows: Sequence[int],
        failure: ClientError,
        retry: list[Parcel],
        dead: list[Parcel] | None,
    ) -> None:
        """`dead` is None for what is a dead letter already."""
        never = {
            row: words for row in rows if (words := why_never(parcel, row, failure, self._outlet.record_bytes_max))
        }
        others = sorted(row for row in rows if row not in never)
        if never:
            if dead is None:
                self._drop(parcel, len(never), next(iter(never.values())))
            else:
                self._bury(shipment, parcel, sorted(never), [never[row] for row in sorted(never)], dead)
        if others:
            self.counts.retried += len(others)
            retry += again(parcel, others, failure)
            if isinstance(failure, UnknownTopic):
                self._outlet.topics.forget(parcel.topic)
            if not isinstance(failure, Closed) and not never:
                self._needs_rest = True
                self._outlet.tell(f"input {self.name}: {failure}; {len(others)} records are tried again")

    def _bury(
        self, shipment: Shipment, parcel: Parcel, rows: Sequence[int], why: Sequence[str], dead: list[Parcel]
    ) -> None:
        """Records that can never be sent: to dead letters if there is a topic for them, which is not their own."""
        topic = shipment.dead_letters
        if topic is None or topic == parcel.topic:
            self._drop(parcel, len(rows), why[0])
            return
        dead.append(dead_letters(parcel, rows, why, topic))
        self._outlet.tell(f"input {self.name}: {len(rows)} records go to dead letters ({topic}): {why[0]}")

    def _drop(self, parcel: Parcel, records: int, why: str) -> None:
        self.counts.unsendable += records
        self._outlet.tell(f"input {self.name}: {records} records for {parcel.topic!r} can never be sent: {why}")

    def _mend(self) -> None:
        """What failed goes first, in its order."""
        self.put_first(sorted(self.failed, key=lambda each: each.number))
        self.failed = []
        if self._needs_rest:
            self._needs_rest = False
            self._failures += 1
            delay_s = self._outlet.backoff.delay_ms(self._failures) / 1000
            self._resting = asyncio.get_running_loop().call_later(delay_s, self._rested)

    def _rested(self) -> None:
        self._resting = None
        self._outlet.pump()

    def _settle(self, shipment: Shipment) -> None:
        """Every record is where it can be."""
        shipment.settled = True
        if shipment.kept is not None:
            assert self.spooling is not None, "only lanes that spool have something in the spool"
            self.spooling.free(shipment.kept)
        self.make_safe(shipment)

    def make_safe(self, shipment: Shipment) -> None:
        """Gives the memory back and tells the input, once."""
        if shipment.charge_bytes:
            charge, shipment.charge_bytes = shipment.charge_bytes, 0
            self.share.give_back(charge)
        done, shipment.done = shipment.done, None
        if done is not None:
            try:
                done()
            except Exception:
                # An input's mistake must not stop the producer, which is telling others too.
                log.exception("input %s failed to take note of an acknowledgement", self.name)
        self._outlet.settled()

    def close(self) -> None:
        if self._resting is not None:
            self._resting.cancel()
        if self.spooling is not None:
            self.spooling.close()
