"""Somebody who changes the cluster all the time, by the requests that administrators have."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from penstock.client.cluster_view import ClusterView
from penstock.client.errors import ClientError
from penstock.model.errors import PenstockError, error_of
from penstock.protocol.messages.create_topics import CreateTopicsRequest
from penstock.testing.sim.plan import Plan, Possible, always
from penstock.testing.sim.trouble import controller_image

if TYPE_CHECKING:
    from penstock.testing.sim.founding import Founding
    from penstock.testing.sim.machine import Machine, SimClock
    from penstock.testing.sim.truth import Truth
    from penstock.testing.sim.world import World

TIMEOUT_MS = 3_000
DONE = ("NONE", "TOPIC_ALREADY_EXISTS")
"""A topic may have been made when nobody could say so."""

RETRY_S = 0.3
LOOK_EVERY_S = 0.1
PATIENCE_S = 10.0


@dataclass(frozen=True, slots=True)
class Chore:
    """Something that an administrator asks for. Its deed says whether it came about: many are refused while things go
    wrong, and that is as it should be."""

    name: str
    deed: Callable[[Administrator, Random], Awaitable[bool]]
    chance: float = 0.6
    possible: Possible = always


class Administrator:
    """Performs chores one after another. What each comes to is told; many fail while things go wrong."""

    timeout_ms = TIMEOUT_MS

    def __init__(self, world: World, plan: Plan, truth: Truth, founding: Founding, chores: Sequence[Chore]) -> None:
        self.world, self.plan, self.truth, self._founding = world, plan, truth, founding
        self.topics = plan.topics()
        self.made: list[str] = []
        self.groups: list[str] = []
        self.expiring: dict[str, None] = {}
        """Groups whose only position was committed for a moment."""

        self.partitions = plan.partitions
        self.brokers = list(plan.brokers)
        """Where replicas may be moved to."""

        self.nodes_added = 0
        self._chores = chores
        self.done = False
        self._view: ClusterView | None = None
        self._count = 0

    async def begin(self, clock: SimClock) -> None:
        """Makes the topics that everybody works on, with their configs, however often that has to be tried."""
        self._view = ClusterView(
            self.plan.bootstrap, timeout_ms=TIMEOUT_MS, client_id="admin", clock=clock, security=self.plan.security()
        )
        for name, configs in self.topics.items():
            while not await self.make_topic(name, self.plan.partitions, configs):
                await self.rest()

    async def run(self, random: Random, stopping: Callable[[], bool]) -> None:
        plan = self.plan
        chores = [chore for chore in self._chores if chore.name in plan.chores]
        weights = [plan.chores[chore.name] for chore in chores]
        while not stopping():
            await asyncio.sleep(random.expovariate(1 / plan.between_chores_s))
            if chores and not stopping():
                chore = random.choices(chores, weights)[0]
                if await chore.deed(self, random):
                    self.world.story.count(chore.name)
        self.view.close()
        self.done = True

    # -- what chores ask for

    async def make_topic(self, name: str, partitions: int, configs: Mapping[str, str]) -> bool:
        """Asks once for a topic; whether it is there now."""
        ask = CreateTopicsRequest
        topic = ask.CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=self.plan.replicas_of(name),
            configs=[ask.CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
        )
        request = ask(topics=[topic], timeout_ms=self.timeout_ms)
        return await self.ask(f"create {name}", request, lambda reply: reply.topics[0].error_code) in DONE

    @property
    def view(self) -> ClusterView:
        assert self._view is not None, "it has begun"
        return self._view

    def next_number(self) -> int:
        self._count += 1
        return self._count

    async def rest(self) -> None:
        await asyncio.sleep(RETRY_S)

    async def until(self, holds: Callable[[], bool]) -> bool:
        """Waits for what the cluster does in its own time; False when that took too long."""
        deadline = asyncio.get_running_loop().time() + PATIENCE_S
        while not holds():
            if asyncio.get_running_loop().time() > deadline:
                return False
            await asyncio.sleep(LOOK_EVERY_S)
        return True

    async def ask(self, what: str, request: object, code: Callable[[Any], int], broker: int | None = None) -> str:
        """The name of the error that any broker answers with, or one of them; other words when there is no answer."""
        asking = self.view.ask_any(request) if broker is None else self.view.ask(broker, request)
        try:
            answer = error_of(code(await asking)).name
        except PenstockError as failure:
            answer = f"no answer: {failure}"
        self.world.story.tell("admin", f"{what}: {answer}")
        return answer

    async def ask_coordinator(
        self, what: str, group: str, request: object, code: Callable[[Any], int], version: int | None = None
    ) -> str:
        """The same of the broker that coordinates a group; in a version of its own if one is given."""
        try:
            broker = await self.view.coordinator(group)
            if version is None:
                answer = await self.ask(what, request, code, broker)
            else:
                link = await self.view.link(broker)
                answer = error_of(code(await link.request(request, version, TIMEOUT_MS))).name
                self.world.story.tell("admin", f"{what} in version {version}: {answer}")
        except PenstockError as failure:
            answer = f"no answer: {failure}"
            self.world.story.tell("admin", f"{what}: {answer}")
        if answer != "NONE":
            self.view.forget_coordinator(group)
        return answer

    async def leader_of(self, topic: str, number: int) -> int | None:
        try:
            await self.view.topics([topic])
        except ClientError:
            return None
        return self.view.leader_of(topic, number)

    # -- machines

    def _machine(self, node_id: int) -> Machine:
        return next(machine for machine in self.world.machines if machine.node_id == node_id)

    def add_machine(self) -> int:
        """A new machine starts; gives back its node id."""
        machine = self._founding.add_machine()
        self._founding.replace_disk(machine)
        machine.start()
        return machine.node_id

    def serves(self, node_id: int) -> bool:
        return self._machine(node_id).serving

    def replicas_on(self, node_id: int) -> list[tuple[str, int, list[int]]] | None:
        """What a broker has, as (topic, partition, replicas); None when nobody can say just now."""
        image = controller_image(self.world)
        if image is None:
            return None
        return [
            (topic.name, number, list(partition.replicas))
            for topic in image.topics.values()
            for number, partition in enumerate(topic.partitions)
            if node_id in partition.replicas
        ]

    async def retire(self, node_id: int) -> None:
        """Stops a machine for good, cleanly if it can."""
        machine = self._machine(node_id)
        machine.retired = True
        if machine.up:
            machine.resume()
            machine.stop()
            if not await self.until(lambda: not machine.up):
                machine.kill()
        self.world.machines.remove(machine)

    def expired(self, group: str) -> None:
        """A group that was left alone is gone."""
        self.expiring.pop(group, None)
        if group in self.groups:
            self.groups.remove(group)
