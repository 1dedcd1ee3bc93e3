"""A second coordinator on every broker of a simulated cluster: what the runtime promises holds while nodes die.

The desk of `tests/unit/server/coordinating/desk.py` lends things on real nodes, beside the groups. Machines are killed,
paused, cut off and lose power, replicas are reassigned, and borrowers ask whoever they believe to be in charge.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from functools import partial
from random import Random
from typing import Any

import pytest

from penstock.coordinators.decision import Effect
from penstock.metadata.entities import PartitionImage
from penstock.model.errors import NONE, PenstockError, Refused
from penstock.model.ids import Epoch
from penstock.protocol.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from penstock.protocol.messages.create_topics import CreateTopicsRequest
from penstock.server.coordinating.runtime import Runtime
from penstock.server.internal_topics import plain_topic
from penstock.server.parts.broker import BrokerPart
from penstock.testing.sim.cluster import QUIET_S, UP_S, Simulation
from penstock.testing.sim.drawing import drawn
from penstock.testing.sim.machine import Machine
from penstock.testing.sim.plan import Plan
from penstock.testing.sim.replicas import records
from penstock.testing.sim.trouble import controller_image
from penstock.testing.sim.world import World
from tests.faults.counts import SOAKING
from tests.unit.server.coordinating.desk import (
    READER,
    Announce,
    Asker,
    Borrow,
    DeskKind,
    DeskShard,
    Inquire,
    LoanKey,
    LoanValue,
    Reply,
    Return,
    refused,
)

SEEDS = range(1, 200 if SOAKING else 4)
SECONDS = 12.0
TOPIC, PARTITIONS = "__loans", 2
THINGS = [f"thing-{number}" for number in range(6)]
BORROWERS = [f"borrower-{number}" for number in range(8)]
MISHAPS = (
    "kills", "power cuts", "pauses", "restarts", "clocks set", "nodes cut off", "one-way cuts", "splits", "slow links",
    "connections cut",
)  # fmt: skip
CREATE_TOPICS_VERSION, REASSIGN_VERSION = 7, 0


class SimKind(DeskKind):
    """Announces with a delay, and tells the desk; checks each effect as it is let out."""

    def __init__(self, simulation: DeskSimulation, node_id: int, *, careless: bool) -> None:
        super().__init__(TOPIC, PARTITIONS, careless=careless, timeout_ms=5_000)
        self._simulation, self._machine = simulation, simulation.world.machines[node_id - 1]
        self._life = self._machine.lives
        self._random = Random(f"{simulation.world.seed} {node_id} {self._life}")
        self._tenures: Counter[int] = Counter()
        self.runtime: Runtime[DeskShard] | None = None

    def carry_out(self, index: int, epoch: Epoch, effects: Sequence[Effect]) -> None:
        assert self.runtime is not None
        hosted, (home,) = self.runtime.hosted_at(index), [home for home in self.runtime if home.index == index]
        shard = home.shard
        if home.epoch != epoch or epoch < hosted.state.epoch:
            self._simulation.wrong(f"effects of epoch {epoch} are let out in {home.epoch}, {hosted.state.epoch}")
        for effect in effects:
            assert isinstance(effect, Announce)
            self._simulation.announced(self._machine, (self._life, index, self._tenures[index]), epoch, effect)
            if shard is None:
                self._simulation.wrong(f"{effect} is let out by a shard that is gone")
            elif not shard.lent[effect.thing, effect.number][1] < hosted.state.high_watermark:
                self._simulation.wrong(f"{effect} is let out although the loan is not committed")
            self._later(index, self._tenures[index], epoch, effect)

    def _later(self, index: int, tenure: int, epoch: Epoch, effect: Announce) -> None:
        delay_s = self._random.choice((0.001, 0.05, 0.4))
        asyncio.get_running_loop().call_later(delay_s, self._done, index, tenure, epoch, effect)

    def _done(self, index: int, tenure: int, epoch: Epoch, effect: Announce) -> None:
        assert self.runtime is not None
        if tenure != self._tenures[index]:
            return  # given up
        if not self.runtime.tell(index, epoch, lambda shard, _now: shard.announced(effect.thing, effect.number)):
            self._later(index, tenure, epoch, effect)

    def give_up(self, index: int) -> None:
        self._tenures[index] += 1

    def on_expire(self, shard: DeskShard) -> None:
        assert self.runtime is not None
        self._simulation.world.story.count("loans that were over")
        homes = [home for home in self.runtime if home.shard is shard]
        if not homes or not self.runtime.hosted_at(homes[0].index).state.leading:
            self._simulation.wrong(f"{self._machine.host} looks at the clock for a shard that it does not lead")


class DeskSimulation(Simulation):
    """A cluster of brokers with a desk on each, its borrowers, and all that they were told."""

    def __init__(self, world: World, plan: Plan) -> None:
        super().__init__(world, plan)
        self._random = world.new_random()
        self.desks: dict[int, Runtime[DeskShard]] = {}
        self._asked = 0
        self._open: dict[int, tuple[Machine, int, object]] = {}
        self.lent: dict[tuple[str, int], str] = {}
        self.let_out: dict[tuple[str, int], str] = {}
        self._let_out_once: set[tuple[Any, ...]] = set()
        self._stopping = False
        ended = world.on_node_ended

        def node_ended(machine: Machine) -> None:
            ended(machine)
            self.desks.pop(machine.node_id, None)
            # Whoever waited there has lost its connection.
            self._open = {key: asked for key, asked in self._open.items() if asked[0] is not machine}

        world.on_node_ended = node_ended

    def wrong(self, what: str) -> None:
        self.story.violated(what)

    def announced(self, machine: Machine, tenure: tuple[int, ...], epoch: Epoch, effect: Announce) -> None:
        self.story.count("announcements")
        if epoch != effect.epoch:
            self.wrong(f"{effect} is let out in epoch {epoch}")
        if self.let_out.setdefault((effect.thing, effect.number), effect.borrower) != effect.borrower:
            self.wrong(f"{effect}: the same number was announced for {self.let_out[effect.thing, effect.number]}")
        once = (machine.host, *tenure, effect)
        if once in self._let_out_once:
            self.wrong(f"{machine.host} lets {effect} out twice")
        self._let_out_once.add(once)

    # -- its life

    def live(self) -> None:
        self.founding.found(None)
        for machine in self.world.machines:
            machine.start()
        if not self._until(lambda: all(machine.serving for machine in self.world.machines), UP_S):
            self._complain("the cluster did not come up", [])
            return
        self._on(self.world.machines[0], lambda desk: asyncio.ensure_future(desk.topic_made()))
        if not self._until(lambda: sum(1 for _ in self._homes()) == PARTITIONS, UP_S):
            self._complain("nobody leads the topic of the desk", [])
            return
        for work in (self._borrowing(), self._reassigning()):
            self.world.loop.create_task(work)
        self.trouble.start()
        self._until(lambda: False, self.plan.trouble_s)
        self._stopping = True
        self.trouble.make_good()
        if not self._until(lambda: self._looks_now() and not self._unsettled(), QUIET_S):
            self._complain("not in order", self._unsettled())
        if not self.story.violations:
            self._judge_desk()

    def _homes(self) -> Any:
        return (home for desk in self.desks.values() for home in desk)

    def _on(self, machine: Machine, act: Any) -> None:
        """Does something on the loop of a machine, where its desk lives."""

        def there() -> None:
            desk = self.desks.get(machine.node_id)
            if desk is not None:
                act(desk)

        if machine.loop is not None:
            machine.loop.call_soon(there)

    # -- borrowers

    async def _borrowing(self) -> None:
        while not self._stopping:
            await asyncio.sleep(self._random.choice((0.002, 0.02, 0.1)))
            thing, borrower = self._random.choice(THINGS), self._random.choice(BORROWERS)
            if self._random.random() < 0.1:
                self._ask(Inquire(thing))
            else:
                self._ask(Borrow(thing, borrower, for_ms=self._random.choice((100, 400, 1_500))))

    def _ask(self, request: Any) -> None:
        image = controller_image(self.world)
        topic = None if image is None else image.topic(TOPIC)
        machine = self._random.choice(self.world.machines)
        if topic is not None and self._random.random() < 0.8:
            desk = next(iter(self.desks.values()), None)
            leader = -1 if desk is None else topic.partitions[desk.home_of(request.thing)].leader
            machine = self.world.machines[leader - 1] if leader > 0 else machine
        self._asked += 1
        self._on(machine, partial(self._put, machine, self._asked, request))

    def _put(self, machine: Machine, key: int, request: Any, desk: Runtime[DeskShard]) -> None:
        self._open[key] = (machine, machine.lives, request)
        outcome: Any = desk.ask(request.thing, request, Asker(), refused)
        if isinstance(outcome, asyncio.Future):
            outcome.add_done_callback(lambda done: self._answered(key, request, done.result()))
        else:
            self._answered(key, request, outcome)

    def _answered(self, key: int, request: Any, reply: Reply) -> None:
        if self._open.pop(key, None) is None:
            self.wrong(f"{request} was answered twice, or after its node had died: {reply}")
        self.story.count("answers" if reply.error is NONE else f"answers {reply.error.name}")
        if not isinstance(request, Borrow) or reply.error is not NONE:
            return
        if self.lent.setdefault((request.thing, reply.number), reply.borrower) != reply.borrower:
            self.wrong(f"{request.thing} was lent to two at once: {reply}")
        if not self._stopping and self._random.random() < 0.5:
            back = Return(request.thing, reply.number)
            self.world.loop.call_later(self._random.choice((0.01, 0.2)), self._ask, back)

    async def _reassigning(self) -> None:
        """A replica less and one more, now and then: leaders stay, and their epochs rise."""
        while not self._stopping:
            await asyncio.sleep(self._random.uniform(0.3, 1.5))
            image = controller_image(self.world)
            topic = None if image is None else image.topic(TOPIC)
            if topic is None:
                continue
            number = self._random.randrange(PARTITIONS)
            replicas = self._other_replicas(topic.partitions[number])
            made = AlterPartitionReassignmentsRequest
            wanted = made.ReassignableTopic(
                name=TOPIC, partitions=[made.ReassignablePartition(partition_index=number, replicas=replicas)]
            )
            machine = self._random.choice(self.world.machines)
            if machine.loop is not None and machine.serving:
                machine.loop.create_task(_submitted(machine, made(topics=[wanted]), REASSIGN_VERSION))

    def _other_replicas(self, partition: PartitionImage) -> list[int]:
        everybody = list(self.plan.brokers)
        if len(partition.replicas) < len(everybody) or partition.leader not in everybody:
            return everybody
        return [partition.leader, next(node for node in everybody if node != partition.leader)]

    # -- the end

    def _unsettled(self) -> list[str]:
        found = [f"{machine.host} does not serve" for machine in self.world.machines if not machine.serving]
        homes = list(self._homes())
        if found or sorted(home.index for home in homes) != list(range(PARTITIONS)):
            return [*found, f"homes {[home.index for home in homes]}"]
        found = [f"nobody answered {request} at {machine.host}" for machine, _, request in self._open.values()]
        for home in homes:
            if home.shard is not None:
                for thing, loan in home.shard.loans.items():
                    if loan.borrower or not loan.announced:
                        found.append(f"{thing} is {loan}")
                found += [f"{name} waits" for queue in home.shard.waiting.values() for _, name, _ in queue]
        return found

    def _judge_desk(self) -> None:
        """Whatever anybody was told is in the logs, and of each thing one loan after the other."""
        in_logs: dict[tuple[str, int], str] = {}
        for desk in self.desks.values():
            for home in desk:
                hosted = desk.hosted_at(home.index)
                for record in records(hosted.require_log(), hosted.state.high_watermark):
                    state = READER.read(record.key, record.value)
                    assert state is not None
                    assert isinstance(state.key, LoanKey)
                    assert isinstance(state.value, LoanValue)
                    if state.value.borrower:
                        known = in_logs.setdefault((state.key.thing, state.value.number), state.value.borrower)
                        if known != state.value.borrower:
                            self.wrong(f"loan {state.value.number} of {state.key.thing} has two borrowers")
        for what, told in (("lent", self.lent), ("announced", self.let_out)):
            for loan, borrower in told.items():
                if in_logs.get(loan) != borrower:
                    self.wrong(f"{loan} was {what} to {borrower} and is not in the log: {in_logs.get(loan)}")
        missing = set(in_logs) - set(self.let_out)
        overtaken = {(thing, number) for thing, number in missing if (thing, number + 1) in in_logs}
        if missing - overtaken:
            self.wrong(f"never announced: {sorted(missing - overtaken)}")
        self.story.count("loans", len(in_logs))
        self.story.count("led on", sum(len(home.shard.epochs) - 1 for home in self._homes() if home.shard is not None))


async def _submitted(machine: Machine, request: Any, version: int) -> Any:
    """What the active controller answers, if it does."""
    assert machine.node is not None
    try:
        return await machine.node.broker._control.ask(request, version)
    except (Refused, PenstockError):
        return None


def with_a_desk(simulation: DeskSimulation) -> type[BrokerPart]:
    """Brokers that have one coordinator more than others."""

    class BrokerWithDesk(BrokerPart):
        def __init__(self, settings: Any, ports: Any, random: Any, control: Any, *rest: Any) -> None:
            super().__init__(settings, ports, random, control, *rest)

            async def make(name: str) -> bool:
                topic = plain_topic(name, PARTITIONS, simulation.plan.replication)
                request = CreateTopicsRequest(topics=[topic], timeout_ms=5_000)
                return bool(await control.ask(request, CREATE_TOPICS_VERSION))

            kind = SimKind(simulation, settings.node_id, careless=simulation.world.seed % 2 == 0)
            desk = Runtime(kind, settings.node_id, self.partitions, ports.clock, make_topic=make)
            kind.runtime = simulation.desks[settings.node_id] = desk
            self.coordinators.append(desk)

    return BrokerWithDesk


@pytest.mark.parametrize("seed", SEEDS)
def test_loans_and_announcements_are_true_whatever_happens_to_the_cluster(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(seed)
    plan = drawn(world.new_random(), 3, SECONDS)
    plan.controllers = plan.brokers = (1, 2, 3)
    plan.directories, plan.age, plan.century_ms, plan.chores = 1, None, 0, {}
    plan.mishaps = dict.fromkeys(MISHAPS, 1.0)
    plan.between_mishaps_s = 0.8
    simulation = DeskSimulation(world, plan)
    world.story.nodes, world.story.trouble_s = plan.nodes, plan.trouble_s
    monkeypatch.setattr("penstock.server.parts.broker.BrokerPart", with_a_desk(simulation))
    with world.alive():
        simulation.live()
    assert world.story.ok, world.story.text()
    for what in ("loans", "announcements", "loans that were over"):
        assert world.story.counts[what]
