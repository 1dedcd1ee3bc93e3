"""The clients of a simulated cluster: producers, a group of consumers, and somebody who changes topics all the time.

They are our own client library on machines of their own. What they were told goes to the history.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import TYPE_CHECKING, Any

from penstock.client.consumer import Consumer
from penstock.client.errors import ClientError
from penstock.client.producer import Producer
from penstock.testing.sim.chores import Chores
from penstock.testing.sim.history import Place
from penstock.testing.sim.machine import SimClock

if TYPE_CHECKING:
    from penstock.client.producer.delivery import Report
    from penstock.model.ids import TopicPartition
    from penstock.testing.sim.history import History, Sender
    from penstock.testing.sim.plan import Plan
    from penstock.testing.sim.world import World

ORDERS, LOOSE, BRIEF = "orders", "loose", "brief"
GROUP = "readers"
PATIENCE_MS = 3_600_000
"""Producers never give up: what they took must come to a good end once the cluster is well."""


class Client:
    """One client process: a machine, a loop, a clock and a task."""

    def __init__(self, world: World, name: str) -> None:
        self.name, self.world = name, world
        world.network.host_up(name)
        self.loop = world.new_loop(name, name)
        self.clock = SimClock(self.loop)
        self.random = world.new_random()
        self.task: asyncio.Task[None] | None = None

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        self.task = self.loop.create_task(work, name=self.name)
        self.task.add_done_callback(self._ended)

    @property
    def done(self) -> bool:
        return self.task is None or self.task.done()

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (broken := task.exception()) is not None:
            self.world.client_failed(self.name, broken)


class Workload:
    """All clients. `stop` lets producers finish; consumers read on until `end`."""

    def __init__(self, world: World, plan: Plan, history: History) -> None:
        self._world, self._plan, self.history = world, plan, history
        self._stopping = self._ending = False
        self.producers: list[Client] = []
        self.consumers: list[Client] = []
        self.chores = Chores(world, plan, ORDERS)

    def start(self) -> None:
        """Makes the topics, then lets everybody work."""
        keeper = Client(self._world, "admin")
        keeper.run(self._keep(keeper))

    async def _keep(self, client: Client) -> None:
        await self.chores.begin(client.clock, {ORDERS: {}, LOOSE: {}, BRIEF: self._plan.kept})
        plan = self._plan
        for number in range(plan.producers):
            self._begin(self.producers, f"p{number + 1}", self._produce, ORDERS, True)
        self._begin(self.producers, "q1", self._produce, LOOSE, False)
        for number in range(plan.consumers):
            self._begin(self.consumers, f"c{number + 1}", self._consume)
        self._begin(self.producers, "r1", self._produce, BRIEF, True)
        await self.chores.run(client.random, lambda: self._stopping)

    def _begin(self, clients: list[Client], name: str, work: Callable[..., Any], *arguments: Any) -> None:
        client = Client(self._world, name)
        clients.append(client)
        client.run(work(client, *arguments))

    def stop(self) -> None:
        """Nothing more is sent or changed."""
        self._stopping = True

    def end(self) -> None:
        """Consumers close."""
        self._ending = True

    @property
    def begun(self) -> bool:
        return bool(self.producers)

    def unfinished(self) -> list[str]:
        """Producers that have not delivered all they took."""
        return [client.name for client in self.producers if not client.done]

    # -- producers

    async def _produce(self, client: Client, topic: str, promised: bool) -> None:
        sender = self.history.sender(client.name, promised=promised)
        random, plan = client.random, self._plan
        settings: dict[str, Any] = {
            "acks": "all" if promised else 1,
            "idempotence": promised,
            "linger_ms": random.choice((0, 5, 50)),
            # Which batches a producer had under way before its last one stands in the log alone, until retention comes.
            "max_in_flight": 1 if topic == BRIEF else plan.in_flight,
            "request_timeout_ms": random.choice((1_000, 3_000)),
            "delivery_timeout_ms": PATIENCE_MS,
            "max_block_ms": PATIENCE_MS,
            "retry_backoff_ms": 50,
            "retry_backoff_max_ms": 500,
            "metadata_max_age_ms": 5_000,
        }
        async with Producer(
            plan.bootstrap, clock=client.clock, chance=Random(random.getrandbits(64)), **settings
        ) as it:
            while not self._stopping:
                for _ in range(random.choice((1, 1, 3))):
                    self._send(it, sender, topic, random)
                await asyncio.sleep(random.expovariate(1 / plan.record_every_s))

    @staticmethod
    def _send(producer: Producer, sender: Sender, topic: str, random: Random) -> None:
        value = sender.next_value()
        number = sender.sent

        def delivered(report: Report | None, failure: ClientError | None) -> None:
            if report is not None:
                sender.acknowledged[number] = Place(report.topic, report.partition, report.offset)
            else:
                sender.failed[number] = str(failure)

        producer.send(topic, value, key=b"%d" % random.randrange(8), on_delivery=delivered)

    # -- consumers

    async def _consume(self, client: Client) -> None:
        """Reads as a member of the group; now and then it leaves and comes back."""
        random = client.random
        while not self._ending:
            stays_s = random.choice((2.0, 8.0, 1_000.0))
            await self._stay(client, asyncio.get_running_loop().time() + stays_s)

    async def _stay(self, client: Client, until: float) -> None:
        settings: dict[str, Any] = {
            "bootstrap_servers": self._plan.bootstrap,
            "group_id": GROUP,
            "group_protocol": self._plan.group_protocol,
            "offset_reset": "earliest",
            "auto_commit_interval_ms": 500,
            "request_timeout_ms": 3_000,
            "default_api_timeout_ms": 10_000,
            "retry_backoff_ms": 50,
            "retry_backoff_max_ms": 500,
            "metadata_max_age_ms": 5_000,
            # A machine that lost power says nothing, so whoever waits for the others of a group waits for so long.
            "max_poll_interval_ms": 8_000,
        }
        if self._plan.group_protocol == "classic":
            settings |= {"session_timeout_ms": 6_000, "heartbeat_interval_ms": 1_000}
        consumer = Consumer(clock=client.clock, **settings)

        def assigned(partitions: list[TopicPartition]) -> None:
            generation: int = getattr(consumer._engine().membership, "generation", -1)
            for topic, partition in partitions:
                self.history.owns_anew(client.name, generation, topic, partition)

        consumer.subscribe([ORDERS], on_assigned=assigned)
        try:
            while not self._ending and (self._stopping or asyncio.get_running_loop().time() < until):
                try:
                    records = await consumer.poll(timeout_ms=1_000)
                except ClientError as trouble:
                    self._world.story.tell(client.name, f"poll: {trouble}")
                    await asyncio.sleep(0.2)
                    continue
                for record in records:
                    place = Place(record.topic, record.partition, record.offset)
                    self.history.show(client.name, place, record.value or b"")
        finally:
            try:
                await consumer.close(timeout_ms=2_000)
            except ClientError as trouble:
                self._world.story.tell(client.name, f"close: {trouble}")
