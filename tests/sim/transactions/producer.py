"""A producer with a transactional id, in one protocol or the other: it begins, writes, ends, stalls and dies.

It asks as clients do. One of the classic protocol that does not know how its transaction ended begins anew, which is
the only safe thing to do there; one with an epoch per transaction simply asks again, or begins anew too.
"""

from __future__ import annotations

from random import Random
from typing import Any, Protocol

from penstock.coordinators.transactions.requests import AddPartitions, Partition, PartitionsAdded
from penstock.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from penstock.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from tests.sim.transactions.partitions import Written

AGAIN = frozenset({7, 14, 15, 16, 51})
FATAL = frozenset({47, 48, 49, 90})


class Around(Protocol):
    """What a producer may do to the world."""

    rng: Random

    def after(self, delay_ms: int, act: Any) -> None: ...
    def send(self, producer: Producer, number: int, request: object, version: int) -> None: ...
    def write(self, place: Partition, producer_id: int, epoch: int, written: Written) -> bool: ...
    def begun(self, producer: Producer, producer_id: int, epoch: int) -> None: ...
    def note(self, what: str) -> None: ...
    def stall_ms(self) -> int: ...
    def may_crash(self) -> bool: ...
    def mourn(self, producer: Producer) -> None: ...


class Producer:
    """One process at a time; `life` tells them apart."""

    def __init__(
        self, world: Around, name: str, transactional_id: str, timeout_ms: int, places: list[Partition]
    ) -> None:
        self.world, self.name, self.id, self.timeout_ms, self.places = world, name, transactional_id, timeout_ms, places
        self.life = 0
        self.per_transaction = True
        self.stops = False
        self.done = 0
        self.fatal: int | None = None
        """Why the last life ended, when it was told."""
        self._number = 0
        self._asked: tuple[int, object, int] | None = None
        self._pid, self._epoch = -1, -1
        self._written: Written | None = None
        self._to_add: list[Partition] = []
        self._commits = True

    def start(self, *, per_transaction: bool) -> None:
        """A new process."""
        self.life += 1
        self.per_transaction, self.fatal = per_transaction, None
        self._pid, self._epoch, self._written = -1, -1, None
        self.world.note(f"{self} starts, {'an epoch per transaction' if per_transaction else 'classic'}")
        self._init(-1, -1)

    def __repr__(self) -> str:
        return f"{self.name}.{self.life}"

    def die(self) -> None:
        self.life += 1
        self._asked = None
        self.world.note(f"{self} has died")
        self.world.mourn(self)

    # What it asks

    def _ask(self, request: object, version: int) -> None:
        self._number += 1
        self._asked = (self._number, request, version)
        self.world.send(self, self._number, request, version)

    def _ask_again(self, life: int, number: int) -> None:
        if life == self.life and self._asked is not None and self._asked[0] == number:
            self._ask(self._asked[1], self._asked[2])

    def _init(self, pid: int, epoch: int) -> None:
        request = InitProducerIdRequest(
            transactional_id=self.id, transaction_timeout_ms=self.timeout_ms, producer_id=pid, producer_epoch=epoch
        )
        self._ask(request, 5)

    def _begin(self, life: int) -> None:
        if life != self.life or self.stops:
            return
        rng = self.world.rng
        self._written = Written(f"{self} #{self.done} ({self._pid}, {self._epoch})")
        self._to_add = rng.sample(self.places, rng.randint(1, min(3, len(self.places))))
        self._commits = rng.random() < 0.7
        if self.per_transaction and rng.random() < 0.1:
            # Something was tried and nobody knows what became of it.
            self._to_add, self._commits = [], False
        self._go_on(self.life)

    def _go_on(self, life: int) -> None:
        if life != self.life:
            return
        rng = self.world.rng
        if not self._to_add:
            self._end()
        elif self.per_transaction:
            self._add((self._to_add[-1],), 2)
        else:
            count = rng.randint(1, len(self._to_add))
            self._add(tuple(self._to_add[-count:]), 0)

    def _add(self, partitions: tuple[Partition, ...], client_version: int) -> None:
        self._ask(AddPartitions(self.id, self._pid, self._epoch, partitions, False, client_version), client_version)

    def _end(self) -> None:
        assert self._written is not None
        self._written.commit_asked = self._commits
        request = EndTxnRequest(
            transactional_id=self.id, producer_id=self._pid, producer_epoch=self._epoch, committed=self._commits
        )
        self._ask(request, 5 if self.per_transaction else 4)

    # What it is told

    def on_reply(self, life: int, number: int, reply: object) -> None:
        if life != self.life or self._asked is None or self._asked[0] != number:
            return
        error = error_of(reply)
        if error in AGAIN:
            self.world.after(self.world.rng.randint(5, 60), lambda: self._ask_again(life, number))
            return
        if error != 0:
            assert error in FATAL, f"{self} asked {self._asked[1]} and is told {error}"
            self.fatal = error
            self.world.note(f"{self} is told {error} to {self._asked[1]}")
            self.die()
            return
        request, self._asked = self._asked[1], None
        if isinstance(reply, InitProducerIdResponse):
            self._begun(reply)
        elif isinstance(reply, PartitionsAdded):
            assert isinstance(request, AddPartitions)
            self._added(request)
        elif isinstance(reply, EndTxnResponse):
            self._ended(reply)

    def awaits(self, life: int, number: int) -> bool:
        """Whether this is what it asks for now."""
        return life == self.life and self._asked is not None and self._asked[0] == number

    def on_silence(self, life: int, number: int) -> None:
        """Nobody will answer this request."""
        if life != self.life or self._asked is None or self._asked[0] != number:
            return
        request = self._asked[1]
        rng = self.world.rng
        if isinstance(request, EndTxnRequest) and (not self.per_transaction or rng.random() < 0.4):
            self._written = None
            named = self.per_transaction or rng.random() < 0.5
            self._init(*((self._pid, self._epoch) if named else (-1, -1)))
        else:
            self._ask_again(life, number)

    def _begun(self, reply: InitProducerIdResponse) -> None:
        self._pid, self._epoch = reply.producer_id, reply.producer_epoch
        self.world.begun(self, self._pid, self._epoch)
        self._rest()

    def _added(self, request: AddPartitions) -> None:
        assert self._written is not None
        for place in request.partitions:
            self._to_add.remove(place)
            if not self.world.write(place, self._pid, self._epoch, self._written):
                self.die()  # fenced by a marker; the rest is for the coordinator
                return
        if self.world.may_crash():
            self.die()
            return
        life, stall_ms = self.life, self.world.stall_ms()
        if stall_ms:
            self.world.after(stall_ms, lambda: self._go_on(life))
        else:
            self._go_on(life)

    def _ended(self, reply: EndTxnResponse) -> None:
        if self._written is not None:
            self._written.answered(commits=self._commits)
        if self.per_transaction:
            self._pid, self._epoch = reply.producer_id, reply.producer_epoch
            self.world.begun(self, self._pid, self._epoch)
        self._written = None
        self.done += 1
        self._rest()

    def _rest(self) -> None:
        life = self.life
        self.world.after(self.world.rng.randint(1, 400), lambda: self._begin(life))


def error_of(reply: object) -> int:
    if isinstance(reply, PartitionsAdded):
        (error,) = set(reply.errors.values())
        return error.code
    assert isinstance(reply, InitProducerIdResponse | EndTxnResponse)
    return reply.error_code
