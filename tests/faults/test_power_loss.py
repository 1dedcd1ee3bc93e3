"""The power is cut at a random instant: what was acknowledged as synced is there, once, at its offset.

A whole node runs on files in memory that forget what was not synced, as a disk may; each round is one life of it,
decided by a seed. `fail` and `capacity_bytes` of those files make disks that break or fill up while it runs.
"""

from __future__ import annotations

import asyncio
import errno
from collections import deque
from collections.abc import Callable, Coroutine
from functools import partial
from random import Random
from typing import Any

import pytest

from penstock.model.errors import (
    KAFKA_STORAGE_ERROR,
    NOT_LEADER_OR_FOLLOWER,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    REQUEST_TIMED_OUT,
)
from penstock.transport.dial import LinkError
from tests.faults.counts import SOAKING, rounds
from tests.patience import at_most
from tests.walks.data_plane import Client, Idempotent, Machine

PARTITIONS = 3
REFUSALS = (KAFKA_STORAGE_ERROR.code, REQUEST_TIMED_OUT.code, NOT_LEADER_OR_FOLLOWER.code)
BREAKABLE = ("/data", "/data/node-1/synced-0", "/data/node-1/__cluster_metadata-0", "/more")
SETTINGS = {
    "log.dirs": "/data/node-1,/more/node-1",
    "log.flush.offset.checkpoint.interval.ms": "20",
    "replica.high.watermark.checkpoint.interval.ms": "20",
    "log.retention.check.interval.ms": "30",
    "metadata.log.max.record.bytes.between.snapshots": "2000",
    "controller.quorum.append.linger.ms": "0",
}


class Retrier:
    """An idempotent producer that outlives nodes: what was not answered is sent again, in order, as clients do."""

    def __init__(self, acks: int, partition: int) -> None:
        self.acks, self.partition = acks, partition
        self._numbers = Idempotent()
        self.unanswered: deque[tuple[list[bytes], bytes]] = deque()

    def add(self, values: list[bytes]) -> None:
        self.unanswered.append((values, self._numbers.batch(*values)))

    def start_over(self) -> None:
        """A node that remembers only the last of several batches cannot tell that the others are there."""
        self._numbers = Idempotent()
        self.unanswered.clear()


class Books:
    """What clients were promised in all the lives of one machine."""

    def __init__(self, chance: Random) -> None:
        self.producers = [Retrier(acks, chance.randrange(PARTITIONS)) for acks in (1, -1, -1)]
        self.records: dict[tuple[str, int], dict[int, bytes]] = {}
        self.topics: set[str] = set()
        self.deleted: set[str] = set()
        self._number = 0

    def value(self) -> bytes:
        self._number += 1
        return b"%08d " % self._number

    def note(self, topic: str, partition: int, base: int, values: list[bytes]) -> None:
        known = self.records.setdefault((topic, partition), {})
        for offset, value in enumerate(values, base):
            assert offset not in known, f"{topic}-{partition} gave out offset {offset} twice"
            known[offset] = value

    async def check(self, client: Client) -> None:
        existing = await client.topics()
        assert self.topics <= existing, f"acknowledged topics are gone: {self.topics - existing}"
        assert not self.deleted & existing, f"deleted topics are back: {self.deleted & existing}"
        for (topic, partition), promised in self.records.items():
            if topic in self.deleted or topic not in existing:
                continue
            found = await client.values(topic, partition)  # asserts that offsets have no gap
            lost = {offset: value for offset, value in promised.items() if found[offset : offset + 1] != [value]}
            assert not lost, f"{topic}-{partition} holds {len(found)} records, but not {lost}"
            assert len(set(found)) == len(found), f"{topic}-{partition} has a record twice"


