"""The machine against a small coordinator, over a network that loses, delays and repeats what it carries.

Each transaction of the application has a number, and the coordinator keeps which number it has open and how each ended.
What must hold: an end that was answered is the end that happened, and no request, however late, ends or fills another
transaction than the one it was sent for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.client.errors import NotReachable, TransactionAbortable, TransactionFenced, refusal
from penstock.client.producer.transactions.effects import Drain, Send
from penstock.client.producer.transactions.machine import State, TransactionMachine
from penstock.client.producer.transactions.reactions import Api
from tests.properties import examples
from tests.unit.client.producer.transactions.life import BUMPING, CLASSIC, Life, job, reply_to

EXHAUSTED = 32_766
LOST = NotReachable("lost on its way", retriable=True)


class WrongTransaction(AssertionError):
    """A request has reached another transaction than its own."""


@dataclass
class Coordinator:
    """InitProducerId, additions and EndTxn by the rules of both protocols; markers are there at once."""

    producer_id: int = 100
    epoch: int = -1
    last: int = -1
    open: int | None = None
    ended_as: bool | None = None  # whether the transaction before was committed
    fates: dict[int, bool] = field(default_factory=dict)

    def serve(self, sent: Send, number: int) -> tuple[int, dict[str, int]]:
        """The error code and fields for a request of the application's transaction `number`."""
        request = sent.request
        match sent.api:
            case Api.INIT:
                return self._init(request.producer_id, request.producer_epoch)
            case Api.ADD_PARTITIONS:
                return self._add(request.v3_and_below_producer_epoch, number)
            case Api.ADD_OFFSETS:
                return self._add(request.producer_epoch, number)
            case Api.COMMIT_OFFSETS:
                return self._offsets(request.producer_epoch, number, joins=sent.oldest == 5)
            case Api.END if sent.oldest == 5:
                return self._end_bumping(request.producer_epoch, number, commits=request.committed)
        return self._end_classic(request.producer_epoch, number, commits=request.committed)

    def _init(self, producer_id: int, epoch: int) -> tuple[int, dict[str, int]]:
        if producer_id >= 0 and epoch not in (self.epoch, self.last):
            return 90, {}
        if self.open is not None:
            self._close(commits=False)
            self.last, self.epoch = -1, self.epoch + 1
            return 51, {}
        if producer_id < 0 or epoch == self.epoch:
            self.last, self.epoch = self.epoch, self.epoch + 1
        self.ended_as = None
        return 0, {"producer_id": self.producer_id, "producer_epoch": self.epoch}

    def _add(self, epoch: int, number: int) -> tuple[int, dict[str, int]]:
        if epoch != self.epoch:
            return 90, {}
        if self.open is None:
            self.open = number
        if self.open != number:
            raise WrongTransaction(f"what is of {number} was added to {self.open}")
        return 0, {}

    def _offsets(self, epoch: int, number: int, *, joins: bool) -> tuple[int, dict[str, int]]:
        if epoch != self.epoch:
            return 90, {}
        if self.open is None and joins:
            self.open = number
        if self.open is None:
            return 120, {}
        if self.open != number:
            raise WrongTransaction(f"offsets of {number} are in {self.open}")
        return 0, {}

    def produced(self, epoch: int, number: int) -> int:
        """The leader adds the partition of a first batch."""
        return self._add(epoch, number)[0]

    def time_out(self) -> None:
        """An open transaction takes too long."""
        if self.open is not None:
            self._close(commits=False)
            self.last, self.epoch = self.epoch, self.epoch + 1

    def _close(self, *, commits: bool) -> None:
        assert self.open is not None
        # A late addition may open it a second time, with nothing in it.
        self.fates.setdefault(self.open, commits)
        self.open, self.ended_as = None, commits

    def _end_classic(self, epoch: int, number: int, *, commits: bool) -> tuple[int, dict[str, int]]:
        if epoch != self.epoch:
            return 90, {}
        if self.open is None:
            return (0 if self.ended_as is commits else 48), {}
        if self.open != number:
            raise WrongTransaction(f"the end of {number} has ended {self.open}")
        self._close(commits=commits)
        return 0, {}

    def _end_bumping(self, epoch: int, number: int, *, commits: bool) -> tuple[int, dict[str, int]]:
        told = {"producer_id": self.producer_id, "producer_epoch": self.epoch}
        if epoch == self.epoch - 1 and self.open is None and self.ended_as is not None:
            return (0 if self.ended_as is commits else 48), told
        if epoch != self.epoch:
            return 90, {}
        if self.open is None:
            if commits:
                return 48, {}
            self.ended_as = False
        else:
            if self.open != number:
                raise WrongTransaction(f"the end of {number} has ended {self.open}")
            self._close(commits=commits)
        self.last, self.epoch = self.epoch, self.epoch + 1
        return 0, {**told, "producer_epoch": self.epoch}


