"""The clients of a simulated cluster: producers, a group of consumers, readers without one, and an administrator.

They are our own client library on machines of their own. What they were told goes to the history.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.client.consumer import Consumer
from penstock.client.errors import ClientError
from penstock.client.producer import Producer
from penstock.model.ids import TopicPartition, Uuid
from penstock.testing.sim.acts import CHORES
from penstock.testing.sim.administrator import Administrator
from penstock.testing.sim.history import Place
from penstock.testing.sim.machine import SimClock
from penstock.testing.sim.plan import REFUSED_FIRST_MS
from penstock.testing.sim.topics import AGAIN, BRIEF, KEYED, LOOSE, ORDERS
from penstock.testing.sim.versions import draw_caps

if TYPE_CHECKING:
    from penstock.client.consumer import ConsumerRecord
    from penstock.client.producer.delivery import Report
    from penstock.testing.sim.founding import Founding
    from penstock.testing.sim.history import History, Sender
    from penstock.testing.sim.plan import Plan
    from penstock.testing.sim.world import World

GROUP = "readers"
FETCH, METADATA = 1, 3
IDS_SINCE = 13
"""The version of Fetch that names topics by their ids."""
KEYS = 8
TOMBSTONES = 0.2
PATIENCE_MS = 3_600_000
"""Producers never give up: what they took must come to a good end once the cluster is well."""

BRIEF_PATIENCE_MS = 10_000
FETCH, IDS_SINCE = 1, 13
BATCH_BYTES = 400
"""Less than the smallest segment."""

Showing = Callable[["Consumer", "ConsumerRecord"], None]


class Client:
    """One client process: a machine, a loop, a clock and a task."""

    def __init__(self, world: World, name: str, *, of_any_age: bool = False) -> None:
        self.name, self.world = name, world
        world.network.host_up(name)
        self.random = world.new_random()
        self.loop = world.new_loop(name, name, caps=draw_caps(self.random) if of_any_age else None)
        self.clock = SimClock(self.loop, world.century_ms)
        self.task: asyncio.Task[None] | None = None

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        self.task = self.loop.create_task(work, name=self.name)
        self.task.add_done_callback(self._ended)

    @property
    def fetches_by_id(self) -> bool:
        return self.loop.caps is None or self.loop.caps[FETCH] >= IDS_SINCE

    @property
    def done(self) -> bool:
        return self.task is None or self.task.done()

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (broken := task.exception()) is not None:
            self.world.client_failed(self.name, broken)


class Reader(NamedTuple):
    """Somebody who reads all partitions of a topic, without a group."""

    name: str
    topic: str
    consumer: Consumer
    by_name: bool
    """Whether it fetches in a version without ids: then nothing tells one incarnation of a topic from the next."""

    def position(self, number: int, topic_id: Uuid) -> int:
        """How far it has come in a partition of this incarnation of the topic; -1 when it does not know of it."""
        engine = self.consumer._running
        partition = None if engine is None else engine.partitions.get(TopicPartition(self.topic, number))
        if partition is None:
            return -1
        if not self.by_name and any(partition.topic_id) and partition.topic_id != topic_id:
            return -1
        return partition.position


class Workload:
    """All clients. `stop` lets producers finish; consumers read on until `end`."""

    def __init__(self, world: World, plan: Plan, history: History, founding: Founding) -> None:
        self._world, self._plan, self.history = world, plan, history
        self.begun = self._stopping = self._ending = False
        self.producers: list[Client] = []
        self.consumers: list[Client] = []
        self.readers: dict[str, Reader] = {}
        self.admin = Administrator(world, plan, history.truth, founding, CHORES)

    def start(self) -> None:
        """Makes the topics, then lets everybody work."""
        keeper = Client(self._world, "admin")
        keeper.run(self._keep(keeper))

    async def _keep(self, client: Client) -> None:
        await self.admin.begin(client.clock)
        plan = self._plan
        self.begun = True
        if plan.bystanders:
            self._let_in(plan, client.random)
        elif plan.transactions is not None and plan.transactions.plain:
            self._begin(self.producers, "k1", self._produce, KEYED)
        await self.admin.run(client.random, lambda: self._stopping)

    def _let_in(self, plan: Plan, random: Random) -> None:
        for number in range(plan.producers):
            self._begin(self.producers, f"p{number + 1}", self._produce, ORDERS)
        for name, topic in (("q1", LOOSE), ("r1", BRIEF), ("k1", KEYED), ("a1", AGAIN)):
            self._begin(self.producers, name, self._produce, topic)
        for number in range(plan.consumers):
            self._begin(self.consumers, f"c{number + 1}", self._consume_as_member)
        for name, topic in (("w1", AGAIN), ("w2", random.choice((BRIEF, KEYED))), ("w3", ORDERS)):
            self._begin(self.consumers, name, self._watch, topic)

    def _begin(self, clients: list[Client], name: str, work: Callable[..., Any], *arguments: Any) -> None:
        client = Client(self._world, name, of_any_age=self._plan.version_caps)
        if client.loop.caps is not None:
            self._world.story.count("clients of any age")
            if AGAIN in arguments:
                # Without the ids of topics the epochs of a former one hide who leads the new one, as with any client.
                del client.loop.caps[METADATA]
        clients.append(client)
        client.run(work(client, *arguments))

    def stop(self) -> None:
        """Nothing more is sent or changed."""
        self._stopping = True

    def end(self) -> None:
        """Consumers close."""
        self._ending = True

    @property
    def stopping(self) -> bool:
        return self._stopping

    def unfinished(self) -> list[str]:
        """Whoever has not come to an end of what it began."""
        senders = [f"{client.name} is still sending" for client in self.producers if not client.done]
        return senders if self.admin.done else [*senders, "the administrator is still at work"]

    # -- producers

    async def _produce(self, client: Client, topic: str) -> None:
        random, plan = client.random, self._plan
        promised = topic != LOOSE
        once = promised and not plan.producers_expire
        sender = self.history.sender(client.name, promised=promised, once=once, may_fail=topic == AGAIN)
        settings: dict[str, Any] = {
            "acks": "all" if promised else 1,
            "idempotence": promised,
            "linger_ms": random.choice((0, 5, 50)),
            # Which batches a producer had under way before its last one stands in the log alone, until it goes.
            "max_in_flight": plan.in_flight if topic in (ORDERS, LOOSE) and not plan.producers_expire else 1,
            "request_timeout_ms": random.choice((1_000, 3_000)),
            # A topic that was made anew may have fewer partitions: what was meant for the others fails.
            "delivery_timeout_ms": BRIEF_PATIENCE_MS if topic == AGAIN else PATIENCE_MS,
            "max_block_ms": PATIENCE_MS,
            "retry_backoff_ms": 50,
            "retry_backoff_max_ms": 500,
            "metadata_max_age_ms": plan.metadata_max_age_ms,
            # Old clients neither write zstd nor read it.
            "compression": random.choice(("none", "none", "lz4", "gzip" if plan.version_caps else "zstd")),
            "batch_size": BATCH_BYTES,
        }
        async with Producer(
            plan.bootstrap, clock=client.clock, chance=Random(random.getrandbits(64)), **settings, **plan.login
        ) as it:
            while not self._stopping:
                for _ in range(random.choice((1, 1, 3))):
                    send(it, sender, topic, random)
                await asyncio.sleep(random.expovariate(1 / plan.record_every_s))

    # -- consumers

    async def _consume_as_member(self, client: Client) -> None:
        """Reads as a member of the group; now and then it leaves and comes back."""
        # No client that knows the consumer protocol is of the oldest age in anything else.
        protocol = self._plan.group_protocol if client.loop.caps is None else "classic"
        settings: dict[str, Any] = {
            "group_id": GROUP,
            "group_protocol": protocol,
            "auto_commit_interval_ms": 500,
            "metadata_max_age_ms": self._plan.metadata_max_age_ms,
            # A machine that lost power says nothing, so whoever waits for the others of a group waits for so long.
            "max_poll_interval_ms": 8_000,
        }
        if protocol == "classic":
            settings |= {"session_timeout_ms": 6_000, "heartbeat_interval_ms": 1_000}

        def show(_consumer: Consumer, record: ConsumerRecord) -> None:
            place = Place(record.topic, record.partition, record.offset)
            self.history.show(client.name, place, record.value)

        while not self._ending:
            consumer = Consumer(
                clock=client.clock,
                bootstrap_servers=self._plan.bootstrap,
                **COMMON,
                **settings,
                **self._plan.login,
            )

            def assigned(partitions: list[TopicPartition], consumer: Consumer = consumer) -> None:
                generation: int = getattr(consumer._engine().membership, "generation", -1)
                for topic, partition in partitions:
                    self.history.owns_anew(client.name, generation, topic, partition)

            consumer.subscribe([ORDERS], on_assigned=assigned)
            await self._stay(client, consumer, show)

    async def _watch(self, client: Client, topic: str) -> None:
        """Reads all partitions of a topic from their beginning, without a group; now and then it begins anew.

        Old clients ask by name, and are given what has it at that moment, whatever they believe to read.
        """

        def show(consumer: Consumer, record: ConsumerRecord) -> None:
            view = consumer._engine().view.cached(topic)
            if view is not None and any(view.id) and client.fetches_by_id:
                place = Place(record.topic, record.partition, record.offset)
                self.history.show_of(client.name, Uuid(view.id), place, record.value)
            self._world.story.count(f"read of {topic}")

        while not self._ending:
            consumer = Consumer(
                clock=client.clock,
                bootstrap_servers=self._plan.bootstrap,
                metadata_max_age_ms=REFUSED_FIRST_MS,
                **COMMON,
                **self._plan.login,
            )
            by_name = client.loop.caps is not None and client.loop.caps.get(FETCH, IDS_SINCE) < IDS_SINCE
            self.readers[client.name] = Reader(client.name, topic, consumer, by_name)
            consumer.assign([(topic, number) for number in range(self._plan.partitions)])
            await self._stay(client, consumer, show)

    async def _stay(self, client: Client, consumer: Consumer, show: Showing) -> None:
        """Reads for a while, or to the end of the world."""
        loop = asyncio.get_running_loop()
        until = loop.time() + client.random.choice((2.0, 8.0, 1_000.0))
        try:
            while not self._ending and (self._stopping or loop.time() < until):
                try:
                    records = await consumer.poll(timeout_ms=1_000)
                except ClientError as trouble:
                    self._world.story.tell(client.name, f"poll: {trouble}")
                    await asyncio.sleep(0.2)
                    continue
                for record in records:
                    show(consumer, record)
        finally:
            try:
                await consumer.close(timeout_ms=2_000)
            except ClientError as trouble:
                self._world.story.tell(client.name, f"close: {trouble}")


def send(producer: Producer, sender: Sender, topic: str, random: Random, partition: int | None = None) -> None:
    """Sends the next record of a sender, which will know what became of it."""
    value: bytes | None = sender.next_value()
    number = sender.sent
    if topic == KEYED and random.random() < TOMBSTONES:
        sender.tombstones.add(number)
        value = None

    def delivered(report: Report | None, failure: ClientError | None) -> None:
        if report is not None:
            sender.acknowledged[number] = Place(report.topic, report.partition, report.offset)
        else:
            sender.failed[number] = str(failure)

    producer.send(topic, value, key=b"%d" % random.randrange(KEYS), partition=partition, on_delivery=delivered)


COMMON: dict[str, Any] = {
    "offset_reset": "earliest",
    "request_timeout_ms": 3_000,
    "default_api_timeout_ms": 10_000,
    "retry_backoff_ms": 50,
    "retry_backoff_max_ms": 500,
}