class Life:
    """The load on a node: producers on connections of their own, and somebody who creates and deletes topics."""

    def __init__(self, machine: Machine, books: Books, chance: Random) -> None:
        self.machine, self.books, self.chance = machine, books, chance
        self.acknowledged = self.refused = 0
        works = (self._make_topics, *(partial(self._produce, producer) for producer in books.producers))
        self._tasks = [asyncio.create_task(self._unless_cut(work)) for work in works]

    async def go_on(self, answers: int) -> None:
        """Returns when so many more requests were answered, or nobody is left to ask."""
        until = self.acknowledged + self.refused + answers
        async with at_most(20):
            while self.acknowledged + self.refused < until and not all(task.done() for task in self._tasks):
                await asyncio.sleep(0)
                for task in self._tasks:
                    if task.done():
                        task.result()

    async def end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @staticmethod
    async def _unless_cut(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            await work()
        except LinkError:
            return

    async def _produce(self, producer: Retrier) -> None:
        client = await self.machine.dial()
        while True:
            # Up to five in flight, as clients do; answers come in order.
            for _ in range(self.chance.randint(1, 5) - len(producer.unanswered)):
                producer.add([self.books.value() for _ in range(self.chance.randint(1, 4))])
            replies = [
                client.produce("synced", partition=producer.partition, acks=producer.acks, batch=batch)
                for _, batch in producer.unanswered
            ]
            for reply in replies:
                answer = await reply
                if answer.error_code == OUT_OF_ORDER_SEQUENCE_NUMBER.code:
                    producer.start_over()
                    break
                values, _ = producer.unanswered.popleft()
                self._note("synced", producer.partition, values, answer)

    def _note(self, topic: str, partition: int, values: list[bytes], answer: Any) -> None:
        if answer.error_code == 0:
            self.books.note(topic, partition, answer.base_offset, values)
            self.acknowledged += 1
            return
        assert answer.error_code in REFUSALS, answer
        self.refused += 1

    async def _make_topics(self) -> None:
        client = await self.machine.dial()
        while True:
            await asyncio.sleep(self.chance.random() / 100)
            name = f"made-{self.books.value().decode().strip()}"
            if not await client.try_create(name, self.chance.randint(1, 3), flush_messages="1"):
                continue
            self.books.topics.add(name)
            values = [self.books.value()]
            self._note(name, 0, values, await client.produce(name, *values))
            if self.chance.random() < 0.3:
                self.books.topics.discard(name)  # until the answer is there it may be either way
                if await client.try_delete(name):
                    self.books.deleted.add(name)


def survivors(chance: Random) -> Any:
    """How much of what was not synced a power cut leaves: nothing, any part of it, or all."""
    match chance.randrange(3):
        case 0:
            return lambda _path, _unsynced: 0
        case 1:
            return lambda _path, unsynced: chance.randint(0, unsynced)
        case _:
            return lambda _path, unsynced: unsynced


def harmless(_machine: Machine, _chance: Random) -> None:
    """Nothing goes wrong but the power."""


def broken(machine: Machine, chance: Random) -> None:
    """Writes begin to fail, somewhere or everywhere."""
    machine.files.fail(chance.choice(BREAKABLE), errno.EIO)


def full(machine: Machine, chance: Random) -> None:
    """The disk is full, now or soon."""
    machine.files.capacity_bytes -= machine.files.room() - chance.randrange(20_000)


def unsyncable(machine: Machine, chance: Random) -> None:
    """Writes go well and syncs fail: the worst of disks."""
    prefix = chance.choice(BREAKABLE)

    def refuse(what: str, path: str) -> None:
        if what.startswith("sync") and path.startswith(prefix):
            raise OSError(errno.EIO, "sync failed", path)

    machine.files.before = refuse


def mended(machine: Machine) -> None:
    for prefix in BREAKABLE:
        machine.files.heal(prefix)
    machine.files.capacity_bytes = 1 << 60
    machine.files.before = None


def one_machine(seed: int, lives: int, trouble: Callable[[Machine, Random], None], *, stops: bool = False) -> None:
    """Several lives with a power cut after each, a look at everything after that, and a clean stop at the end.

    With `stops` each life is stopped as it should be first, as far as its disk still lets it.
    """
    chance = Random(seed)
    machine, books = Machine(seed=seed, settings=SETTINGS), Books(chance)

    async def first() -> None:
        await machine.start()
        # Segments are rolled by time, because a life is too short to fill one.
        await (await machine.dial()).create("synced", PARTITIONS, flush_messages="1", segment_ms="15")
        books.topics.add("synced")
        await machine.stop()

    async def live() -> None:
        await machine.start()
        await books.check(await machine.dial())
        life = Life(machine, books, chance)
        await life.go_on(chance.randrange(40))
        trouble(machine, chance)
        await life.go_on(chance.randrange(40))
        if stops:
            async with at_most(15):
                await machine.stop()
            await life.end()
            machine.files.crash(survivors(chance), keep_names=chance.random() < 0.5)
        else:
            await machine.cut_power(survivors(chance), keep_names=chance.random() < 0.5)
        mended(machine)

    async def last() -> None:
        await machine.start()
        await books.check(await machine.dial())
        await machine.stop()

    asyncio.run(first())
    for _ in range(lives):
        asyncio.run(live())
    for _ in range(2):
        asyncio.run(last())


@pytest.mark.timeout(3_600 if SOAKING else 120)
@pytest.mark.parametrize("trouble", [harmless, broken, full, unsyncable])
def test_a_power_cut_loses_nothing_that_was_acknowledged_as_synced(
    trouble: Callable[[Machine, Random], None],
) -> None:
    for number in rounds(fast=10 if trouble is harmless else 5, full=200):
        one_machine(seed=number, lives=3, trouble=trouble)


@pytest.mark.timeout(3_600 if SOAKING else 120)
@pytest.mark.parametrize("trouble", [harmless, broken, full, unsyncable])
def test_a_node_stops_in_time_whatever_its_disk_does(trouble: Callable[[Machine, Random], None]) -> None:
    for number in rounds(fast=2, full=50):
        one_machine(seed=1_000 + number, lives=2, trouble=trouble, stops=True)
