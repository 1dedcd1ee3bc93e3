"""When a cluster is well again it gets other leaders, and something new to read in every partition.

By then readers have had everything and wait at the leaders of before. No connection of theirs breaks, and what they
know of the cluster is not old enough to be asked for again: they learn of a new leader when the old one refuses them.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING, Any

from penstock.client.cluster_view import ClusterView
from penstock.client.producer import Producer
from penstock.model.errors import PenstockError
from penstock.protocol.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from penstock.protocol.messages.elect_leaders import ElectLeadersRequest
from penstock.testing.sim.trouble import controller_image
from penstock.testing.sim.workload import PATIENCE_MS, Client, send

if TYPE_CHECKING:
    from penstock.testing.sim.history import History
    from penstock.testing.sim.plan import Plan
    from penstock.testing.sim.world import World

TIMEOUT_MS = 3_000
RETRY_S = 0.5
SETTINGS: dict[str, Any] = {
    "acks": "all", "idempotence": True, "request_timeout_ms": TIMEOUT_MS, "delivery_timeout_ms": PATIENCE_MS,
    "max_block_ms": PATIENCE_MS, "retry_backoff_ms": 50, "retry_backoff_max_ms": 500,
}  # fmt: skip

Replicas = dict[str, dict[int, list[int]]]
"""Of each partition of each topic, the one that shall lead first."""


class News:
    """One client that brings them; `told` when all of it was acknowledged."""

    def __init__(self, world: World, plan: Plan, history: History) -> None:
        self._world, self._plan, self._history = world, plan, history
        self._client = Client(world, "herald")

    def start(self) -> None:
        self._client.run(self._bring())

    @property
    def told(self) -> bool:
        return self._client.done

    async def _bring(self) -> None:
        wanted = self._led_by_others()
        async with ClusterView(
            self._plan.bootstrap, timeout_ms=TIMEOUT_MS, clock=self._client.clock, security=self._plan.security()
        ) as view:
            while not self._led_as(wanted):
                await self._ask_for(view, wanted)
                await asyncio.sleep(RETRY_S)
        sender = self._history.sender("herald", promised=True, once=not self._plan.producers_expire)
        chance, random = Random(self._client.random.getrandbits(64)), self._client.random
        settings = {**SETTINGS, **self._plan.login}
        async with Producer(self._plan.bootstrap, clock=self._client.clock, chance=chance, **settings) as producer:
            for topic in self._plan.topics():
                for number in wanted[topic]:
                    send(producer, sender, topic, random, partition=number)

    def _led_by_others(self) -> Replicas:
        """The same replicas of every partition, each one place further to the front."""
        image = controller_image(self._world)
        assert image is not None, "it is well"
        return {
            topic.name: {
                number: [*partition.replicas[1:], partition.replicas[0]]
                for number, partition in enumerate(topic.partitions)
            }
            for topic in image.topics.values()
        }

    def _led_as(self, wanted: Replicas) -> bool:
        image = controller_image(self._world)
        return image is not None and all(
            topic.partitions[number].leader == replicas[0]
            for name, partitions in wanted.items()
            if (topic := image.topic(name)) is not None
            for number, replicas in partitions.items()
        )

    async def _ask_for(self, view: ClusterView, wanted: Replicas) -> None:
        ask = AlterPartitionReassignmentsRequest
        topics = [
            ask.ReassignableTopic(
                name=name,
                partitions=[
                    ask.ReassignablePartition(partition_index=number, replicas=replicas)
                    for number, replicas in partitions.items()
                ],
            )
            for name, partitions in wanted.items()
        ]
        try:
            await view.ask_any(ask(topics=topics, timeout_ms=TIMEOUT_MS))
            await view.ask_any(ElectLeadersRequest(election_type=0, topic_partitions=None, timeout_ms=TIMEOUT_MS))
        except PenstockError as failure:
            self._world.story.tell("herald", str(failure))