class World:
    """One application, its machine, the network and the coordinator, moved by chance."""

    def __init__(self, seed: int, level: int, machine: type[TransactionMachine] = TransactionMachine) -> None:
        self.dice = Random(seed)
        self.life = Life(level, machine)
        self.coordinator = Coordinator()
        self.number = 0
        self.late: list[tuple[Send, int]] = []  # copies that are still on their way
        self.claims: dict[int, bool] = {}
        self.wanted: bool | None = None
        self.draining = False
        self.tried = False

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self._step()
            self._check()

    def _step(self) -> None:
        life, dice = self.life, self.dice
        if self.late and dice.random() < 0.15:
            sent, number = self.late.pop(dice.randrange(len(self.late)))
            self.coordinator.serve(sent, number)
        if not life.idle and dice.random() < 0.8:
            self._network()
        elif self.draining and dice.random() < 0.7:
            self.draining = False
            self._do("quiet")
        elif dice.random() < 0.02:
            self.coordinator.time_out()
        else:
            self._application()
        if dice.random() < 0.3:
            life.now += dice.choice([10, 30, 300, 2_000])
            self._do("tick")

    def _do(self, event: str, *arguments: object, **named: object) -> None:
        self.life.do(event, *arguments, **named)
        self.draining = self.draining or any(isinstance(effect, Drain) for effect in self.life.effects)

    def _network(self) -> None:
        sent, dice = self.life.asked, self.dice
        fate = dice.random()
        if fate < 0.1:
            self._do("unanswered", sent, LOST, reached=True)
        elif fate < 0.25:  # it is late, and may be served when nobody expects it any more
            self.late.append((sent, self.number))
            self._do("unanswered", sent, LOST, reached=True)
        elif fate < 0.35:
            self.coordinator.serve(sent, self.number)
            self._do("unanswered", sent, LOST, reached=True)
        elif fate < 0.45:
            self._do("unanswered", sent, refusal(15, None, "t"), reached=False)
        elif fate < 0.55:
            self._do("replied", sent, reply_to(sent, dice.choice([16, 14, 51])))
        else:
            code, fields = self.coordinator.serve(sent, self.number)
            self._do("replied", sent, reply_to(sent, code, **fields))

    def _application(self) -> None:
        life, dice = self.life, self.dice
        machine = life.machine
        match life.state:
            case State.UNINITIALIZED:
                self._do("initialise")
            case State.READY:
                self._learn()
                self.number += 1
                self.wanted = None
                self._do("begin")
            case State.OPEN:
                self._work()
            case State.PREPARED | State.COMMITTING if self.draining and dice.random() < 0.1:
                self._do("batch_failed", refusal(19, None, "out-0"))
            case State.PREPARED if machine.prepared is not None:
                self._end(dice.random() < 0.5)
            case State.ABORTABLE:
                self._end(commits=False)
            case State.FATAL:
                self._learn()
                # A new producer with the same name goes on.
                level = BUMPING if machine._level >= BUMPING else CLASSIC
                self.life = Life(level, type(machine))
                self.draining = False
            case _:
                self._learn()

    def _work(self) -> None:
        machine, dice = self.life.machine, self.dice
        chance = dice.random()
        if chance < 0.5:
            partition = ("out", dice.randrange(3))
            if machine.admits(partition) and machine.bumping:
                assert machine.producer is not None
                if self.coordinator.produced(machine.producer.epoch, self.number):
                    self._do("batch_failed", refusal(47, None, "out-0"))
            else:
                self._do("tick")
        elif chance < 0.65:
            self._do("add_offsets", job())
        elif chance < 0.7:
            self._do("prepare")
        else:
            self._end(dice.random() < 0.6)

    def _end(self, commits: bool) -> None:
        self.wanted = commits
        self._do("commit" if commits else "abort")

    def _learn(self) -> None:
        """What the application is told of its last commit or abort."""
        machine = self.life.machine
        if self.wanted is None or machine.ending:
            return
        wanted, self.wanted = self.wanted, None
        try:
            machine.take_outcome()
        except (TransactionAbortable, TransactionFenced):
            return
        self.claims[self.number] = wanted

    def _check(self) -> None:
        for number, committed in self.claims.items():
            fate = self.coordinator.fates.get(number)
            if fate is None:
                # Nothing was written in it. A late addition may open it again until the new epoch is there.
                renewed = self.life.state in (State.INITIALIZING, State.UNINITIALIZED, State.FATAL)
                assert renewed or number != self.coordinator.open, f"{number} was told ended and is open"
            else:
                assert fate is committed, f"{number} was told {committed} and is {fate}"


@given(st.integers(0, 1 << 32), st.sampled_from([CLASSIC, BUMPING]))
def test_what_is_told_is_what_happened_and_late_requests_do_no_harm(seed: int, level: int) -> None:
    World(seed, level).run(examples(150))


def test_transactions_do_end_in_that_world() -> None:
    """Or the property would hold of nothing."""
    for level in (CLASSIC, BUMPING):
        claims = [World(seed, level) for seed in range(20)]
        for world in claims:
            world.run(400)
        ended = [committed for world in claims for committed in world.claims.values()]
        assert sum(ended) > 50
        assert len(ended) - sum(ended) > 50


class Careless(TransactionMachine):
    """Goes on with its epoch after an end that got no answer, as classic producers do."""

    def _doubt(self, sent: Send) -> None:
        if sent.api is not Api.END:
            super()._doubt(sent)


class Hasty(TransactionMachine):
    """Takes an abort for done when it was asked for."""

    def take_outcome(self) -> None:
        self._succeeded = True
        super().take_outcome()


@pytest.mark.parametrize(("planted", "level"), [(Careless, CLASSIC), (Hasty, BUMPING)])
def test_planted_bugs_are_found(planted: type[TransactionMachine], level: int) -> None:
    def found(seed: int) -> bool:
        try:
            World(seed, level, planted).run(400)
        except AssertionError:
            return True
        return False

    assert any(found(seed) for seed in range(300))
