"""A second coordinator, which has nothing to do with groups: a desk that lends each thing to one borrower at a time.

A loan has a number that only rises. Who wants a thing that is lent waits until it is returned, or until the time of the
loan is over. Every loan is announced to the world outside, which is an effect; that it was announced is written down.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from zlib import crc32

from penstock.coordinators.decision import Answer, Caller, Decision, Effect, Moment, StateRecord
from penstock.coordinators.shard import Demand
from penstock.coordinators.timers import Timers
from penstock.metadata.delta import Delta
from penstock.metadata.image import ClusterImage
from penstock.model.errors import NONE, NOT_COORDINATOR, ErrorCode
from penstock.model.ids import Epoch, Millis, Offset
from penstock.protocol.wire import boolean, int32, int64, message, string
from penstock.server.coordinating.records import RecordReader

# -- its records


@message(key=0, kind="coordinator-key", versions="0", flexible="none")
class LoanKey:
    thing: str = string()


@message(key=0, kind="coordinator-value", versions="0", flexible="none")
class LoanValue:
    number: int = int64()
    borrower: str = string()
    for_ms: int = int32()
    announced: bool = boolean()


READER = RecordReader(lambda number: (LoanKey, LoanValue) if number == 0 else None)


# -- what it is asked, and answers


@dataclass(frozen=True)
class Borrow:
    thing: str
    borrower: str
    for_ms: int = 1_000


@dataclass(frozen=True)
class Return:
    thing: str
    number: int


@dataclass(frozen=True)
class Inquire:
    thing: str


class Reply(NamedTuple):
    """`settled` tells whether the loan that is shown is committed."""

    error: ErrorCode
    number: int = 0
    borrower: str = ""
    settled: bool = True


def refused(error: ErrorCode) -> Reply:
    return Reply(error)


@dataclass(frozen=True)
class Announce(Effect):
    """Tell the world who has a thing; `epoch` is by which it knows the desk."""

    thing: str
    number: int
    borrower: str
    epoch: int


class Asker(NamedTuple):
    client_id: str | None = "tests"
    client_host: str = "localhost"
    api_version: int = 0

    def may_describe(self, topic: str) -> bool:
        return True


# -- its shard


class Loan(NamedTuple):
    number: int
    borrower: str
    for_ms: int
    announced: bool
    offset: int


class Waiting(NamedTuple):
    token: object
    borrower: str
    for_ms: int


FREE = Loan(0, "", 0, True, -1)


class DeskShard:
    """`careless` forgets whom it has held back when it is unloaded."""

    def __init__(self, image: ClusterImage, *, careless: bool = False, on_expire: Callable[[DeskShard], None]) -> None:
        self.image, self.careless, self._on_expire = image, careless, on_expire
        self.loans: dict[str, Loan] = {}
        self.lent: dict[tuple[str, int], tuple[str, int]] = {}  # to whom, and where in the log it says so
        self.pending: dict[int, list[tuple[StateRecord, Offset]]] = {}
        self.waiting: dict[str, deque[Waiting]] = {}
        self.timers: Timers[str] = Timers()
        self.epochs: list[int] = []
        self.images = 0

    # Requests

    def demand_of(self, request: object) -> Demand:
        return {Borrow: Demand.WAITS, Inquire: Demand.READS}.get(type(request), Demand.WRITES)

    def decide(self, request: object, caller: Caller, now: Moment) -> Decision:
        match request:
            case Borrow(thing, borrower, for_ms):
                return self._borrow(thing, Waiting(caller.token, borrower, for_ms), now)
            case Return(thing, number):
                loan = self.loans.get(thing, FREE)
                decision = self._next(thing, now) if loan.borrower and loan.number == number else Decision()
                decision.reply = Reply(NONE, number)
                return decision
            case Inquire(thing):
                loan = self.loans.get(thing, FREE)
                return Decision(reply=Reply(NONE, loan.number, loan.borrower, loan.offset < now.committed))
        raise TypeError(f"nobody asks {request}")

    def _borrow(self, thing: str, wanted: Waiting, now: Moment) -> Decision:
        loan = self.loans.get(thing, FREE)
        if loan.borrower == wanted.borrower:
            return Decision(reply=Reply(NONE, loan.number, loan.borrower))
        if loan.borrower:
            self.waiting.setdefault(thing, deque()).append(wanted)
            return Decision()
        return self._lend(thing, wanted, now)

    def _lend(self, thing: str, to: Waiting, now: Moment) -> Decision:
        number = self.loans.get(thing, FREE).number + 1
        self.timers.set(thing, now.tick + to.for_ms)
        return Decision(
            records=[loan_record(thing, number, to.borrower, to.for_ms, announced=False)],
            reply=Reply(NONE, number, to.borrower),
            effects=[self._announce(thing, number, to.borrower)],
        )

    def _announce(self, thing: str, number: int, borrower: str) -> Announce:
        return Announce(thing, number, borrower, self.epochs[-1])

    def _next(self, thing: str, now: Moment) -> Decision:
        """The thing is free: the next one who waits has it."""
        queue = self.waiting.get(thing)
        if not queue:
            self.timers.cancel(thing)
            loan = self.loans[thing]
            return Decision([loan_record(thing, loan.number, "", 0, announced=loan.announced)])
        to = queue.popleft()
        decision = self._lend(thing, to, now)
        decision.answers = [Answer(to.token, decision.reply)]
        decision.reply = None
        return decision

    def announced(self, thing: str, number: int) -> Decision:
        loan = self.loans.get(thing, FREE)
        if loan.number != number or loan.announced:
            return Decision()
        return Decision([loan_record(thing, number, loan.borrower, loan.for_ms, announced=True)])

    # The log

    def apply(self, record: StateRecord, offset: Offset) -> None:
        key, value = record.key, record.value
        assert isinstance(key, LoanKey)
        assert isinstance(value, LoanValue)
        if value.borrower:
            self.lent.setdefault((key.thing, value.number), (value.borrower, offset))
        self.loans[key.thing] = Loan(value.number, value.borrower, value.for_ms, value.announced, offset)

    def apply_pending(self, producer_id: int, record: StateRecord, offset: Offset) -> None:
        self.pending.setdefault(producer_id, []).append((record, offset))

    def on_marker(self, producer_id: int, *, committed: bool) -> None:
        for record, offset in self.pending.pop(producer_id, []):
            if committed:
                self.apply(record, offset)

    # Time and world

    def loaded(self, now: Moment) -> Iterator[Decision]:
        for thing, loan in self.loans.items():
            if loan.borrower:
                self.timers.set(thing, now.tick + loan.for_ms)
        yield Decision()

    def led(self, epoch: Epoch, now: Moment) -> Iterator[Decision]:
        self.epochs.append(epoch)
        return self._announce_again()

    def _announce_again(self) -> Iterator[Decision]:
        for thing in list(self.loans):
            loan = self.loans[thing]
            if not loan.announced:
                borrower, _ = self.lent[thing, loan.number]  # it may have been returned meanwhile
                yield Decision(effects=[self._announce(thing, loan.number, borrower)])

    def next_deadline(self) -> Millis | None:
        return self.timers.next()

    def expire(self, now: Moment) -> Iterator[Decision]:
        for thing in self.timers.due(now.tick):
            self._on_expire(self)
            yield self._next(thing, now)

    def see(self, image: ClusterImage) -> None:
        self.image = image

    def image_changed(self, image: ClusterImage, delta: Delta, now: Moment) -> Iterator[Decision]:
        self.see(image)
        self.images += 1
        yield Decision()

    def unload(self) -> list[Answer]:
        if self.careless:
            return []
        return [Answer(each.token, Reply(NOT_COORDINATOR)) for queue in self.waiting.values() for each in queue]


def loan_record(thing: str, number: int, borrower: str, for_ms: int, *, announced: bool) -> StateRecord:
    return StateRecord(
        LoanKey(thing=thing), LoanValue(number=number, borrower=borrower, for_ms=for_ms, announced=announced)
    )


# -- its kind


class DeskKind:
    """Writes down what it is told to carry out."""

    name = "loans"
    place = "the topic of loans"
    reader = READER

    def __init__(self, topic: str, partitions: int = 1, *, careless: bool = False, timeout_ms: int = 60_000) -> None:
        self.topic, self._partitions, self.careless, self.timeout_ms = topic, partitions, careless, timeout_ms
        self.carried: list[tuple[int, int, Announce]] = []
        self.given_up: list[int] = []
        self.expired = 0
        self.images = 0

    def partition_of(self, key: str, partitions: int) -> int:
        return crc32(key.encode()) % partitions

    def partitions_wanted(self) -> int:
        return self._partitions

    def codec(self) -> int:
        return 0

    def commit_timeout_ms(self) -> int:
        return self.timeout_ms

    def follow(self, image: ClusterImage, delta: Delta) -> None:
        self.images += 1

    def new_shard(self, image: ClusterImage) -> DeskShard:
        return DeskShard(image, careless=self.careless, on_expire=self.on_expire)

    def on_expire(self, shard: DeskShard) -> None:
        self.expired += 1

    def carry_out(self, index: int, epoch: Epoch, effects: Sequence[Effect]) -> None:
        for effect in effects:
            assert isinstance(effect, Announce)
            self.carried.append((index, epoch, effect))

    def give_up(self, index: int) -> None:
        self.given_up.append(index)


def told(carried: list[tuple[int, int, Any]]) -> list[tuple[int, str, int]]:
    """What was carried out: the epoch it was let out in, the thing, and the number."""
    assert all(epoch == effect.epoch for _, epoch, effect in carried), "it is let out in the epoch it was decided in"
    return [(epoch, effect.thing, effect.number) for _, epoch, effect in carried]
