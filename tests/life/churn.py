"""Topics and groups that come and go, by our own client: `python -m tests.life.churn BOOTSTRAP SEED COUNT SECONDS`.

COUNT topics live at any time, each for so many SECONDS at least; how many partitions they have and what is done to them
goes round, so that what there is at one time is as much as at any other. One Admin, one Producer and one Consumer stay
all the time and meet every topic; others come for one topic. What a topic was sent is read by a group, and compared.
"""

from __future__ import annotations

import asyncio
import logging
import random
import sys
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from itertools import count as numbers
from typing import TypeVar

from bench.soak.lines import Errors, Orders, tell
from penstock import Admin, Consumer, Producer
from penstock.client.errors import ClientError
from penstock.model.errors import (
    NON_EMPTY_GROUP,
)
from penstock.model.ids import TopicPartition
from tests.life.repeated import perhaps_done_before
from tests.life.settings import DAY_MS, WEEK_MS
from tests.patience import within

T = TypeVar("T")
Change = Callable[[], Awaitable[object]]

REPORT_S = 1.0
NODES = (1, 2, 3)
POLICIES: tuple[dict[str, str], ...] = (
    {},
    {"cleanup.policy": "compact", "segment.ms": "1000"},
    {"cleanup.policy": "compact,delete", "segment.ms": str(DAY_MS)},
)
KEPT_NAMES = 20
METADATA_MAX_AGE_MS = 1_000
PATIENCE_S = 120.0
FAREWELL_S = 5.0
"""So often it is tried again to delete a group whose last member may not have been heard leaving."""
CHANGES = 3
"""How many things are done to one topic."""


