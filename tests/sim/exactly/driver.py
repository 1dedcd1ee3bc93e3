"""A driver as Spark has it: plan, tasks, commit, one batch after the other; and tasks, of which several may try."""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from typing import Any

from penstock.client.producer.transactions.prepared import PreparedTransaction, ProducerEpoch
from penstock.model.errors import PRODUCER_FENCED
from penstock.spark.errors import SparkRoomError
from penstock.spark.lake.ranges import TableRange
from penstock.spark.topic_sink.delivery import Landed
from penstock.spark.topic_sink.transactions import machine
from penstock.spark.topic_sink.transactions.effects import (
    AskLedger,
    AskTime,
    BeginDriver,
    BeginPool,
    Describe,
    Described,
    Effect,
    End,
    Fence,
    LedgerTopic,
    ListOpen,
    ReadLedger,
    ReadMark,
    Seen,
    TopicIds,
    Witness,
    Write,
    WriteMark,
)
from penstock.spark.topic_sink.transactions.machine import Handout, LedgerVanished, Superseded, TaskWrote, Torn
from penstock.spark.topic_sink.transactions.names import driver_id, extra_id
from tests.sim.exactly.world import DRIVER_TIMEOUT_MS, LEDGER, QUERY, Rows, SinkWorld

ATTEMPTS_MAX = 3


class Attempt:
    """One try at a task: it writes in a transaction and leaves it open. It may sleep, die, or be one too many."""

    def __init__(self, driver: Driver, handout: Handout, task: int, number: int, values: list[int]) -> None:
        world = self.world = driver.world
        world.attempts += 1
        self.driver, self.handout, self.task, self.values = driver, handout, task, values
        self.name = f"{driver} task {task}.{number} #{world.attempts}"
        self.dead = False
        self._asker = world.asker(self.name, lambda: not self.dead)
        self._extra = (
            ""
            if number == 0 and task < len(handout.pool)
            else extra_id(QUERY, handout.run, handout.driver, world.attempts)
        )

    def __repr__(self) -> str:
        return self.name

    def start(self, done: Callable[[TaskWrote | None], None]) -> None:
        self._done = done
        if self._extra:
            self.world.init(self._asker, self._extra, self.handout.timeout_ms, self._begun)
        else:
            self._write(self.handout.slot(self.task))

    def _begun(self, reply: Any) -> None:
        if reply.error_code:
            self._fail()
        else:
            version = self.handout.transaction_version
            self._write(PreparedTransaction(self._extra, reply.producer_id, reply.producer_epoch, version))

    def _write(self, mine: PreparedTransaction) -> None:
        self._mine, self._began = mine, self.world.time
        if not self.values:
            self._done(TaskWrote(PreparedTransaction(*_who(mine), empty=True), (), self.world.time, 0))
            return
        self._written = Rows(self.name)
        for value in self.values:
            self._written.values.setdefault(self.world.rng.choice(self.world.places), []).append(value)
        self._left = list(self._written.values)
        self._next()

    def _next(self) -> None:
        if self.dead:
            return
        if self.world.death():
            self.dead = True
            self.world.count("attempts died")
            self._done(None)
            return
        if not self._left:
            landed = tuple(
                Landed(topic, index, len(values), 0, 0) for (topic, index), values in self._written.values.items()
            )
            # Its host has another clock than the driver's.
            skew_ms = self.world.rng.randint(-5_000, 5_000)
            took_ms = self.world.time - self._began
            self._done(TaskWrote(self._mine, landed, self._began + skew_ms, took_ms))
            return
        nap_ms = self.world.nap_ms()
        if nap_ms:
            self.world.count("attempts slept")
            self.driver.wants_another(self)
        self.world.after(nap_ms, self._put)

    def _put(self) -> None:
        if self.dead:
            return
        place = self._left.pop()
        if not self._written.partitions:
            # An epoch belongs to one attempt: this is what keeps two of them from writing over each other.
            self.world.begun(self, *self._mine_is)  # type: ignore[arg-type]  # only its name is used
            self.world.rows[self._mine_is] = self._written
            self.world.outputs.append(self._written)
        self.world.put(self._asker, _who(self._mine), place, self._written, self._was_put)

    @property
    def _mine_is(self) -> tuple[int, int]:
        return self._mine.producer_id, self._mine.producer_epoch

    def _was_put(self, held: bool) -> None:
        if held:
            self._next()
        else:
            self._fail()

    def _fail(self) -> None:
        self.dead = True
        self._done(None)


