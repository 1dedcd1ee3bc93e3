"""A whole agent in this process, against a broker in this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from penstock.agent.agent import Agent
from penstock.agent.settings import AgentSettings, examine
from penstock.client.consumer import Consumer
from penstock.kernels import ConsumerRecord
from penstock.model.ids import TopicPartition
from tests.patience import until, within
from tests.walks.agent.feeding import FEEDS, Feed

PATIENCE_S = 20.0

FILE = """
name = "walk"
bootstrap = "{bootstrap}"
host = "here"
{top}[output]
linger = "1ms"
flush_within = "{flush_within}"
{output}
kafka = {{ "retry.backoff.ms" = 20, "retry.backoff.max.ms" = 100, "request.timeout.ms" = 2000{kafka} }}
{more}
"""

ONE_INPUT = """
[inputs.one]
type = "feed"
topic = "one"
"""


def settings_of(
    folder: Path,
    bootstrap: str,
    more: str = ONE_INPUT,
    *,
    output: str = "",
    kafka: str = "",
    flush_within: str = "10s",
    top: str = "",
) -> AgentSettings:
    text = FILE.format(bootstrap=bootstrap, more=more, output=output, kafka=kafka, flush_within=flush_within, top=top)
    found = examine(text, folder / "agent.toml")
    assert found.settings is not None, found.mistakes
    return found.settings


@asynccontextmanager
async def running(settings: AgentSettings) -> AsyncIterator[Agent]:
    """Started, and stopped in order at the end."""
    agent = Agent(settings)
    task = asyncio.get_running_loop().create_task(agent.run())
    ready = asyncio.get_running_loop().create_task(agent.ready.wait())
    await asyncio.wait([task, ready], return_when=asyncio.FIRST_COMPLETED)
    ready.cancel()
    try:
        yield agent
    finally:
        agent.stop()
        await task


async def feed(name: str = "one") -> Feed:
    """The feed of a running agent."""
    await until(lambda: name in FEEDS)
    return FEEDS[name]


async def records_of(bootstrap: str, topic: str, count: int, partitions: int = 1) -> list[ConsumerRecord]:
    """At least `count` records, and whatever else is there by then, in the order of each partition."""
    wanted = [TopicPartition(topic, index) for index in range(partitions)]
    found: list[ConsumerRecord] = []
    async with Consumer(bootstrap_servers=bootstrap, offset_reset="earliest") as consumer:
        consumer.assign(wanted)
        async with asyncio.timeout(within(PATIENCE_S)):
            while len(found) < count:
                found += await consumer.poll(10_000, timeout_ms=200)
            end = sum((await consumer.end_offsets(*wanted)).values())
            while len(found) < end:
                found += await consumer.poll(10_000, timeout_ms=200)
    return found


async def values_of(bootstrap: str, topic: str, count: int, partitions: int = 1) -> list[bytes]:
    return [record.value or b"" for record in await records_of(bootstrap, topic, count, partitions)]


async def committed_values(bootstrap: str, topic: str, count: int) -> list[bytes]:
    """At least so many committed values of partition 0, and all there are by then, in order."""
    place, found = TopicPartition(topic, 0), list[bytes]()
    settings = {"offset_reset": "earliest", "isolation_level": "read_committed"}
    async with Consumer(bootstrap_servers=bootstrap, **settings) as consumer:
        consumer.assign([place])
        async with asyncio.timeout(within(PATIENCE_S * 2)):
            while len(found) < count:
                found += [record.value or b"" for record in await consumer.poll(10_000, timeout_ms=200)]
            end = (await consumer.end_offsets(place))[place]
            while await consumer.position(place) < end:
                found += [record.value or b"" for record in await consumer.poll(10_000, timeout_ms=200)]
    return found


def lines(first: int, count: int, size: int = 0) -> list[bytes]:
    return [b"%d" % number + b" " * size for number in range(first, first + count)]