class Churn:
    """`acts` counts what was done, and `living` the topics that are there now."""

    def __init__(self, bootstrap: str, seed: str, life_s: float, errors: Errors) -> None:
        self.bootstrap, self.life_s, self.errors = bootstrap, life_s, errors
        self.acts: Counter[str] = Counter()
        self.living = 0
        self._chance = random.Random(seed)
        self._numbers = numbers()
        self._names_of_the_dead: deque[str] = deque(maxlen=KEPT_NAMES)

    async def run(self, orders: Orders, count: int) -> None:
        async with (
            Admin(bootstrap_servers=self.bootstrap) as self._admin,
            Producer(bootstrap_servers=self.bootstrap, metadata_max_age_ms=METADATA_MAX_AGE_MS) as self._producer,
            Consumer(
                bootstrap_servers=self.bootstrap,
                group_id="passers-by",
                group_protocol="consumer",
                metadata_max_age_ms=METADATA_MAX_AGE_MS,
            ) as passer_by,
            asyncio.TaskGroup() as tasks,
        ):
            passer_by.subscribe(pattern="churn-.*")
            beside = [tasks.create_task(self._pass_by(passer_by)), tasks.create_task(self._tell())]
            await asyncio.gather(*(self._go_on_living(orders, place * self.life_s / count) for place in range(count)))
            for task in beside:
                task.cancel()

    def report(self) -> dict[str, object]:
        return {"acts": dict(self.acts), "living": self.living}

    async def _tell(self) -> None:
        while True:
            tell(self.report(), self.errors)
            await asyncio.sleep(REPORT_S)

    async def _pass_by(self, reader: Consumer) -> None:
        """Reads whatever there is of topics that may be gone the next moment."""
        while True:
            try:
                self.acts["records read in passing"] += len(await reader.poll(timeout_ms=500))
            except ClientError as refusal:
                if not refusal.retriable:
                    self.errors.add(f"the consumer that passes by: {refusal!r}")

    async def _go_on_living(self, orders: Orders, after_s: float) -> None:
        """One topic after the other. They begin at different times, and so do those that follow them."""
        await asyncio.sleep(after_s)
        while not orders.ending.is_set():
            await self._live()

    async def _live(self) -> None:
        self.living += 1
        number = next(self._numbers)
        name = self._name(number)
        try:
            async with asyncio.timeout(within(PATIENCE_S)):
                await self._life(name, number)
        except Exception as failure:
            self.errors.add(f"{name}: {failure!r}")
        finally:
            self.living -= 1

    def _name(self, number: int) -> str:
        """Half of all topics have the name of one that was deleted."""
        if self._names_of_the_dead and number % 2:
            self.acts["topics made anew under an old name"] += 1
            return self._names_of_the_dead.popleft()
        return f"churn-{number}"

    async def _life(self, name: str, number: int) -> None:
        deleted_at = time.monotonic() + self.life_s
        partitions = 1 + number % 3
        configs = {"retention.ms": str(2 * WEEK_MS), **POLICIES[number // 3 % len(POLICIES)]}
        with perhaps_done_before(self.acts):
            await self._act("topics created", self._admin.create_topic(name, partitions, 3, configs))
        values = {f"{each} of {name} {number}".encode() for each in range(self._chance.randint(5, 40))}
        await self._write(name, number, values)
        await self._read(name, number, values)
        changes = self._changes(name, partitions)
        for each in range(CHANGES):
            await changes[(CHANGES * number + each) % len(changes)]()
        await asyncio.sleep(max(0.0, deleted_at - time.monotonic()))
        with perhaps_done_before(self.acts):
            await self._act("topics deleted", self._admin.delete_topic(name))
        self._names_of_the_dead.append(name)

    async def _write(self, name: str, number: int, values: set[bytes]) -> None:
        """By the producer that is always there, or by one that comes for this topic and is forgotten by the brokers."""
        if number % 2:
            async with Producer(bootstrap_servers=self.bootstrap) as visitor:
                await self._act("producers that came and went", _send(visitor, name, values))
        else:
            await _send(self._producer, name, values)
        self.acts["records written"] += len(values)

    async def _read(self, name: str, number: int, values: set[bytes]) -> None:
        group, protocol = f"readers-{number}", ("classic", "consumer")[number % 3 == 0]
        left = set(values)
        async with Consumer(
            name, bootstrap_servers=self.bootstrap, group_id=group, group_protocol=protocol, offset_reset="earliest"
        ) as member:
            while left:
                for record in await member.poll(timeout_ms=500):
                    assert record.value in values, f"{record.value!r} is of another topic"
                    left.discard(record.value)
            await member.commit()
        self.acts[f"groups of the {protocol} protocol"] += 1
        # The others are left to their retention.
        if number % 2:
            await self._delete_group(group)

    async def _delete_group(self, group: str) -> None:
        """A member whose farewell was lost with its coordinator is in the group until its session ends."""
        while True:
            try:
                with perhaps_done_before(self.acts):
                    await self._act("groups deleted", self._admin.delete_group(group))
                return
            except ClientError as refusal:
                if refusal.error is not NON_EMPTY_GROUP:
                    raise
                self.acts["groups that had a member for a while"] += 1
                await asyncio.sleep(FAREWELL_S)

    def _changes(self, name: str, partitions: int) -> list[Change]:
        chance, admin = self._chance, self._admin
        first = TopicPartition(name, 0)
        return [
            lambda: self._act("partitions added", admin.grow_topic(name, partitions + 1)),
            lambda: self._act("configs changed", admin.configure_topic(name, {"retention.ms": str(WEEK_MS)})),
            lambda: self._act(
                "partitions moved", admin.alter_partition_reassignments({first: chance.sample(NODES, 2)})
            ),
            lambda: self._act("leaders elected", admin.elect_leaders([first])),
            lambda: self._act("records deleted", admin.delete_records({first: -1})),
            lambda: self._act("topics described", admin.describe_topic(name)),
            lambda: self._act("groups listed", admin.groups()),
            lambda: self._act("producers described", admin.describe_producers([first])),
        ]

    async def _act(self, name: str, doing: Awaitable[T]) -> T:
        done = await doing
        self.acts[name] += 1
        return done


async def _send(producer: Producer, topic: str, values: set[bytes]) -> None:
    await asyncio.gather(*(producer.send(topic, value, key=value) for value in values))


def main() -> None:
    bootstrap, seed, count, life_s = sys.argv[1:]
    # It tells of every broken link.
    logging.getLogger("penstock.client").setLevel(logging.ERROR)
    orders, errors = Orders(), Errors()
    churn = Churn(bootstrap, seed, float(life_s), errors)
    asyncio.run(churn.run(orders, int(count)))
    tell({**churn.report(), "done": True}, errors)


if __name__ == "__main__":
    main()