def _who(prepared: PreparedTransaction) -> tuple[str, int, int, int]:
    return (
        prepared.transactional_id,
        prepared.producer_id,
        prepared.producer_epoch,
        prepared.transaction_version,
    )


class Driver:
    """One process of a driver, from its start to its end."""

    def __init__(self, world: SinkWorld, run: str) -> None:
        self.world, self.run = world, run
        world.drivers += 1
        self.name = f"driver {world.drivers}"
        self.dead = self.over = self.superseded = False
        self._epoch = ProducerEpoch(-1, -1)
        self._calls = 0
        self._batch = 0

    def __repr__(self) -> str:
        return self.name

    def start(self) -> None:
        self.world.note(f"{self} starts as {self.run}")
        self._next_batch()

    def die(self) -> None:
        self.dead = self.over = True
        self.world.note(f"{self} has died")

    def _end(self, why: str) -> None:
        self.over = True
        self.world.note(f"{self} ends: {why}")

    # Batches

    def _next_batch(self) -> None:
        self._batch = next(number for number in range(len(self.world.commits) + 1) if number not in self.world.commits)
        if self.world.next_range(self._batch) is None:
            self._end("all is read")
            return
        self._version = 2 if self.world.transaction_version >= 2 else 0
        self._plan_began = self.world.time
        steps = machine.plan(
            QUERY, self.run, slots=2, transaction_version=self._version, timeout_ms=self.world.timeout_ms
        )
        self._obey(steps, self._planned, self._failed)

    def _planned(self, handout: Handout) -> None:
        world, rng = self.world, self.world.rng
        if self._version >= 2:
            world.check_nothing_older(self._plan_began)
        span = world.next_range(self._batch)
        assert span is not None, "it was looked at"
        count = rng.randint(1, 4)
        parts: list[list[int]] = [[] for _ in range(count)]
        for value in range(*span):
            rng.choice(parts).append(value)
        self._handout, self._parts = handout, parts
        self._told: dict[int, TaskWrote] = {}
        self._tried = [0] * count
        self._running = [0] * count
        for task in range(count):
            self._try(task)

    def _try(self, task: int) -> None:
        attempt = Attempt(self, self._handout, task, self._tried[task], self._parts[task])
        self._tried[task] += 1
        self._running[task] += 1
        attempt.start(partial(self._tried_out, self._batch, task, attempt))

    def wants_another(self, attempt: Attempt) -> None:
        """Spark starts another attempt beside one that is slow; the first that is done counts."""
        if attempt.handout is self._handout and self._tried[attempt.task] < ATTEMPTS_MAX and not self.over:
            self.world.count("speculated")
            self._try(attempt.task)

    def _tried_out(self, batch: int, task: int, attempt: Attempt, wrote: TaskWrote | None) -> None:
        if batch != self._batch or attempt.handout is not self._handout or self.over or task in self._told:
            return
        if wrote is not None and self.world.rng.random() < self.world.fails and not self.world.calm:
            wrote = None  # what it says is lost with its executor
        self._running[task] -= 1
        if wrote is None:
            if self._tried[task] < ATTEMPTS_MAX:
                self._try(task)
            elif not self._running[task]:
                self._give_up()
            return
        self._told[task] = wrote
        if len(self._told) == len(self._parts):
            start, end = self.world.offsets[batch]
            ranges = [TableRange("in", "I", 0, start, end)]
            tasks = [self._told[number] for number in sorted(self._told)]
            self._obey(machine.commit(self._handout, batch, ranges, tasks), self._committed, self._commit_failed)

    def _committed(self, _: object) -> None:
        self.world.commits.add(self._batch)
        self.world.note(f"{self} has committed batch {self._batch}")
        self._next_batch()

    def _commit_failed(self, failure: SparkRoomError) -> None:
        if isinstance(failure, (Torn, LedgerVanished)):
            self._failed(failure)
            return
        self.world.note(f"{self}: {type(failure).__name__}")
        self._give_up()

    def _give_up(self) -> None:
        handout, tasks = self._handout, list(self._told.values())
        self._handout = Handout(QUERY, self.run, self._epoch, (), self._version, 1, 0, 0)  # nobody else is listened to
        steps = machine.abort(handout, tasks, len(self._parts))
        self._obey(steps, lambda _: self._aborted(tasks), self._failed)

    def _aborted(self, tasks: list[TaskWrote]) -> None:
        """Unless another driver or a decision has them, what tasks said they wrote holds up no reader.

        In the classic protocol a late copy of a request may open it again, and then it has its time.
        """
        listed = self.world.listed_by_decisions()
        for each in tasks if self._version >= 2 and not self.world.vanished else ():
            value = self.world.described(each.prepared.transactional_id)
            mine = (each.prepared.producer_id, each.prepared.producer_epoch)
            if value is not None and mine == (value.producer_id, value.producer_epoch) and mine not in listed:
                fenced = self.world.newest_driver_epoch() != self._epoch
                assert value.transaction_status != 1 or fenced, f"{each.prepared} is left open by an abort"
        self._end("a batch failed")

    def _failed(self, failure: SparkRoomError) -> None:
        self.world.torn = self.world.torn or isinstance(failure, Torn)
        self.world.forgotten = self.world.forgotten or isinstance(failure, LedgerVanished)
        self.superseded = isinstance(failure, Superseded)
        self._end(f"{type(failure).__name__}: {failure}")

    # The machine

    def _obey(
        self, steps: Generator[Effect, Any, Any], then: Callable[[Any], None], fails: Callable[[SparkRoomError], None]
    ) -> None:
        self._calls += 1  # each is a process of its own, as far as producers are concerned

        def resume(answer: Any) -> None:
            if self.dead:
                return
            world = self.world
            if world.death():
                world.count("drivers died")
                self.die()
                return
            nap_ms = world.nap_ms()
            if nap_ms:
                world.count("drivers slept")
                world.after(nap_ms, lambda: go(answer))
            else:
                go(answer)

        def go(answer: Any) -> None:
            if self.dead:
                return
            try:
                effect = steps.throw(answer) if isinstance(answer, SparkRoomError) else steps.send(answer)
            except StopIteration as ended:
                then(ended.value)
                return
            except SparkRoomError as failure:
                fails(failure)
                return
            self._carry_out(effect, resume)

        go(None)

    def _carry_out(self, effect: Effect, resume: Callable[[Any], None]) -> None:
        world = self.world
        match effect:
            case ReadMark():
                resume(world.mark)
            case AskLedger():
                resume(LedgerTopic(world.ledger_id, 1 << 20))
            case WriteMark(ledger_id):
                world.mark = ledger_id
                resume(None)
            case ReadLedger(waits):
                self._read(world.ledger_end(stable=not waits), resume)
            case BeginDriver(named):
                self._begin_driver(named, resume)
            case BeginPool(ids) | Fence(ids):
                self._begin(list(ids), resume)
            case Write(standing):
                self._write(standing, resume)
            case AskTime():
                resume(world.time)
            case Describe(ids):
                resume({name: told for name in ids if (told := self._described(name)) is not None})
            case End(transactions, commit):
                self._end_all(list(transactions), commit, resume)
            case Witness(transactions, _):
                self._witness([each.prepared for each in transactions], 100, resume)
            case ListOpen(pattern):
                resume(world.listed(pattern))
            case TopicIds(topics):
                resume({name: name.upper() for name in topics})

    def _asker(self) -> Any:
        return self.world.asker(self.name, lambda: not self.dead)

    def _read(self, end: int, resume: Callable[[Any], None]) -> None:
        if any(each.open for each in self.world.ledger[:end]):
            if not self.dead:
                self.world.after(50, lambda: self._read(end, resume))
            return
        resume(self.world.standing(end))

    def _begin_driver(self, named: ProducerEpoch | None, resume: Callable[[Any], None]) -> None:
        def begun(reply: Any) -> None:
            if reply.error_code:
                assert reply.error_code == PRODUCER_FENCED.code, reply
                assert named is not None, "who names nobody is not refused"
                resume(None)
                return
            self._epoch = ProducerEpoch(reply.producer_id, reply.producer_epoch)
            if named is None:
                self.world.begun(self, *self._epoch)  # type: ignore[arg-type]  # only its name is used
            resume(self._epoch)

        whose = (-1, -1) if named is None else (named.producer_id, named.epoch)
        self.world.init(self._asker(), driver_id(QUERY), DRIVER_TIMEOUT_MS, begun, whose)

    def _begin(self, ids: list[str], resume: Callable[[Any], None]) -> None:
        found: dict[str, ProducerEpoch] = {}

        def begun(name: str, reply: Any) -> None:
            assert not reply.error_code, reply
            found[name] = ProducerEpoch(reply.producer_id, reply.producer_epoch)
            if len(found) == len(ids):
                resume(found)

        self.world.check_undecided(ids)
        for name in ids:
            self.world.init(self._asker(), name, self.world.timeout_ms, partial(begun, name))

    def _write(self, standing: Any, resume: Callable[[Any], None]) -> None:
        world, mine = self.world, (driver_id(QUERY), *self._epoch, self._version)
        world.check_sequences((mine[1], mine[2]), f"{self} call {self._calls}")
        written = Rows(f"{self} writes {standing.sequence}", standing)
        refused = Superseded("refused")

        def put(held: bool) -> None:
            if not held:
                resume(refused)
                return
            world.ledger.append(written)
            world.rows[mine[1], mine[2]] = written
            world.end(self._asker(), mine, True, ended)

        def ended(reply: Any) -> None:
            if reply.error_code:
                resume(refused)
                return
            if self._version >= 2:
                self._epoch = ProducerEpoch(reply.producer_id, reply.producer_epoch)
            resume(self._epoch)

        world.put(self._asker(), mine, LEDGER, written, put)

    def _described(self, name: str) -> Described | None:
        value = self.world.described(name)
        if value is None:
            return None
        return Described(ProducerEpoch(value.producer_id, value.producer_epoch), value.transaction_status == 1)

    def _end_all(self, transactions: list[PreparedTransaction], commit: bool, resume: Callable[[Any], None]) -> None:
        found: dict[str, bool] = {}

        def ended(name: str, reply: Any) -> None:
            found[name] = not reply.error_code
            if len(found) == len(transactions):
                resume(found)

        if not commit:
            self.world.check_undecided([each.transactional_id for each in transactions])
        for each in transactions:
            self.world.end(self._asker(), _who(each), commit, partial(ended, each.transactional_id))

    def _witness(self, transactions: list[PreparedTransaction], tries: int, resume: Callable[[Any], None]) -> None:
        """From what readers are shown, when the markers are there."""
        found = {}
        for each in transactions:
            outcomes = self.world.rows[each.producer_id, each.producer_epoch]
            if outcomes.open:
                found[each.transactional_id] = Seen.OPEN
            else:
                committed = all(outcomes.outcomes.values())
                found[each.transactional_id] = Seen.COMMITTED if committed else Seen.ABORTED
        if tries and Seen.OPEN in found.values():
            self.world.after(200, lambda: None if self.dead else self._witness(transactions, tries - 1, resume))
        else:
            resume(found)
