"""What administrators do to a cluster while it works: topics come, go and grow, replicas move, leaders are elected."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from random import Random
from typing import TYPE_CHECKING, Any

from penstock.client.cluster_view import ClusterView
from penstock.model.errors import PenstockError, error_of
from penstock.protocol.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from penstock.protocol.messages.create_partitions import CreatePartitionsRequest
from penstock.protocol.messages.create_topics import CreateTopicsRequest
from penstock.protocol.messages.delete_topics import DeleteTopicsRequest
from penstock.protocol.messages.elect_leaders import ElectLeadersRequest
from penstock.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest

if TYPE_CHECKING:
    from penstock.testing.sim.machine import SimClock
    from penstock.testing.sim.plan import Plan
    from penstock.testing.sim.world import World

TIMEOUT_MS = 3_000
RETRY_S = 0.3
PARTITIONS_MAX = 6
TOPIC_EXISTS = 36
CONFIGS = (("segment.bytes", "1048576"), ("max.message.bytes", "500000"), ("flush.ms", "100"))
TOPIC = 2
SET = 0


class Chores:
    """One administrator. What a chore comes to is told; that it fails while things go wrong is as it should be."""

    def __init__(self, world: World, plan: Plan, topic: str) -> None:
        self._world, self._plan, self._topic = world, plan, topic
        self._view: ClusterView | None = None
        self._made: list[str] = []
        self._count = 0
        self.partitions = plan.partitions
        self.deleted: set[str] = set()
        """Topics that were, or may have been, deleted."""

    async def begin(self, clock: SimClock, topics: Mapping[str, Mapping[str, str]]) -> None:
        """Makes the topics that everybody works on, with their configs, however often that has to be tried."""
        self._view = ClusterView(self._plan.bootstrap, timeout_ms=TIMEOUT_MS, client_id="admin", clock=clock)
        for name, configs in topics.items():
            while True:
                outcome = await self._create(name, self._plan.partitions, configs)
                if outcome in ("NONE", error_of(TOPIC_EXISTS).name):
                    break
                await asyncio.sleep(RETRY_S)

    async def run(self, random: Random, stopping: Callable[[], bool]) -> None:
        plan = self._plan
        names = sorted(plan.chores)
        weights = [plan.chores[name] for name in names]
        while not stopping():
            await asyncio.sleep(random.expovariate(1 / plan.between_chores_s))
            if names and not stopping():
                chore = random.choices(names, weights)[0]
                await getattr(self, f"_{chore}_something")(random)
        assert self._view is not None, "it has begun"
        self._view.close()

    async def _ask(self, what: str, request: object, code: Callable[[Any], int]) -> str:
        assert self._view is not None, "it has begun"
        try:
            answer = error_of(code(await self._view.ask_any(request))).name
        except PenstockError as failure:
            answer = f"no answer: {failure}"
        self._world.story.tell("admin", f"{what}: {answer}")
        self._world.story.count("chores")
        return answer

    async def _create(self, name: str, partitions: int, configs: Mapping[str, str]) -> str:
        made = CreateTopicsRequest
        topic = made.CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=self._plan.replication,
            configs=[made.CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
        )
        request = CreateTopicsRequest(topics=[topic], timeout_ms=TIMEOUT_MS)
        return await self._ask(f"create {name}", request, lambda reply: reply.topics[0].error_code)

    async def _create_something(self, random: Random) -> None:
        self._count += 1
        name = f"made-{self._count}"
        self._made.append(name)
        await self._create(name, random.randint(1, 3), {})

    async def _delete_something(self, random: Random) -> None:
        if not self._made:
            return
        name = self._made.pop(random.randrange(len(self._made)))
        self.deleted.add(name)
        request = DeleteTopicsRequest(topics=[DeleteTopicsRequest.DeleteTopicState(name=name)], timeout_ms=TIMEOUT_MS)
        await self._ask(f"delete {name}", request, lambda reply: reply.responses[0].error_code)

    async def _grow_something(self, random: Random) -> None:
        if self.partitions >= PARTITIONS_MAX:
            return
        topic = CreatePartitionsRequest.CreatePartitionsTopic(name=self._topic, count=self.partitions + 1)
        request = CreatePartitionsRequest(topics=[topic], timeout_ms=TIMEOUT_MS)
        outcome = await self._ask(f"grow {self._topic}", request, lambda reply: reply.results[0].error_code)
        if outcome in ("NONE", "INVALID_PARTITIONS"):  # it may have been done when nobody could say so
            self.partitions += 1

    async def _reassign_something(self, random: Random) -> None:
        brokers = random.sample(self._plan.brokers, self._plan.replication)
        number = random.randrange(self.partitions)
        made = AlterPartitionReassignmentsRequest
        target = None if random.random() < 0.1 else brokers
        partition = made.ReassignablePartition(partition_index=number, replicas=target)
        request = made(topics=[made.ReassignableTopic(name=self._topic, partitions=[partition])], timeout_ms=TIMEOUT_MS)
        words = f"move {self._topic}-{number} to {target}" if target else f"cancel moving {self._topic}-{number}"
        await self._ask(words, request, lambda reply: reply.error_code or _first_code(reply.responses))

    async def _elect_something(self, random: Random) -> None:
        request = ElectLeadersRequest(election_type=0, topic_partitions=None, timeout_ms=TIMEOUT_MS)
        await self._ask("elect preferred leaders", request, lambda reply: reply.error_code)

    async def _configure_something(self, random: Random) -> None:
        made = IncrementalAlterConfigsRequest
        name, value = random.choice(
            (("segment.bytes", "1048576"), ("max.message.bytes", "500000"), ("flush.ms", "100"))
        )
        config = made.AlterableConfig(name=name, config_operation=SET, value=value)
        resource = made.AlterConfigsResource(resource_type=TOPIC, resource_name=self._topic, configs=[config])
        await self._ask(f"set {name}={value}", made(resources=[resource]), lambda reply: reply.responses[0].error_code)


def _first_code(topics: Any) -> int:
    return next((partition.error_code for topic in topics for partition in topic.partitions), 0)
