"""Things go wrong just when a transaction is at a point that counts.

Between the record that decides a transaction and the one that says that all its markers are written there are some
milliseconds; mishaps that come at any time meet them once in a hundred worlds. So whenever the log of a coordinator
says something new, somebody may be struck in that instant or a moment later: the coordinator, a leader of a partition
that takes part, the way between the two, or the client whose transaction it is. The fault model is that of
`trouble.py`.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from penstock.client.cluster_view import ClusterView
from penstock.coordinators.home import home_partition
from penstock.coordinators.transactions.transaction import PREPARED
from penstock.model.errors import PenstockError
from penstock.model.ids import TRANSACTIONS_TOPIC
from penstock.protocol.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from penstock.protocol.messages.elect_leaders import ElectLeadersRequest
from penstock.testing.sim.acts.machines import Aftermath, cut_its_power, kill_it, pause_it, restart_it
from penstock.testing.sim.topics import ALONE
from penstock.testing.sim.trouble import image_of
from penstock.testing.sim.workload import Client

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.coordinators.transactions.transaction import State
    from penstock.testing.sim.machine import Machine
    from penstock.testing.sim.plan import Plan
    from penstock.testing.sim.transactions.clients import Crowd
    from penstock.testing.sim.transactions.plan import TransactionPlan
    from penstock.testing.sim.trouble import Trouble
    from penstock.testing.sim.world import World

TIMEOUT_MS = 1_500
MOMENTS = (0, 0, 1, 2, 4, 10)
"""After so many ways through the network somebody is struck."""

SELDOM = 0.15
"""How many of the moments count in which nothing is decided."""

CUT_S = (0.1, 0.5, 2.0, 4.0)


class Moment(NamedTuple):
    """What a coordinator has just written, and where."""

    name: str
    partitions: tuple[tuple[str, int], ...]


class Moments:
    """Strikes from `start` to `stop`, as often as the plan says."""

    def __init__(self, world: World, plan: Plan, drawn: TransactionPlan, trouble: Trouble, crowd: Crowd) -> None:
        self._world, self._plan, self._drawn, self._trouble, self._crowd = world, plan, drawn, trouble, crowd
        self._random = Random(f"moments {world.seed}")
        self._strikes: dict[Callable[[Moment], bool], float] = {}
        self._homes = int(plan.properties["transaction.state.log.num.partitions"])
        self._next_s = 0.0
        self._active = False
        self._mover = Mover(world, plan)

    def start(self) -> None:
        random = self._random
        several = self._plan.nodes > 1
        for strike, weight in (
            (self._move, 3.0), (self._move_back, 1.5), (self._cut, 1.5), (self._cut_and_move, 1.5), (self._kill, 1.0),
            (self._cut_power, 1.0), (self._pause, 1.0), (self._restart, 1.0), (self._end_client, 1.0),
            (self._end_client_and_move, 1.0), (self._orphan, 4.0),
        ):  # fmt: skip
            of_several = strike in (self._move, self._move_back, self._cut, self._cut_and_move)
            if strike == self._orphan and not self._drawn.alone:
                continue
            if random.random() < 0.6 and (several or not of_several):
                self._strikes[strike] = weight
        self._active = bool(self._strikes)
        self._mover.start()

    def stop(self) -> None:
        self._active = False

    def told(self, name: str, last: State | None, state: State) -> None:
        """A coordinator has written something, and it is committed."""
        scheduler = self._world.scheduler
        if not self._active or scheduler.now < self._next_s:
            return
        may_be_orphaned = self._drawn.alone and any(topic == ALONE for topic, _ in state.partitions)
        if state.status not in PREPARED and not may_be_orphaned and self._random.random() >= SELDOM:
            return
        self._next_s = scheduler.now + self._random.expovariate(1 / self._drawn.between_strikes_s)
        partitions = state.partitions or (frozenset() if last is None else last.partitions)
        moment = Moment(name, tuple(sorted(partitions)))
        later_s = self._random.choice(MOMENTS) * (self._plan.latency_s + self._plan.jitter_s)
        self._world.loop.call_later(later_s, self._strike, moment, state.status.name.lower())

    def _strike(self, moment: Moment, status: str) -> None:
        if not self._active:
            return
        strike = self._random.choices(list(self._strikes), list(self._strikes.values()))[0]
        if strike(moment):
            self._world.story.count(f"struck in {status}")

    def replace(self, host: str) -> None:
        """Whoever coordinates on this machine does so no more."""
        if not self._active:
            return
        for number in range(self._homes):
            place = TRANSACTIONS_TOPIC, number
            leader = self._leader(place)
            if leader is not None and leader.host == host:
                self._mover.move(place, self._random)

    # -- whom it may befall

    def _places(self, moment: Moment) -> tuple[str, int]:
        """The coordinator's partition, every second time, or one that takes part."""
        if not moment.partitions or self._random.random() < 0.5:
            return self._home(moment)
        return self._random.choice(moment.partitions)

    def _home(self, moment: Moment) -> tuple[str, int]:
        return TRANSACTIONS_TOPIC, home_partition(moment.name, self._homes)

    def _leader(self, place: tuple[str, int]) -> Machine | None:
        partition = image_of(self._world, place)
        leader = -1 if partition is None else partition.leader
        return next((machine for machine in self._world.machines if machine.node_id == leader), None)

    def _victim(self, moment: Moment) -> Machine | None:
        machine = self._leader(self._places(moment))
        return machine if machine is not None and self._trouble.may_be_hurt(machine) else None

    # -- what befalls it

    def _go_on(self, aftermath: Aftermath) -> None:
        if aftermath is not None:
            self._trouble.begin(aftermath)

    def _kill(self, moment: Moment) -> bool:
        victim, trouble = self._victim(moment), self._trouble
        if victim is None or not trouble.may_end_uncleanly(victim):
            return False
        self._go_on(kill_it(trouble, victim))
        return True

    def _cut_power(self, moment: Moment) -> bool:
        victim, trouble = self._victim(moment), self._trouble
        if victim is None or self._drawn.alone or not trouble.may_end_uncleanly(victim, loses_bytes=True):
            return False
        self._go_on(cut_its_power(trouble, victim))
        return True

    def _pause(self, moment: Moment) -> bool:
        victim = self._victim(moment)
        if victim is not None:
            self._go_on(pause_it(self._trouble, victim))
        return victim is not None

    def _restart(self, moment: Moment) -> bool:
        victim = self._victim(moment)
        if victim is None or not victim.serving:
            return False
        self._go_on(restart_it(self._trouble, victim))
        return True

    def _move(self, moment: Moment) -> bool:
        self._mover.move(self._places(moment), self._random)
        return True

    def _move_back(self, moment: Moment) -> bool:
        """Away and back again: the node that led leads once more, in another epoch."""
        place = self._places(moment)
        self._mover.move(place, self._random)
        self._mover.move(place, self._random)
        return True

    def _cut(self, moment: Moment) -> bool:
        """From one to the other nothing comes through for a while; what was sent arrives afterwards."""
        if not moment.partitions:
            return False
        source, target = self._leader(self._home(moment)), self._leader(self._random.choice(moment.partitions))
        if source is None or target is None or source is target:
            return False
        pair = (source.host, target.host) if self._random.random() < 0.7 else (target.host, source.host)
        network = self._world.network
        if network.blocked(*pair):
            return False
        self._world.story.tell("network", f"{pair[1]} hears nothing from {pair[0]}")
        network.block(*pair)

        async def heal() -> None:
            await asyncio.sleep(self._random.choice(CUT_S))
            network.unblock([pair])

        self._trouble.begin(heal())
        return True

    def _cut_and_move(self, moment: Moment) -> bool:
        """The same, and another one takes over meanwhile."""
        cut = self._cut(moment)
        self._mover.move(self._home(moment) if self._random.random() < 0.7 else self._places(moment), self._random)
        return cut

    def _orphan(self, moment: Moment) -> bool:
        """Nobody leads a partition that takes part, and the transaction ends meanwhile: its client has gone."""
        places = [place for place in moment.partitions if place[0] == ALONE]
        victim = self._leader(self._random.choice(places)) if places else None
        if victim is None or not self._trouble.may_be_hurt(victim) or not victim.serving:
            return False
        self._go_on(restart_it(self._trouble, victim))
        self._crowd.befall(moment.name, "dies")
        self._world.story.count("partitions orphaned")
        return True

    def _end_client(self, moment: Moment) -> bool:
        return self._crowd.befall(moment.name, self._random.choice(("dies", "goes dark", "is left", "is paused")))

    def _end_client_and_move(self, moment: Moment) -> bool:
        """Nobody comes back to a transaction, and its coordinator is another one."""
        befallen = self._crowd.befall(moment.name, "is left")
        self._mover.move(self._home(moment), self._random)
        return befallen


