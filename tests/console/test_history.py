"""The past of a cluster is there again after a console has ended; one of several writes it; none fails for it."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import Any

from penstock import Consumer
from penstock.blocking import Admin
from penstock.console.history.keeping import AFTER_MS, GROUP, HOME, MINUTE_MS, TOPIC, Keeper, clock_ms
from penstock.console.history.minutes import MinutesIn
from penstock.console.sampler.past import Measured, Past
from penstock.testing import EmbeddedBroker, broker
from tests.console.running import cluster_address
from tests.patience import until, within

OF = Measured("topic", "orders", "in")
BEGIN_MS = (clock_ms() // MINUTE_MS - 60) * MINUTE_MS
"""An hour ago: brokers take no records from the future."""


class Clock:
    """The time of several consoles."""

    def __init__(self) -> None:
        self.now_ms = BEGIN_MS

    def __call__(self) -> int:
        return self.now_ms


class Running:
    """A console's past and what keeps it."""

    def __init__(self, settings: Any, clock: Clock, **more: Any) -> None:
        self.past, self.clock = Past(), clock
        address = cluster_address(settings)
        self.keeper = Keeper(address, self.past, **{"read_only": False, "now_ms": clock, "again_after_s": 0.1, **more})

    def see(self, rate: float) -> None:
        self.past.put("topic", self.clock.now_ms, {"orders": {"in": rate}})

    def points(self, minutes: int) -> list[float | None]:
        return self.past.points(OF, self.clock.now_ms, 60, minutes)


@asynccontextmanager
async def kept(*consoles: Running) -> Any:
    tasks = [asyncio.create_task(console.keeper.run()) for console in consoles]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def written(node: EmbeddedBroker) -> dict[int, float]:
    """The minutes of the topic, as anybody can read them."""
    minutes = MinutesIn()
    async with Consumer(**node.client_settings) as consumer:
        consumer.assign([HOME])
        consumer.seek_to_start(HOME)
        end = (await consumer.end_offsets(HOME))[HOME]
        while await consumer.position(HOME) < end:
            for record in await consumer.poll(timeout_ms=200):
                assert record.value is not None
                minutes.take(record.value)
                assert record.timestamp % MINUTE_MS == 0
    return minutes.told.get(OF, {})


async def minute_passes(clock: Clock, node: EmbeddedBroker, rate: float, *consoles: Running) -> None:
    """All consoles see a rate for a minute; returns when it is written."""
    for console in consoles:
        console.see(rate)
    minute = clock.now_ms // MINUTE_MS
    clock.now_ms += MINUTE_MS + AFTER_MS
    async with asyncio.timeout(within(60)):
        while minute not in await written(node):
            assert "off" not in states(*consoles), [console.keeper.why for console in consoles]
    clock.now_ms -= AFTER_MS


def states(*consoles: Running) -> list[str]:
    return sorted(console.keeper.state for console in consoles)


async def test_what_one_console_saw_the_next_one_shows_and_of_two_one_writes() -> None:
    clock = Clock()
    with broker() as node:
        first, second = Running(node.client_settings, clock), Running(node.client_settings, clock)
        async with kept(first, second) as tasks:
            # The first minute is over before there is a topic.
            first.see(5.0)
            second.see(5.0)
            clock.now_ms += MINUTE_MS + AFTER_MS
            await until(lambda: states(first, second) == ["reading", "writing"], "one writes, the other does not")
            clock.now_ms -= AFTER_MS
            for rate in (10.0, 20.0, 30.0):
                await minute_passes(clock, node, rate, first, second)
            assert list((await written(node)).values())[-3:] == [10.0, 20.0, 30.0]

            # The one that writes is stopped: the other goes on.
            writer = 0 if first.keeper.state == "writing" else 1
            tasks[writer].cancel()
            await asyncio.wait([tasks[writer]])
            other = (first, second)[1 - writer]
            await until(lambda: other.keeper.state == "writing", "the other one writes")
            await minute_passes(clock, node, 40.0, other)

        third = Running(node.client_settings, clock)
        async with kept(third):
            await until(lambda: third.keeper.state == "writing", "the third one writes")
            assert third.points(5)[:4] == [10.0, 20.0, 30.0, 40.0]
        with Admin(**node.client_settings) as admin:
            found = admin.describe_topic(TOPIC)
            assert (len(found.partitions), found.configs["cleanup.policy"]) == (1, "delete")
            assert [group.id for group in admin.groups()] == [GROUP]
            # Each minute once, whoever wrote it.
            assert found.partitions[0].end == len(await written(node))


async def test_a_console_that_changes_nothing_reads_and_writes_nothing() -> None:
    clock = Clock()
    with broker() as node:
        looker = Running(node.client_settings, clock, read_only=True)
        async with kept(looker):
            await until(lambda: looker.keeper.state == "off", "there is nothing to read")
            assert looker.keeper.why == f"there is no topic {TOPIC}"
        with Admin(**node.client_settings) as admin:
            assert admin.topics(internal=True) == []


async def test_what_fails_costs_the_past_and_nothing_else() -> None:
    clock = Clock()
    settings = {"bootstrap_servers": "127.0.0.1:1", "default_api_timeout_ms": 200, "request_timeout_ms": 100}
    console = Running(settings, clock)
    async with kept(console) as tasks:
        await until(lambda: console.keeper.state == "off", "it says that it cannot")
        assert console.keeper.why
        console.see(1.0)
        assert console.points(1) == [1.0]
        assert not tasks[0].done()
