"""Exactly-once sinks on the real coordinator: drivers that run the real machine, tasks, and readers of what they write.

The coordinator, its log, its failovers and its network are those of `tests/sim/transactions`. New are the ledger (one
more partition), topics whose records count, and a supervisor that starts another driver whenever it thinks that one is
dead, while that may only sleep.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

from penstock.coordinators.transactions.requests import AddPartitions, Partition, PartitionsAdded
from penstock.coordinators.transactions.transaction import Status
from penstock.protocol.messages.end_txn import EndTxnRequest
from penstock.protocol.messages.init_producer_id import InitProducerIdRequest
from penstock.spark.topic_sink.transactions.names import PREFIX, driver_id, pattern_of
from penstock.spark.topic_sink.transactions.records import Standing
from tests.sim.transactions.faults import Faults
from tests.sim.transactions.partitions import PartitionLog, Written
from tests.sim.transactions.producer import AGAIN, error_of
from tests.sim.transactions.world import WALL_AT_START, World

LEDGER: Partition = ("ledger", 0)
INPUT = 40
QUERY = "q"
DRIVER_TIMEOUT_MS = 1_500
TIMEOUTS_MS = (3_000, 8_000)
SLEEP_MAX_MS = 9_000
CLOCKS_DIFFER_MS = 300
"""Of one coordinator and the next."""

Then = Callable[[Any], None]


class Rows(Written):
    """What one attempt wrote, or one driver into the ledger."""

    __slots__ = ("standing", "values")

    def __init__(self, name: str, standing: Standing | None = None) -> None:
        super().__init__(name)
        self.values: dict[Partition, list[int]] = {}
        self.standing = standing

    @property
    def open(self) -> bool:
        return self.outcomes.keys() != self.partitions


class Asker:
    """A client of the coordinator for one request: it asks again until it is answered for good, or nobody wants to
    know."""

    def __init__(self, world: SinkWorld, name: str, alive: Callable[[], bool]) -> None:
        self.world, self.name, self._alive = world, name, alive
        self.life = 0
        self._number = 0

    def __repr__(self) -> str:
        return self.name

    def ask(self, request: object, version: int, then: Then) -> None:
        self._request, self._version, self._then = request, version, then
        self._again(self._number)

    def _again(self, number: int) -> None:
        if self._alive() and number == self._number:
            self._number += 1
            self.world.send(self, self._number, self._request, self._version)  # type: ignore[arg-type]  # it asks as producers do

    def on_reply(self, life: int, number: int, reply: object) -> None:
        if not self.awaits(life, number):
            return
        if error_of(reply) in AGAIN:
            self.world.after(self.world.rng.randint(5, 60), lambda: self._again(number))
            return
        self._number += 1  # whatever comes twice is not heard
        self._then(reply)

    def awaits(self, life: int, number: int) -> bool:
        """Whether this is what it asks for now."""
        return life == self.life and number == self._number and self._alive()

    def on_silence(self, life: int, number: int) -> None:
        if life == self.life:
            self._again(number)


class SinkWorld(World):
    """One query, its checkpoint, and all drivers that it ever had."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.partitions[LEDGER] = PartitionLog(LEDGER)
        self.ledger: list[Rows] = []
        self.rows: dict[tuple[int, int], Rows] = {}
        self.outputs: list[Rows] = []
        self.timeout_ms = self.rng.choice(TIMEOUTS_MS)
        self.sleeps = self.rng.choice((0.0, 0.03, 0.1))
        self.dies = self.rng.choice((0.0, 0.02, 0.06))
        self.fails = self.rng.choice((0.0, 0.1, 0.3))
        self.offsets: dict[int, tuple[int, int]] = {}
        self.commits: set[int] = set()
        self._writers: dict[tuple[int, int], str] = {}
        self.drivers = self.attempts = 0
        self.torn = False
        self.mark = ""
        """What the checkpoint says of the ledger."""
        self.ledger_id = "first"
        self.vanished = False
        """Whether the ledger is not what it was."""
        self.forgotten = False
        """Whether a driver has said so."""
        self.calm = False

    def _check_refusal(self, request: Any, reply: object, version: int) -> None:
        """A driver also ends what its task may never have begun, which is no transaction to the coordinator."""
        value = self._last.get(request.transactional_id)
        if isinstance(request, EndTxnRequest) and value is not None and value.transaction_status == Status.EMPTY:
            return
        super()._check_refusal(request, reply, version)

    # What clients do

    def asker(self, name: str, alive: Callable[[], bool]) -> Asker:
        return Asker(self, name, alive)

    def init(self, asker: Asker, name: str, timeout_ms: int, then: Then, named: tuple[int, int] = (-1, -1)) -> None:
        request = InitProducerIdRequest(
            transactional_id=name, transaction_timeout_ms=timeout_ms, producer_id=named[0], producer_epoch=named[1]
        )
        asker.ask(request, 5, then)

    def end(self, asker: Asker, one: tuple[str, int, int, int], commits: bool, then: Then) -> None:
        name, producer_id, epoch, version = one
        written = self.rows.get((producer_id, epoch))
        if written is not None and commits:
            written.commit_asked = True
        request = EndTxnRequest(transactional_id=name, producer_id=producer_id, producer_epoch=epoch, committed=commits)

        def ended(reply: Any) -> None:
            if not reply.error_code and written is not None and written.partitions:
                written.answered(commits=commits)
            then(reply)

        asker.ask(request, 5 if version >= 2 else 4, ended)

    def put(
        self,
        asker: Asker,
        one: tuple[str, int, int, int],
        place: Partition,
        written: Rows,
        then: Callable[[bool], None],
    ) -> None:
        """A batch, which its leader or its client has taken into the transaction first."""
        name, producer_id, epoch, version = one

        def added(reply: PartitionsAdded) -> None:
            (error,) = set(reply.errors.values())
            then(not error.code and self.write(place, producer_id, epoch, written))

        asker.ask(AddPartitions(name, producer_id, epoch, (place,), False, version), 4 if version >= 2 else 3, added)

    # What readers see

    def ledger_end(self, *, stable: bool) -> int:
        if stable:
            return next((at for at, each in enumerate(self.ledger) if each.open), len(self.ledger))
        return len(self.ledger)

    def standing(self, end: int) -> Standing | None:
        shown = [each for each in self.ledger[:end] if each.outcomes.get(LEDGER)]
        return shown[-1].standing if shown else None

    def ledger_vanishes(self) -> None:
        """Somebody deletes the topic, deletes and makes it anew, or takes the query's record away."""
        if not self.ledger:
            return
        self.note("the ledger vanishes")
        self.count("the ledger vanished")
        self.vanished = True
        if self.rng.random() < 0.5:
            self.ledger.clear()
            self.ledger_id = self.rng.choice(("", "second"))
        else:
            nothing = Rows("a vandal")
            nothing.partitions.add(LEDGER)
            nothing.outcomes[LEDGER] = True
            self.ledger.append(nothing)

    def shown(self) -> Counter[int]:
        """What readers of committed records have been given, by value."""
        return Counter(
            value
            for written in self.outputs
            for place, values in written.values.items()
            if written.outcomes.get(place)
            for value in values
        )

    def check_nothing_older(self, began: int) -> None:
        """After a plan no reader waits for what drivers and tasks before it left open."""
        for name in self.listed(pattern_of(f"{PREFIX}{QUERY}-")):
            started = self.described(name).transaction_start_timestamp_ms - WALL_AT_START
            assert started >= began - CLOCKS_DIFFER_MS, f"{name} is open since {started}, and a plan began at {began}"

    def check_sequences(self, epoch: tuple[int, int], process: str) -> None:
        """The numbers of an epoch's batches go on from transaction to transaction, and one process alone knows them."""
        writer = self._writers.setdefault(epoch, process)
        assert writer == process, f"{process} would begin at 0 where {writer} has written as {epoch}"

    def check_undecided(self, ids: list[str]) -> None:
        """Nobody takes back what is decided and not known to be ended: only time may."""
        # What is acknowledged counts, although its marker may be under way.
        told = [each.standing for each in self.ledger if each.answer or each.outcomes.get(LEDGER)]
        standing = told[-1] if told else None
        decision = None if standing is None else standing.decision
        if decision is not None and not decision.ended:
            listed = {each.id for each in decision.transactions} & set(ids)
            assert not listed, (
                f"{listed} are listed by decision {decision.sequence}, and somebody begins anew or aborts"
            )

    def listed_by_decisions(self) -> set[tuple[int, int]]:
        """Producer ids and epochs of all that was ever decided."""
        decisions = [each.standing.decision for each in self.ledger if each.standing is not None]
        return {
            (each.prepared.producer_id, each.prepared.producer_epoch)
            for decision in decisions
            if decision is not None
            for each in decision.transactions
        }

    def newest_driver_epoch(self) -> tuple[int, int] | None:
        value = self.described(driver_id(QUERY))
        return None if value is None else (value.producer_id, value.producer_epoch)

    def described(self, name: str) -> Any:
        return self._committed_of(name)

    def listed(self, pattern: str) -> list[str]:
        names = {record.key.transactional_id for record in self.log}  # type: ignore[attr-defined]  # keys are of one kind
        found = []
        for name in sorted(names):
            value = self._committed_of(name) if re.fullmatch(pattern, name) else None
            if value is not None and value.transaction_status == Status.ONGOING:
                found.append(name)
        return found

    # Trouble

    def nap_ms(self) -> int:
        return self.rng.randrange(SLEEP_MAX_MS) if not self.calm and self.rng.random() < self.sleeps else 0

    def death(self) -> bool:
        return not self.calm and self.rng.random() < self.dies

    def calm_down(self) -> None:
        self.calm = True
        self.heal()
        self.faults = Faults.healed()

    def next_range(self, batch: int) -> tuple[int, int] | None:
        """What a batch reads, as Spark's offset log has it: written once, the same for everybody."""
        if batch not in self.offsets:
            start = self.offsets[batch - 1][1] if batch else 0
            if start >= INPUT:
                return None
            self.offsets[batch] = (start, min(start + self.rng.randint(1, 12), INPUT))
        return self.offsets[batch]