class Mover:
    """Has other replicas lead, by the requests that administrators have."""

    def __init__(self, world: World, plan: Plan) -> None:
        self._world, self._plan = world, plan
        self._client = Client(world, "mover")
        self._wanted: asyncio.Queue[tuple[str, int, list[int]]] | None = None

    def start(self) -> None:
        self._client.run(self._work())

    def move(self, place: tuple[str, int], random: Random) -> None:
        """Another one in sync shall lead, if there is any."""
        partition = image_of(self._world, place)
        if partition is None or self._wanted is None or partition.reassigning:
            return
        others = [each for each in partition.isr if each != partition.leader]
        if others:
            first = random.choice(others)
            replicas = [first, *(each for each in partition.replicas if each != first)]
            self._client.loop.call_soon(self._wanted.put_nowait, (*place, replicas))

    async def _work(self) -> None:
        wanted = self._wanted = asyncio.Queue()
        async with ClusterView(
            self._plan.bootstrap, timeout_ms=TIMEOUT_MS, clock=self._client.clock, security=self._plan.security()
        ) as view:
            while True:
                topic, number, replicas = await wanted.get()
                try:
                    await self._move(view, topic, number, replicas)
                except PenstockError as failure:
                    self._world.story.tell("mover", str(failure))

    async def _move(self, view: ClusterView, topic: str, number: int, replicas: list[int]) -> None:
        self._world.story.tell("mover", f"{topic}-{number} to {replicas}")
        ask = AlterPartitionReassignmentsRequest
        partition = ask.ReassignablePartition(partition_index=number, replicas=replicas)
        topics = [ask.ReassignableTopic(name=topic, partitions=[partition])]
        await view.ask_any(ask(topics=topics, timeout_ms=TIMEOUT_MS))
        elect = ElectLeadersRequest
        chosen = [elect.TopicPartitions(topic=topic, partitions=[number])]
        reply = await view.ask_any(elect(election_type=0, topic_partitions=chosen, timeout_ms=TIMEOUT_MS))
        codes = [each.error_code for result in reply.replica_election_results for each in result.partition_result]
        if codes == [0]:
            self._world.story.count("leaders moved")
