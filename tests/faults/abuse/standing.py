"""Clients that were there before and want to be left alone: producers with their latencies, and a group that reads."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from typing import Any

from penstock import Admin, Consumer, Producer

TOPIC, GROUP = "standing", "standing"
PRODUCERS = 5
PAUSE_S = 0.01


class Standing:
    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = settings
        self.acknowledged = 0
        self.read = 0
        self.latencies_ms: list[float] = []

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[Standing]:
        ends, silence = asyncio.Event(), asyncio.Event()
        async with asyncio.TaskGroup() as readers:
            readers.create_task(self._consume(silence))
            try:
                async with asyncio.TaskGroup() as writers:
                    for _ in range(PRODUCERS):
                        writers.create_task(self._produce(ends))
                    try:
                        yield self
                    finally:
                        ends.set()
            finally:
                silence.set()  # only now is it known how much there is to read

    async def _produce(self, ends: asyncio.Event) -> None:
        async with Producer(**self._settings, linger_ms=0) as producer:
            while not ends.is_set():
                began = time.perf_counter()
                await producer.send(TOPIC, b"x" * 100)
                self.latencies_ms.append((time.perf_counter() - began) * 1_000)
                self.acknowledged += 1
                await asyncio.sleep(PAUSE_S)

    async def _consume(self, silence: asyncio.Event) -> None:
        async with Consumer(TOPIC, group_id=GROUP, offset_reset="earliest", **self._settings) as consumer:
            while not silence.is_set() or self.read < self.acknowledged:
                self.read += len(await consumer.poll(timeout_ms=200))

    def p99_ms(self, since: int = 0) -> float:
        found = sorted(self.latencies_ms[since:])
        return found[int(len(found) * 0.99)]


async def state_of(settings: dict[str, Any]) -> Any:
    """What an election, a fenced broker or a rebalance would change."""
    async with Admin(**settings) as admin:
        cluster, quorum = await admin.describe_cluster(), await admin.describe_quorum()
        topic = await admin.describe_topic(TOPIC)
        (group,) = (await admin.describe_groups([GROUP])).checked().values()
        return {
            "quorum": (quorum.leader, quorum.epoch),
            "fenced": [broker.id for broker in cluster.brokers if broker.fenced],
            "leaders": [(each.leader, each.leader_epoch, sorted(each.isr)) for each in topic.partitions],
            "group": (group.state, sorted((member.id, member.epoch) for member in group.members)),
        }
