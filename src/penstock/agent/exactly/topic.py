"""The topic `__penstock_agent`: compacted, and read to its very end before anything is believed."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from penstock.agent.errors import AgentError, PositionsVanished
from penstock.agent.exactly.identity import Identity
from penstock.agent.exactly.rows import Found, UnknownFormat, take_in
from penstock.client.admin import Admin
from penstock.client.compaction import forgetful_policy, settings_of
from penstock.client.consumer import Consumer
from penstock.client.errors import BrokerRefused, UnknownTopic
from penstock.model.errors import TOPIC_ALREADY_EXISTS
from penstock.model.ids import TopicPartition

TOPIC: Final = "__penstock_agent"
PARTITIONS: Final = 16
"""Agents that share a partition wait for each other's open transactions when they start, for ten seconds at most."""

ANSWER_WITHIN_MS: Final = 10_000
"""Whoever asks asks again, perhaps with other settings by then."""

CONFIGS: Final = {
    "cleanup.policy": "compact",
    # Only closed segments are compacted, and every start of an agent reads all of a partition.
    "segment.bytes": str(16 << 20),
    "min.cleanable.dirty.ratio": "0.1",
}


class TopicNow(NamedTuple):
    """A topic that is called so has another id when it was made anew."""

    id: str
    partitions: int


class PositionsTopic:
    """The topic of one cluster, for one agent. Nothing is kept open between calls."""

    def __init__(self, settings: Mapping[str, Any], identity: Identity) -> None:
        """`settings` are those that every kind of client has."""
        self._settings = {**settings, "default_api_timeout_ms": ANSWER_WITHIN_MS}
        self._identity = identity

    async def now(self, *, make: bool) -> TopicNow | None:
        """None when there is no topic and it is not to be made. AgentError when it would forget."""
        async with Admin(**self._settings) as admin:
            try:
                return await self._look(admin)
            except UnknownTopic:
                if not make:
                    return None
            try:
                await admin.create_topic(TOPIC, PARTITIONS, configs=CONFIGS)
            except BrokerRefused as refused:
                if refused.error is not TOPIC_ALREADY_EXISTS:
                    raise
            return await self._look(admin)

    async def _look(self, admin: Admin) -> TopicNow:
        info = await admin.describe_topic(TOPIC, offsets=False, configs=False)
        policy = forgetful_policy(await settings_of(admin, TOPIC))
        if policy is not None:
            raise AgentError(
                f"{TOPIC} has cleanup.policy={policy} and would forget positions: set"
                f" `penstock topic alter {TOPIC} -c cleanup.policy=compact`, or delete it if no agent has used it yet"
            )
        return TopicNow(info.id, len(info.partitions))

    async def find(self, partitions: int) -> Found:
        """What is there of this agent, in whichever partition it is; where it belongs when there is nothing."""
        home = zlib.crc32(f"{self._identity.agent}/{self._identity.machine}".encode()) % max(partitions, 1)
        for index in (home, *(each for each in range(partitions) if each != home)):
            found = await self.read(index)
            if found.stamp is not None:
                return found
        return Found(partition=home)

    async def read(self, partition: int) -> Found:
        """All that is committed below the high watermark of now. Waits for transactions that are open below it."""
        place = TopicPartition(TOPIC, partition)
        async with Admin(**self._settings) as admin:
            end = (await admin.offsets({place: "latest"})).checked()[place].offset
        return await self._read_to(place, end)

    async def peek(self, partition: int) -> Found:
        """All that is committed and not behind an open transaction: what can be seen without waiting."""
        place = TopicPartition(TOPIC, partition)
        async with Admin(**self._settings) as admin:
            end = (await admin.offsets({place: "latest"}, read_committed=True)).checked()[place].offset
        return await self._read_to(place, end)

    async def _read_to(self, place: TopicPartition, end: int) -> Found:
        found = Found(partition=place.partition)
        settings = {**self._settings, "create_topics": False, "fetch_max_wait_ms": 100}
        async with Consumer(**settings, isolation_level="read_committed", offset_reset="earliest") as consumer:
            consumer.assign([place])
            position = await consumer.position(place)
            while position < end:
                for record in await consumer.poll(10_000, timeout_ms=200):
                    self._take(found, record.key, record.value, record.offset)
                position = await consumer.position(place)
        return found

    def _take(self, found: Found, key: bytes | None, value: bytes | None, offset: int) -> None:
        try:
            take_in(found, self._identity, key, value, offset)
        except UnknownFormat as newer:
            raise AgentError(f"{TOPIC} holds {newer}, written by a newer penstock; install that version") from None
        except (KeyError, TypeError, ValueError) as wrong:
            raise AgentError(f"{TOPIC} at {found.partition}:{offset} is no position of an agent: {wrong}") from None


def vanished(identity: Identity, state_dir: object) -> PositionsVanished:
    """The error for a topic that is not what it was."""
    return PositionsVanished(
        f"{TOPIC} has no positions of agent {identity.agent!r} on machine {identity.machine!r} any more, though they"
        f" were there: the topic was deleted, or this is another cluster. The positions of {state_dir} are nearly as"
        " new: start once with exactly_once = false to go on from them, which may send a few lines twice, and set it"
        " again; or remove that folder to read everything anew"
    )
