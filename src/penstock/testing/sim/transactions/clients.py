"""Clients of transactions: writers to many partitions, copiers that read, write and commit offsets, and readers.

Writers die in the middle of what they do, are paused until others have their transactional id, or get a second one
with the same id while they are well. They are our own client, in the classic protocol and in the one that raises the
epoch with every transaction.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Any

from penstock.client.consumer import Consumer
from penstock.client.consumer.offsets import GroupMetadata
from penstock.client.errors import ClientError, TimedOutWaiting, TransactionAbortable
from penstock.client.producer import Producer
from penstock.model.errors import INVALID_PRODUCER_ID_MAPPING, INVALID_TXN_STATE
from penstock.testing.sim.history import Place
from penstock.testing.sim.topics import AGAIN, ALONE, BRIEF, COPIES, KEYED, LEDGER
from penstock.testing.sim.transactions.asking import COPIERS, MIXED, Asker
from penstock.testing.sim.transactions.ledger import Told
from penstock.testing.sim.transactions.plan import copier_id, writer_id
from penstock.testing.sim.transactions.readings import Reading, Shown
from penstock.testing.sim.versions import END_TXN, draw_caps
from penstock.testing.sim.workload import BATCH_BYTES, COMMON, KEYS, Client, Reader

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from penstock.client.consumer import ConsumerRecord
    from penstock.client.producer.delivery import Report
    from penstock.testing.sim.plan import Plan
    from penstock.testing.sim.transactions.ledger import Attempt, Ledger
    from penstock.testing.sim.transactions.plan import TransactionPlan
    from penstock.testing.sim.versions import Caps
    from penstock.testing.sim.workload import Workload
    from penstock.testing.sim.world import World

HANDS_OVER = 0.15
"""How many copiers leave their group when they have sent offsets, and commit afterwards."""


OFFSET_FETCH, INIT, TXN_OFFSET_COMMIT = 9, 22, 28
CLASSIC: Caps = {END_TXN: 4}
AT_LEAST = {INIT: 3, OFFSET_FETCH: 7, TXN_OFFSET_COMMIT: 3}
"""Who names its producer id, waits for stable offsets and names its place in a group has to know these."""

PLACES = (LEDGER, LEDGER, LEDGER, LEDGER, KEYED, KEYED, BRIEF, AGAIN)
LASTING = frozenset({LEDGER, COPIES})
FATES = ("dies", "dies", "goes dark", "is left", "is paused", "is doubled")
LOOK_EVERY_S = 0.5
EPOCH_MAX = 32_767
PATIENCE_MS = 4_000
DELIVERY_MS = 6_000


Working = Callable[["Client", str], "Coroutine[Any, Any, None]"]
"""What somebody does under a transactional id."""


class Post:
    """A place at which somebody works: under one transactional id after another, and in one process after another."""

    __slots__ = ("client", "clients", "ids", "name", "transactional_id", "work")

    def __init__(self, clients: list[Client], name: str, work: Working) -> None:
        self.clients, self.name, self.work = clients, name, work
        self.transactional_id, self.ids = name, 1
        self.client: Client | None = None

    def leave_id(self) -> None:
        """Nobody ever comes back to what is open under the id of now."""
        self.ids += 1
        self.transactional_id = f"{self.name}-{self.ids}"

    @property
    def vacant(self) -> bool:
        return self.client is None or self.client not in self.clients or self.client.done


class Crowd:
    """All clients of transactions of a world."""

    def __init__(self, world: World, plan: Plan, drawn: TransactionPlan, workload: Workload, ledger: Ledger) -> None:
        self._world, self._plan, self._drawn, self._workload = world, plan, drawn, workload
        self.ledger = ledger
        self.lasting: set[bytes] = set()
        """Values that were written where nothing goes."""

        self.readings: list[tuple[str, int, Reading]] = []
        """By topic and partition."""

        self._lives = 0
        self._writers: list[Client] = []
        self._copiers: list[Client] = []
        self._askers: list[Client] = []
        self._random = Random(f"crowd {world.seed}")
        self._posts: list[Post] = []
        self._position = 0
        self.misread: Callable[[tuple[str, str, int], int | None, float, float], str | None] = lambda *_arguments: None
        """What is wrong with an offset that somebody was shown."""

        self.is_current: Callable[[str, int, int], bool] = lambda *_arguments: False
        """Whether a transactional id belongs to this producer id and epoch, as far as its coordinator has written."""

    # -- coming and going

    def start(self) -> None:
        loop = self._world.loop
        self._posts += [Post(self._writers, writer_id(number), self._write) for number in range(self._drawn.writers)]
        self._posts += [Post(self._copiers, copier_id(number), self._copy) for number in range(self._drawn.copiers)]
        for post in self._posts:
            loop.create_task(self._tend(post), name=post.name)
        for group, commits in ((COPIERS, None), (MIXED, self._next_position)):
            asker = Asker(self._world, self._plan, self._workload, group, commits)
            asker.misread = self.misread
            asker.start()
            self._askers.append(asker.client)
        for topic, committed_only in (
            (LEDGER, True),
            (LEDGER, False),
            (self._random.choice((COPIES, KEYED, BRIEF)), True),
        ):
            name = f"{'c' if committed_only else 'u'}-{topic}"
            client = self._client(name, None)
            client.run(self._watch(client, topic, committed_only=committed_only))
            self._workload.consumers.append(client)

    def unfinished(self) -> list[str]:
        return [f"{client.name} is still at work" for client in (*self._writers, *self._askers) if not client.done]

    @property
    def _over(self) -> bool:
        return self._workload.stopping

    def _client(self, name: str, caps: Caps | None) -> Client:
        client = Client(self._world, name)
        client.loop.caps = caps
        return client

    def _caps(self, random: Random, *, of_any_age: bool) -> Caps | None:
        """What a client knows of versions; None for all of today's."""
        if self._plan.secured or random.random() >= self._drawn.classic_rate:
            return None
        self._world.story.count("classic producers")
        if not of_any_age or not self._plan.version_caps:
            return {**CLASSIC}
        caps = {**draw_caps(random), **CLASSIC}
        del caps[3]
        return {key: max(version, AT_LEAST.get(key, 0)) for key, version in caps.items()}

    def _begin(self, post: Post) -> None:
        self._lives += 1
        caps = self._caps(self._random, of_any_age=post.clients is self._writers)
        client = post.client = self._client(f"{post.transactional_id}.{self._lives}", caps)
        post.clients.append(client)
        client.run(post.work(client, post.transactional_id))

    async def _tend(self, post: Post) -> None:
        """Sees to it that somebody works there, and now and then that it does not end well."""
        random = Random(f"{post.name} {self._world.seed}")
        self._begin(post)
        while not self._over:
            await asyncio.sleep(LOOK_EVERY_S * random.uniform(0.3, 1.7))
            if self._over:
                break
            if not post.vacant and random.random() < self._drawn.end_rate / 5:
                self._befall(post, random.choice(FATES))
                self._begin(post)
            elif post.vacant:
                self._begin(post)
        if post.clients is self._copiers:
            # Two of them with one id would fence each other for ever.
            for other in [each for each in post.clients if each is not post.client and _works_at(each, post)]:
                self._end(post.clients, other, silent=False)
            if post.vacant:
                self._begin(post)

    def befall(self, transactional_id: str, fate: str) -> bool:
        """Something happens to whoever has this id; False when nobody has."""
        for post in self._posts:
            if post.transactional_id == transactional_id and not post.vacant and not self._over:
                self._befall(post, fate)
                return True
        return False

    def _befall(self, post: Post, fate: str) -> None:
        """Whoever comes after it has its id, unless that is left."""
        client = post.client
        assert client is not None, "somebody works there"
        self._world.story.tell(client.name, fate)
        self._world.story.count(f"transactional client {fate}")
        if fate in ("dies", "goes dark", "is left"):
            self._end(post.clients, client, silent=fate == "goes dark")
            if fate == "is left":
                post.leave_id()
        elif fate == "is paused":
            client.loop.pause()
            self._world.loop.call_later(self._random.choice((0.5, 2.0, 6.0)), client.loop.resume)

    def _end(self, clients: list[Client], client: Client, *, silent: bool) -> None:
        clients.remove(client)
        client.loop.kill()
        self._world.network.process_died(client.loop, client.name, silent=silent)

    # -- writing

    def _producer(self, client: Client, name: str) -> Producer:
        random = client.random
        return Producer(
            self._plan.bootstrap,
            clock=client.clock,
            chance=Random(random.getrandbits(64)),
            transactional_id=name,
            transaction_timeout_ms=random.choice(self._drawn.timeouts_ms),
            linger_ms=random.choice((0, 5, 50)),
            max_in_flight=self._plan.in_flight,
            request_timeout_ms=random.choice((1_000, 3_000)),
            delivery_timeout_ms=DELIVERY_MS,
            max_block_ms=PATIENCE_MS,
            retry_backoff_ms=50,
            retry_backoff_max_ms=500,
            metadata_max_age_ms=5_000,
            batch_size=BATCH_BYTES,
            compression=random.choice(("none", "lz4", "gzip")),
            **self._plan.login,
        )

    async def _write(self, client: Client, name: str) -> None:
        random, drawn = client.random, self._drawn
        while not self._over:
            producer = self._producer(client, name)
            try:
                while not self._over:
                    await producer.begin()
                    self._initialised(producer, name)
                    attempt = self.ledger.begin(name, client.name)
                    filled = await self._fill(producer, attempt, random)
                    commits = filled and random.random() >= drawn.abort_rate
                    await self._finish(producer, attempt, commits=commits)
                    await asyncio.sleep(random.expovariate(1 / self._plan.record_every_s))
            except ClientError as trouble:
                self._told(client, name, producer, trouble)
                await asyncio.sleep(0.1)
            finally:
                await self._close(producer, client)

    def _told(self, client: Client, name: str, producer: Producer, trouble: ClientError) -> None:
        """T9: who is told that it was replaced has been, or has run out of time; the log of its coordinator says so."""
        self._world.story.tell(client.name, str(trouble))
        own = None if producer._transactions is None else producer._transactions.machine.producer
        # A coordinator that was replaced, and has not heard of it, refuses by a state that is old: so it is with Kafka.
        # That of a producer id hardly ever is.
        if trouble.error is INVALID_PRODUCER_ID_MAPPING and own and self.is_current(name, *own):
            self._world.story.violated(f"T9: {client.name} is told that it was replaced, and nobody came after {own}")

    async def _fill(self, producer: Producer, attempt: Attempt, random: Random) -> bool:
        """Writes here and there; False when something of it is lost already."""
        drawn = self._drawn
        places = (*PLACES, ALONE, ALONE) if drawn.alone else PLACES
        try:
            for _ in range(random.randint(1, drawn.records_max)):
                topic, number = random.choice(places), random.randrange(self._plan.partitions)
                number = 0 if topic == AGAIN else number  # it may come back with fewer partitions
                self._send(producer, attempt, topic, number, random, None)
                if drawn.pause_s and random.random() < 0.3:
                    await asyncio.sleep(random.expovariate(1 / drawn.pause_s))
            if random.random() < drawn.offsets_rate:
                number, position = random.randrange(self._plan.partitions), self._next_position()
                await producer.send_offsets(GroupMetadata(MIXED), {(LEDGER, number): position})
            if random.random() < drawn.stall_rate and not self._over:
                self._world.story.count("transactions that take too long")
                await asyncio.sleep(random.choice(drawn.timeouts_ms) / 1_000 * 1.2)
        except TransactionAbortable as lost:
            self._world.story.tell(attempt.client, str(lost))
            return False
        return True

    def _send(
        self, producer: Producer, attempt: Attempt, topic: str, number: int, random: Random, origin: Place | None
    ) -> None:
        value = self.ledger.write(attempt, origin)
        if topic in LASTING:
            self.lasting.add(value)
        key = b"%d" % random.randrange(KEYS)

        def delivered(_report: Report | None, failure: ClientError | None) -> None:
            if failure is not None and failure.error is INVALID_TXN_STATE and not self._plan.producers_expire:
                self._world.story.violated(
                    f"T3: {attempt} is told that its batch in {topic}-{number} has no transaction"
                )

        producer.send(topic, value, key=key, partition=number, on_delivery=delivered)

    def _initialised(self, producer: Producer, name: str) -> None:
        assert producer._transactions is not None, "it has an id"
        told = producer._transactions.machine.producer
        assert told is not None, "it has begun"
        if told.epoch >= EPOCH_MAX:
            self._world.story.violated(f"T12: {name} was told epoch {told.epoch}")
        began = self.ledger.began.get(name)
        if not began or (began[-1].producer_id, began[-1].epoch) != told:
            self.ledger.initialised(name, told.producer_id, told.epoch, self._world.scheduler.now)

    async def _finish(self, producer: Producer, attempt: Attempt, *, commits: bool) -> bool:
        """Ends a transaction, however long that takes; whether it was committed. ClientError when nobody can say."""
        if commits:
            attempt.commit_asked = True
            try:
                await self._patiently(producer.commit)
            except TransactionAbortable as lost:
                self._world.story.tell(attempt.client, str(lost))
            else:
                attempt.told = Told.COMMITTED
                self._world.story.count("transactions committed")
                return True
        await self._patiently(producer.abort)
        attempt.told = Told.ABORTED
        self._world.story.count("transactions aborted")
        return False

    async def _patiently(self, call: Callable[[], Coroutine[Any, Any, None]]) -> None:
        while True:
            try:
                return await call()
            except TimedOutWaiting:
                continue

    async def _close(self, producer: Producer, client: Client) -> None:
        try:
            await producer.close(timeout_ms=1_000)
        except ClientError as trouble:
            self._world.story.tell(client.name, f"close: {trouble}")

    # -- copying

    async def _copy(self, client: Client, name: str) -> None:
        settings: dict[str, Any] = {
            "group_id": COPIERS,
            "group_protocol": self._plan.group_protocol,
            "auto_commit": False,
            "isolation_level": "read_committed",
            "metadata_max_age_ms": 5_000,
            "max_poll_interval_ms": 8_000,
            **COMMON,
            **self._plan.login,
        }
        if self._plan.group_protocol == "classic":
            settings |= {"session_timeout_ms": 6_000, "heartbeat_interval_ms": 1_000}
        while not self._workload._ending:
            producer = self._producer(client, name)
            consumer = Consumer(clock=client.clock, bootstrap_servers=self._plan.bootstrap, **settings)
            try:
                consumer.subscribe([LEDGER])
                await self._copy_on(client, name, producer, consumer)
            except ClientError as trouble:
                self._told(client, name, producer, trouble)
                await asyncio.sleep(0.1)
            finally:
                await self._close(producer, client)
                try:
                    await consumer.close(timeout_ms=2_000)
                except ClientError as trouble:
                    self._world.story.tell(client.name, f"close: {trouble}")

    async def _copy_on(self, client: Client, name: str, producer: Producer, consumer: Consumer) -> None:
        random, drawn = client.random, self._drawn
        while not self._workload._ending:
            records = await consumer.poll(max_records=random.choice((1, 5, 50)), timeout_ms=500)
            if not records:
                continue
            await producer.begin()
            self._initialised(producer, name)
            attempt = self.ledger.begin(name, client.name)
            for record in records:
                origin = Place(record.topic, record.partition, record.offset)
                self._send(producer, attempt, COPIES, record.partition, random, origin)
            done = hands_over = False
            try:
                if drawn.pause_s and random.random() < 0.3 and not self._over:
                    await asyncio.sleep(random.expovariate(1 / drawn.pause_s))
                await producer.send_offsets(consumer)
                hands_over = random.random() < HANDS_OVER and not self._over
                if hands_over:
                    self._world.story.count("copiers hand over")
                    await consumer.close(timeout_ms=1_000)
                done = await self._finish(producer, attempt, commits=self._over or random.random() >= drawn.abort_rate)
            except TransactionAbortable as lost:
                self._world.story.tell(client.name, str(lost))
                await self._finish(producer, attempt, commits=False)
            if hands_over:
                return
            if not done:
                for partition, committed in (await consumer.committed()).items():
                    if committed is None:
                        consumer.seek_to_start(partition)
                    else:
                        consumer.seek(partition, committed.offset)

    # -- offsets

    def _next_position(self) -> int:
        """Every offset of the group without members is committed once, so that it says by whom."""
        self._position += 1
        return self._position

    # -- reading

    async def _watch(self, client: Client, topic: str, *, committed_only: bool) -> None:
        """Reads a topic from its beginning, without a group; now and then it begins anew."""
        while not self._workload._ending:
            consumer = Consumer(
                clock=client.clock,
                bootstrap_servers=self._plan.bootstrap,
                isolation_level="read_committed" if committed_only else "read_uncommitted",
                fetch_max_bytes=client.random.choice((500, 50_000)),
                metadata_max_age_ms=5_000,
                **COMMON,
                **self._plan.login,
            )
            self._workload.readers[client.name] = Reader(client.name, topic, consumer, by_name=False)
            readings = [
                Reading(client.name, f"{topic}-{number}", committed_only=committed_only, complete=topic in LASTING)
                for number in range(self._plan.partitions)
            ]
            self.readings += [(topic, number, reading) for number, reading in enumerate(readings)]

            def show(_consumer: Consumer, record: ConsumerRecord, readings: list[Reading] = readings) -> None:
                readings[record.partition].shown.append(Shown(record.offset, record.value, self._world.scheduler.now))

            consumer.assign([(topic, number) for number in range(self._plan.partitions)])
            await self._workload._stay(client, consumer, show)


def _works_at(client: Client, post: Post) -> bool:
    return client.name.startswith(f"{post.name}.") or client.name.startswith(f"{post.name}-")
