"""One coordinator and its log, partitions that take markers, producers, and a network between them; time is a number.

After every event the oracles hold that are about a coordinator: markers have the kind of a committed Prepare (1), each
record follows from the one before and the log alone gives the state (2), the answer is the outcome (8), epochs and
producer ids belong to one producer (12); and in the end nothing is left open (14).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from random import Random
from typing import Any

from penstock.coordinators.decision import Caller, Decision, Moment, StateRecord
from penstock.coordinators.transactions.effects import SendMarkers
from penstock.coordinators.transactions.records import state_record
from penstock.coordinators.transactions.requests import AddPartitions, Partition, PartitionsAdded
from penstock.coordinators.transactions.settings import TransactionSettings
from penstock.coordinators.transactions.shard import TransactionShard
from penstock.coordinators.transactions.transaction import PREPARED, Status
from penstock.coordinators.transactions.transitions import first
from penstock.metadata.features import TRANSACTION_VERSION
from penstock.metadata.image import ClusterImage
from penstock.model.errors import COORDINATOR_NOT_AVAILABLE, NONE, NOT_COORDINATOR, ErrorCode
from penstock.model.ids import Epoch, Millis, Offset
from penstock.protocol.codec import decode, encode
from penstock.protocol.disk.transaction_records import TransactionLogValue
from penstock.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from penstock.protocol.messages.init_producer_id import InitProducerIdResponse
from tests.sim.transactions.faults import Faults
from tests.sim.transactions.partitions import PartitionLog, Written
from tests.sim.transactions.producer import FATAL, Producer, error_of
from tests.sim.transactions.records import check_follows, places

WALL_AT_START = 1_700_000_000_000
SILENCE_MS = 800
INTERVAL_MS = 1_000
TIMEOUTS_MS = (1_500, 4_000)
STALL_MAX_MS = 8_000
EPOCH_MAX = 32_767
SETTINGS = TransactionSettings.fixed(
    {
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": INTERVAL_MS,
        "transaction.remove.expired.transaction.cleanup.interval.ms": 5_000,
        "transactional.id.expiration.ms": 8_000,
    }
)
LONG_LIVED = TransactionSettings.fixed({"transaction.abort.timed.out.transaction.cleanup.interval.ms": INTERVAL_MS})


class Markers:
    """An effect under way: what is left of it."""

    __slots__ = ("effect", "left", "tenure")

    def __init__(self, effect: SendMarkers, tenure: int) -> None:
        self.effect, self.tenure = effect, tenure
        self.left = set(effect.partitions)


class World:
    """Events by time."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.faults = Faults.drawn(self.rng)
        self.time = 0
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._order = 0
        self.story: list[tuple[int, str]] = []
        self.counts: dict[str, int] = {}
        # The cluster and the log.
        self.image = ClusterImage()
        self.set_version(self.rng.choice((0, 1, 2, 2, 2, 2)))
        self.settings = SETTINGS if self.rng.random() < 0.3 else LONG_LIVED
        self.log: list[StateRecord] = []
        self.committed = 0
        self._commit_at = 0
        self._last: dict[str, TransactionLogValue | None] = {}
        self.epoch = Epoch(0)
        self._next_producer_id = 1_000
        # The coordinator.
        self.shard: TransactionShard | None = None
        self._twin = self._new_shard()
        self._tenure = 0
        self._writable = True
        self._tick_skew = self._wall_skew = 0
        self._wake_at: int | None = None
        self._waiting: list[tuple[int, Callable[[bool], None]]] = []
        # Everybody else.
        self.places: list[Partition] = [("t", index) for index in range(self.rng.randint(1, 4))]
        self.partitions = {place: PartitionLog(place) for place in self.places}
        self._owners: dict[tuple[int, int], str] = {}
        self._ids: dict[int, str] = {}
        self.written: list[Written] = []
        self.producers: list[Producer] = []
        self._plant()
        self._load()

    # Time

    def after(self, delay_ms: int, act: Callable[[], None]) -> None:
        self._order += 1
        heapq.heappush(self._events, (self.time + delay_ms, self._order, act))

    def run(self, until: int) -> None:
        events = self._events
        while events and events[0][0] <= until:
            self.time, _, act = heapq.heappop(events)
            act()
        self.time = until

    def note(self, what: str) -> None:
        self.story.append((self.time, what))

    def count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    # The cluster

    def set_version(self, level: int) -> None:
        self.image = ClusterImage()
        self.image.features[TRANSACTION_VERSION] = level

    @property
    def transaction_version(self) -> int:
        return self.image.features[TRANSACTION_VERSION]

    def raise_version(self) -> None:
        level = min(self.transaction_version + 1, 2)
        self.set_version(level)
        self.note(f"transaction.version is {level}")
        if self.shard is not None:
            self.shard.see(self.image)

    def trouble(self, until: int) -> None:
        """Plans what happens to the coordinator, at the rates of this world."""
        faults, rng = self.faults, self.rng
        self._plan(faults.failover_every_ms, until, self.fail_over)
        self._plan(faults.lead_on_every_ms, until, self.lead_on)
        self._plan(faults.unwritable_every_ms, until, self._lose_replicas)
        if rng.random() < 0.3:
            self.after(rng.randrange(until), self.raise_version)

    def _plan(self, every_ms: int, until: int, act: Callable[[], None]) -> None:
        if every_ms:
            at = self.rng.expovariate(1 / every_ms)
            while at < until:
                self.after(int(at), act)
                at += self.rng.expovariate(1 / every_ms)

    def _plant(self) -> None:
        """Ids that have been busy for years: nearly all of their epochs are used up."""
        for number in range(3):
            if self.rng.random() < 0.4:
                self._next_producer_id += 1
                state = first(self._next_producer_id, TIMEOUTS_MS[0], Millis(WALL_AT_START))
                state = state._replace(epoch=self.rng.randint(32_758, 32_766))
                record = state_record(f"id-{number}", state, self._twin.table.value_version)
                self._append(record)
        self.committed = len(self.log)

    # The coordinator

    def moment(self) -> Moment:
        return Moment(
            Millis(WALL_AT_START + self.time + self._wall_skew), self.time + self._tick_skew, Offset(self.committed)
        )

    def _new_shard(self) -> TransactionShard:
        return TransactionShard(self.settings, self.image, next_producer_id=self._producer_id)

    def _producer_id(self) -> int | None:
        if self.rng.random() < self.faults.no_producer_id:
            return None
        self._next_producer_id += 1
        return self._next_producer_id

    def _append(self, record: StateRecord) -> StateRecord:
        """Oracle 2, and that a producer id belongs to one transactional id."""
        key: Any = record.key
        name, value = key.transactional_id, record.value
        stored = record
        if value is not None:
            assert isinstance(value, TransactionLogValue)
            decoded, _ = decode(TransactionLogValue, record.value_version, encode(value, record.value_version))
            stored = StateRecord(key, decoded, record.value_version)
            check_follows(self._last.get(name), decoded, record.value_version)
            assert self._ids.setdefault(decoded.producer_id, name) == name, "a producer id has two ids"
        else:
            check_follows(self._last.get(name), None, 0)
        self._last[name] = stored.value  # type: ignore[assignment]  # seen above
        self._twin.apply(stored, Offset(len(self.log)))
        self.log.append(stored)
        return stored

    def _carry_out(self, decision: Decision, leave: Callable[[bool], None] | None = None) -> None:
        """Writes and applies at once; replies and effects leave when everything written so far is committed."""
        shard = self.shard
        assert shard is not None
        for record in decision.records:
            self._append(record)
            shard.apply(record, Offset(len(self.log) - 1))
            self._check_state(record)
        end = len(self.log)
        if decision.effects:
            tenure, effects = self._tenure, decision.effects
            self._when_committed(end, lambda held: self._let_out(held, tenure, effects))
        if leave is not None:
            self._when_committed(end, leave)
        if decision.records:
            self._commit_later(end)
        self._plan_wake()

    def _check_state(self, record: StateRecord) -> None:
        assert self.shard is not None
        key: Any = record.key
        live = self.shard.table.transactions.get(key.transactional_id)
        twin = self._twin.table.transactions.get(key.transactional_id)
        if live is None or twin is None:
            assert live is twin
        else:
            assert live.state == twin.state, "the log says what the coordinator holds"

    def _when_committed(self, end: int, leave: Callable[[bool], None]) -> None:
        if self.committed >= end:
            leave(True)
        else:
            self._waiting.append((end, leave))

    def _commit_later(self, end: int) -> None:
        self._commit_at = max(self._commit_at, self.time + self.rng.randint(0, self.faults.commit_delay_max_ms))
        if self._commit_at == self.time:
            self._commit(end)
        else:
            tenure = self._tenure
            self.after(self._commit_at - self.time, lambda: self._commit(end) if tenure == self._tenure else None)

    def _commit(self, end: int) -> None:
        self.committed = max(self.committed, min(end, len(self.log)))
        waiting, self._waiting = self._waiting, []
        for at, leave in waiting:
            self._when_committed(at, leave)

    def _plan_wake(self) -> None:
        assert self.shard is not None
        deadline = self.shard.next_deadline()
        if deadline is not None:
            self._wake_by(max(deadline - self._tick_skew, self.time))

    def _wake_by(self, when: int) -> None:
        if self._wake_at is None or when < self._wake_at:
            self._wake_at = when
            self.after(when - self.time, lambda: self._wake(when))

    def _wake(self, when: int) -> None:
        if self._wake_at != when or self.shard is None:
            return
        self._wake_at = None
        if not self._writable:
            self._wake_by(self.time + 100)
            return
        for decision in self.shard.expire(self.moment()):
            if decision.records:
                self.count("by the clock")
            self._carry_out(decision)
        self._plan_wake()

    def _lose_replicas(self) -> None:
        self._writable = False
        self.after(self.rng.randrange(1, 1_500), self._regain_replicas)

    def _regain_replicas(self) -> None:
        self._writable = True

    def lead_on(self) -> None:
        """The same node leads in another epoch, with the shard that it has."""
        self.epoch = Epoch(self.epoch + 1)
        if self.shard is None:
            return
        self.count("led on")
        self.note(f"led in epoch {self.epoch}")
        self._tenure_ends(len(self.log))
        for decision in self.shard.led(self.epoch, self.moment()):
            self._carry_out(decision)

    def fail_over(self) -> None:
        """The coordinator goes down. What was not committed may be lost, from some point on."""
        if self.shard is None:
            return
        self.count("failovers")
        kept = self.rng.randint(self.committed, len(self.log))
        self.note(f"the coordinator fails; {len(self.log) - kept} records are lost")
        self.shard, self._wake_at = None, None
        del self.log[kept:]
        self._tenure_ends(kept)
        self._last = {}
        for record in self.log:
            key: Any = record.key
            self._last[key.transactional_id] = record.value  # type: ignore[assignment]  # values are of one kind
        self.after(self.rng.choice((0, 50, 1_000)), self._load)

    def _tenure_ends(self, end: int) -> None:
        """Effects that have not left are void, whoever waits hears nothing; what is in the log is committed in time."""
        self._tenure += 1
        waiting, self._waiting = self._waiting, []
        for _, leave in waiting:
            leave(False)
        self._commit_at = self.time
        self._commit_later(end)

    def _load(self) -> None:
        """Another node reads the log, which may have been compacted in the meantime."""
        if self.shard is not None:
            return
        self.epoch = Epoch(self.epoch + 1)
        self._wall_skew, self._tick_skew = self.rng.randint(-300, 300), self.rng.randrange(1_000_000)
        self.shard, self._twin = self._new_shard(), self._new_shard()
        shown = set(_compacted(self.log)) if self.rng.random() < 0.5 else None
        for offset, record in enumerate(self.log):
            self._twin.apply(record, Offset(offset))
            if shown is None or offset in shown:
                self.shard.apply(record, Offset(offset))
        self.check_replay()
        for decision in self.shard.loaded(self.moment()):
            self._carry_out(decision)
        for decision in self.shard.led(self.epoch, self.moment()):
            self._carry_out(decision)
        self._plan_wake()

    def check_replay(self) -> None:
        """Oracle 2: the log, compacted or not, gives the state."""
        assert self.shard is not None
        live = {name: held.state for name, held in self.shard.table.transactions.items()}
        assert live == {name: held.state for name, held in self._twin.table.transactions.items()}

    # The network

    def send(self, producer: Producer, number: int, request: object, version: int) -> None:
        life, faults, rng = producer.life, self.faults, self.rng
        if rng.random() < faults.lost:
            self.after(SILENCE_MS, lambda: producer.on_silence(life, number))
        else:
            self.after(self._delay(), lambda: self._deliver(producer, life, number, request, version))
        late_end = isinstance(request, EndTxnRequest) and version < 5
        if rng.random() < faults.doubled and not late_end:
            # Nobody waits for the answer to a double, which may come when the world has moved on. The classic end is
            # spared: it would end the next transaction, which no coordinator can tell from the one that is meant.
            delay = self._delay() + rng.randrange(rng.choice((50, 3_000)))
            self.after(delay, lambda: self._deliver(producer, -1, number, request, version))

    def _delay(self) -> int:
        most = self.faults.delay_max_ms
        return self.rng.randrange(most) if most > 1 else 0

    def _deliver(self, producer: Producer, life: int, number: int, request: object, version: int) -> None:
        if self.shard is None or not self._writable:
            error = NOT_COORDINATOR if self.shard is None else COORDINATOR_NOT_AVAILABLE
            self._reply(producer, life, number, _refused(request, error))
            return
        decision = self.shard.decide(request, Caller(producer.name, "/127.0.0.1", version, None), self.moment())
        reply = decision.reply
        assert reply is not None
        if producer.awaits(life, number):
            self._check_refusal(request, reply, version)

        def leave(held: bool) -> None:
            if held:
                self._check_reply(request, reply)
                self._reply(producer, life, number, reply)
            else:
                self.after(SILENCE_MS, lambda: producer.on_silence(life, number))

        self._carry_out(decision, leave)

    def _reply(self, producer: Producer, life: int, number: int, reply: object) -> None:
        if life < 0:
            return
        if self.rng.random() < self.faults.lost:
            self.after(SILENCE_MS, lambda: producer.on_silence(life, number))
        else:
            self.after(self._delay(), lambda: producer.on_reply(life, number, reply))

    def _check_refusal(self, request: Any, reply: object, version: int) -> None:
        """Oracle 9: who is told that it is over has been replaced, or has run out of time."""
        value = self._last.get(request.transactional_id)
        if value is None or error_of(reply) not in FATAL or self.transaction_version == 0:
            return  # without room for the next producer id the last epoch is the end
        asks = request.producer_id, request.producer_epoch
        current = asks == (value.producer_id, value.producer_epoch)
        to_come = -1 != value.next_producer_id == request.producer_id
        assert not current, f"{request} is refused, and nobody came after it: {value}"
        assert not to_come, f"{request} is refused, and it is next: {value}"
        if isinstance(request, EndTxnRequest) and version >= 5 and value.client_transaction_version >= 2:
            ended = value.transaction_status == (Status.COMPLETE_COMMIT if request.committed else Status.COMPLETE_ABORT)
            rotated = (value.previous_producer_id, EPOCH_MAX - 1) == asks and value.producer_epoch == 0
            repeats = rotated or asks == (value.producer_id, value.producer_epoch - 1)
            assert not (ended and repeats), f"{request} is refused, and has come true: {value}"

    def _check_reply(self, request: object, reply: object) -> None:
        """Oracle 12: nobody is told the epoch behind the last. Oracle 8: what was added is committed."""
        if isinstance(reply, InitProducerIdResponse | EndTxnResponse):
            assert reply.producer_epoch < EPOCH_MAX, "the epoch behind the last is told"
        elif isinstance(request, AddPartitions) and set(reply.errors.values()) == {NONE}:  # type: ignore[attr-defined]
            value = self._committed_of(request.transactional_id)
            assert value is not None, f"{request} is answered and not committed"
            assert (value.producer_id, value.producer_epoch) == (request.producer_id, request.producer_epoch)
            assert places(value) >= set(request.partitions), f"{request} is answered and not committed"

    def _committed_of(self, name: str) -> TransactionLogValue | None:
        """The last record of an id that is committed."""
        for offset in range(self.committed - 1, -1, -1):
            record = self.log[offset]
            key: Any = record.key
            if key.transactional_id == name:
                assert record.value is None or isinstance(record.value, TransactionLogValue)
                return record.value
        return None

    # Partitions

    def write(self, place: Partition, producer_id: int, epoch: int, written: Written) -> bool:
        """A batch, which its leader has verified: what is committed says that the partition belongs to it."""
        value = self._committed_of(self._ids[producer_id])
        if value is None or value.transaction_status != Status.ONGOING:
            return False
        if (value.producer_id, value.producer_epoch) != (producer_id, epoch) or place not in places(value):
            return False
        if not written.partitions:
            self.written.append(written)
        return self.partitions[place].write(producer_id, epoch, written)

    def begun(self, producer: Producer, producer_id: int, epoch: int) -> None:
        """Oracle 12: an epoch of a producer id belongs to one process."""
        owner = self._owners.setdefault((producer_id, epoch), repr(producer))
        assert owner == repr(producer), f"({producer_id}, {epoch}) belongs to {owner} and to {producer}"

    def stall_ms(self) -> int:
        """A producer that takes longer than its transactions may."""
        return self.rng.randrange(STALL_MAX_MS) if self.rng.random() < self.faults.stalls else 0

    def may_crash(self) -> bool:
        return self.rng.random() < self.faults.crashes

    def mourn(self, producer: Producer) -> None:
        """A producer has died; another process takes its place."""
        life = producer.life
        self.after(self.rng.randrange(10, 3_000), lambda: self._restart(producer, life))

    def _restart(self, producer: Producer, life: int) -> None:
        if producer.life == life and not producer.stops:
            producer.start(per_transaction=self.speaks_new())

    def speaks_new(self) -> bool:
        """Which protocol the next process has: clients look at the feature, and some know only the classic one."""
        if self.transaction_version >= 2:
            return self.rng.random() < 0.7
        return self.rng.random() < 0.1

    # Markers

    def _let_out(self, held: bool, tenure: int, effects: Iterable[object]) -> None:
        if not held or tenure != self._tenure:
            return
        for effect in effects:
            assert isinstance(effect, SendMarkers)
            self._check_effect(effect)
            self.count("markers")
            markers = Markers(effect, tenure)
            for place in effect.partitions:
                self._send_marker(markers, place)

    def _check_effect(self, effect: SendMarkers) -> None:
        """Oracle 1: what is committed last of the id is a Prepare of the same kind."""
        assert effect.coordinator_epoch == self.epoch, "an effect of another epoch is let out"
        value = self._committed_of(effect.transactional_id)
        assert value is not None, f"{effect} is let out and nothing is committed"
        kind = Status.PREPARE_COMMIT if effect.commits else Status.PREPARE_ABORT
        assert value.transaction_status == kind, f"{effect} is let out behind {value}"
        assert (value.producer_id, value.producer_epoch) == (effect.producer_id, effect.producer_epoch)
        assert places(value) == set(effect.partitions)

    def _send_marker(self, markers: Markers, place: Partition) -> None:
        most = self.faults.marker_delay_max_ms
        delay = self.rng.randrange(most) if most > 1 else 0
        if self.rng.random() < self.faults.marker_lost:
            # Its leader is away, or the answer is lost: it is sent again.
            if self.rng.random() < 0.5:
                self.after(delay, lambda: self._arrive(markers, place, heard=False))
            self.after(delay + 200, lambda: self._send_again(markers, place))
        else:
            self.after(delay, lambda: self._arrive(markers, place, heard=True))
        if self.rng.random() < self.faults.zombie_markers:
            self.after(delay + self.rng.randrange(3_000), lambda: self._haunt(markers.effect, place))

    def _send_again(self, markers: Markers, place: Partition) -> None:
        if markers.tenure == self._tenure:
            self._send_marker(markers, place)

    def _haunt(self, effect: SendMarkers, place: Partition) -> None:
        """A marker comes late, or twice, from somebody who may coordinate no more.

        Of a classic transaction only while it is that transaction's turn: a repeated marker of an equal epoch would end
        the next one, which no partition can tell from the one that is meant.
        """
        if effect.transaction_version < 2:
            last = self._last.get(effect.transactional_id)
            meant = (effect.producer_id, effect.producer_epoch)
            if last is None or last.transaction_status not in PREPARED:
                return
            if (last.producer_id, last.producer_epoch) != meant or self.committed < len(self.log):
                return
            if (last.transaction_status == Status.PREPARE_COMMIT) != effect.commits:
                return
        self.count("zombie markers")
        self.partitions[place].mark(effect)

    def _arrive(self, markers: Markers, place: Partition, *, heard: bool) -> None:
        if markers.tenure != self._tenure:
            return
        error = self.partitions[place].mark(markers.effect)
        if error is not NONE:
            self._tell(markers, lambda shard, now: shard.markers_refused(markers.effect, error, now))
        elif heard:
            self._marked(markers, place)

    def _marked(self, markers: Markers, place: Partition) -> None:
        effect = markers.effect
        markers.left.discard(place)
        if self.rng.random() < 0.5:
            self._tell(markers, lambda shard, now: shard.partitions_marked(effect, [place], now))
        if not markers.left:
            self._tell(markers, lambda shard, now: shard.markers_written(effect, now))
            if self.rng.random() < self.faults.zombie_markers:
                # Whoever tells may tell twice.
                again = self.rng.randrange(1_000)
                self.after(again, lambda: self._tell(markers, lambda shard, now: shard.markers_written(effect, now)))

    def _tell(self, markers: Markers, decide: Callable[[TransactionShard, Moment], Decision]) -> None:
        if markers.tenure != self._tenure or self.shard is None:
            return
        if not self._writable:
            self.after(100, lambda: self._tell(markers, decide))
            return
        self._carry_out(decide(self.shard, self.moment()))

    # The end

    def heal(self) -> None:
        """Whatever was broken works again; it still takes its time."""
        self.faults = Faults.healed()
        self._writable = True
        if self.shard is None:
            self._load()

    def check_at_rest(self) -> None:
        """Oracle 14: whoever is gone holds nobody up."""
        assert self.shard is not None
        self.check_replay()
        table = self.shard.table
        for transaction in table.transactions.values():
            assert transaction.state.status not in PREPARED, f"{transaction.id} waits for markers: {transaction.state}"
            assert transaction.state.status is not Status.ONGOING, f"{transaction.id} goes on: {transaction.state}"
        assert not table.deadlines
        assert not table.prepared
        assert not table.refused
        for partition in self.partitions.values():
            assert not partition.open, f"open in {partition.place}: {partition.open}"
        for written in self.written:
            assert written.outcomes.keys() == written.partitions, f"{written} is not ended everywhere"
            written.check()


def _compacted(log: list[StateRecord]) -> Iterable[int]:
    """Where the last record of every key lies."""
    return {record.key.transactional_id: offset for offset, record in enumerate(log)}.values()  # type: ignore[attr-defined]


def _refused(request: object, error: ErrorCode) -> object:
    if isinstance(request, AddPartitions):
        return PartitionsAdded.all_with(error, request.partitions)
    if isinstance(request, EndTxnRequest):
        return EndTxnResponse(error_code=error.code)
    return InitProducerIdResponse(error_code=error.code, producer_epoch=-1)
