"""Draws fetch sessions that several users share: who resumes one sees what that one may read, and no more.

A session is opened, resumed by anybody, asked for other partitions and offsets, and closed; records come meanwhile.
Everything fits into every answer, because what comes first when it does not is up to each broker.
"""

from __future__ import annotations

import asyncio
import time
from random import Random
from typing import Any

from penstock.protocol.messages.fetch import FetchRequest
from penstock.protocol.messages.produce import ProduceRequest
from tests.compat.authorization.asking import Report, unexcused
from tests.compat.authorization.cast import ANONYMOUS, EVERYTHING, NOTHING
from tests.compat.authorization.pair import Pair
from tests.compat.authorization.questions import STRANGER
from tests.compat.authorization.state import MISSING, TOPICS, State, records

READERS = (
    EVERYTHING,
    NOTHING,
    ANONYMOUS,
    "literal-topic-read",
    "prefixed-topic-read",
    "everywhere-topic-read",
    "literal-topic-describe",
    "literal-cluster-clusteraction",
    "but-topic-read",
    "but-topic-all",
    "only-topic-read-from-here",
    "only-topic-read-from-elsewhere",
    "no-topic-read-from-here",
)
SESSIONS_SINCE, BY_ID_SINCE, NEWEST = 7, 13, 18
FULL, FINAL = 0, -1
STEPS_MAX = 8
LEFT_ALONE_S = 121.0
"""Both brokers may end a session that nobody has used for two minutes, when they need its place."""


class SharedSession:
    """One session on both brokers, from its opening to its end."""

    def __init__(self, pair: Pair, state: State, random: Random, report: Report) -> None:
        self._pair, self._state, self._random, self._report = pair, state, random, report
        self._version = random.choice((SESSIONS_SINCE, 11, 12, BY_ID_SINCE, 15, 16, NEWEST))
        self._epoch = FULL
        self._used_at = 0.0
        self.id = 0
        """0 when there was no room for it."""

    async def live(self) -> None:
        await self.open()
        for _ in range(self._random.randint(1, STEPS_MAX) if self.id else 0):
            await self._step()
        await self.close()

    async def open(self) -> None:
        await self._fetch(topics=self._wanted(self._random.randint(1, 5)))

    async def resume(self) -> int:
        """The error that whoever resumes it is told."""
        return await self._fetch()

    async def left_alone(self) -> None:
        """Returns when nobody has used it for as long as a session may be kept for."""
        while (left_s := self._used_at + LEFT_ALONE_S - time.monotonic()) > 0:
            await asyncio.sleep(left_s)

    async def close(self) -> None:
        self._epoch = FINAL
        if self.id:
            await self._fetch()

    async def _step(self) -> None:
        match self._random.randrange(10):
            case 0 | 1 | 2:
                await self._produce()
                await self._fetch()
            case 3 | 4:
                await self._fetch(topics=self._wanted(self._random.randint(1, 3)))
            case 5:
                await self._fetch(forgotten=self._forgotten())
            case 6:
                await self._fetch(epoch=self._random.choice((99, self._epoch - 1 or 77)))
            case _:
                await self._fetch()

    async def _produce(self) -> None:
        made = ProduceRequest
        data = made.PartitionProduceData(index=0, records=records())
        topics = self._random.sample(TOPICS, self._random.randint(1, 3))
        wanted = [made.TopicProduceData(name=topic, partition_data=[data]) for topic in topics]
        for side in self._pair.sides:
            reply = await side.admin(made(acks=-1, timeout_ms=10_000, topic_data=wanted), 8)
            assert {each.error_code for topic in reply.responses for each in topic.partition_responses} == {0}

    async def _fetch(self, *, topics: Any = (), forgotten: Any = (), epoch: int | None = None) -> int:
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            session_id=self.id,
            session_epoch=self._epoch if epoch is None else epoch,
            topics=[*topics],
            forgotten_topics_data=[*forgotten],
        )
        user = self._random.choice(READERS)
        exchange = await self._pair.ask(user, "Fetch", request, self._version)
        self._report.asked["Fetch", self._version] += 1
        self._report.users[user] += 1
        self._report.unexplained += [
            (user, exchange, difference) for difference in unexcused(self._pair, exchange, self._report)
        ]
        self._used_at = time.monotonic()
        error: int = exchange.ours.error_code
        if error == 0 and self._epoch != FINAL and epoch is None:
            self.id, self._epoch = exchange.ours.session_id, self._epoch + 1
        return error

    def _named(self, count: int) -> list[dict[str, Any]]:
        names = self._random.sample((*TOPICS, *MISSING), count)
        if self._version < BY_ID_SINCE:
            return [{"topic": name} for name in names]
        ids = [self._state.world.topic_ids.get(name, STRANGER) for name in names]
        return [{"topic_id": topic_id} for topic_id in dict.fromkeys(ids)]

    def _wanted(self, count: int) -> list[Any]:
        """Partitions and where to read on: where all that is read is news, or almost."""
        offset = self._random.choice((0, 0, 3, 1_000_000))
        part = FetchRequest.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
        return [FetchRequest.FetchTopic(**named, partitions=[part]) for named in self._named(count)]

    def _forgotten(self) -> list[Any]:
        return [FetchRequest.ForgottenTopic(**named, partitions=[0]) for named in self._named(2)]
