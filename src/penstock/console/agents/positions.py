"""Which exactly-once agents there are, and how far, by the topic on which they keep their positions."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass, field
from typing import Any, Final

from penstock.agent.exactly.topic import TOPIC
from penstock.client.admin import Admin
from penstock.client.consumer import Consumer
from penstock.client.errors import UnknownTopic
from penstock.console.messages.thread import ReadingThread
from penstock.console.settings import ClusterAddress
from penstock.model.ids import TopicPartition
from penstock.spark.progress.topic import common_settings

HOLDS_S: Final = 5.0
READ_WITHIN_S: Final = 20.0
ROWS_MAX: Final = 100_000


@dataclass(slots=True)
class KnownAgent:
    """What one agent has written down."""

    name: str
    machine: str
    seen_ms: int = 0
    files: dict[tuple[str, str], tuple[str, int]] = field(default_factory=dict)
    """By input and row: a path and a position."""


class AgentPositions:
    """One cluster's. Asked on the console's loop; the topic is read on the reading thread, by committed records."""

    def __init__(self, address: ClusterAddress, reading: ReadingThread) -> None:
        self._address, self._reading = address, reading
        self._next: dict[TopicPartition, int] = {}
        self._agents: dict[tuple[str, str], KnownAgent] = {}
        self._until = 0.0
        self._looking: asyncio.Task[None] | None = None

    async def look(self) -> list[KnownAgent]:
        """ClientError when the topic may not be read or nobody answers."""
        if time.monotonic() >= self._until:
            if self._looking is None or self._looking.done():
                self._looking = asyncio.create_task(self._reading.do(self._read()))
            await asyncio.shield(self._looking)
            self._until = time.monotonic() + HOLDS_S
        return [self._agents[key] for key in sorted(self._agents)]

    async def _read(self) -> None:
        settings = common_settings(self._address.consumer)
        async with asyncio.timeout(READ_WITHIN_S):
            async with Admin(**settings) as admin:
                try:
                    described = await admin.describe_topic(TOPIC, offsets=False, configs=False)
                except UnknownTopic:
                    self._agents, self._next = {}, {}
                    return
                places = [TopicPartition(TOPIC, each.partition) for each in described.partitions]
                found = await admin.offsets(dict.fromkeys(places, "latest"), read_committed=True)
            ends = {place: info.offset for place, info in found.done.items()}
            if any(end < self._next.get(place, 0) for place, end in ends.items()):
                self._agents, self._next = {}, {}
            behind = {place: end for place, end in ends.items() if self._next.get(place, 0) < end}
            if behind:
                await self._poll(settings, behind)

    async def _poll(self, settings: dict[str, Any], ends: dict[TopicPartition, int]) -> None:
        more = {**settings, "create_topics": False, "fetch_max_wait_ms": 100}
        async with Consumer(**more, isolation_level="read_committed", offset_reset="earliest") as consumer:
            consumer.assign(list(ends))
            for place in ends:
                consumer.seek(place, self._next.get(place, 0))
            while ends:
                for record in await consumer.poll(10_000, timeout_ms=200):
                    self._take(record.key, record.value, record.timestamp)
                for place in list(ends):
                    position = await consumer.position(place)
                    self._next[place] = position
                    if position >= ends[place]:
                        del ends[place]

    def _take(self, key: bytes | None, value: bytes | None, at_ms: int) -> None:
        """What is none of an agent's, or of a newer form, is passed over: here it is only shown."""
        try:
            place = json.loads(key or b"")
            told = None if value is None else json.loads(value)
            name, machine, *row = map(str, place)
        except (ValueError, TypeError):
            return
        agent = self._agents.setdefault((name, machine), KnownAgent(name, machine))
        agent.seen_ms = max(agent.seen_ms, at_ms)
        if not row and told is None:
            del self._agents[name, machine]
        elif len(row) == 2:
            file = (row[0], row[1])
            if told is None:
                agent.files.pop(file, None)
            elif _is_position(told) and len(agent.files) < ROWS_MAX:
                agent.files[file] = (str(told["path"]), told["position"])


def _is_position(told: Any) -> bool:
    return isinstance(told, dict) and bool(told.get("path")) and isinstance(told.get("position"), int)
