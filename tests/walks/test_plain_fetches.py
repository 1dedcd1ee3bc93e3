"""The short way of a fetch against the long one: a request with a rack, which nobody here cares for, takes the long."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from penstock.model.ids import Uuid
from penstock.protocol.codec import encode
from penstock.protocol.messages.fetch import FetchRequest, FetchResponse
from tests.walks.data_plane import Client, Machine, walk

VERSIONS = range(11, 19)
FULL, FINAL = 0, -1
FLEXIBLE, BY_ID = 12, 13
RACK = "nobody's"


def wanted(chance: Random, client: Client, version: int) -> list[FetchRequest.FetchTopic]:
    """A few partitions, most of them there, at offsets and epochs most of which are right."""
    topics = []
    for name in chance.sample(["orders", "bills", "missing"], chance.randrange(0, 3)):
        topic = FetchRequest.FetchTopic()
        if version >= BY_ID:
            topic.topic_id = client.ids.get(name, Uuid(bytes([7]) * 16))
        else:
            topic.topic = name
        for partition in chance.sample(range(4), chance.randrange(1, 4)):
            each = FetchRequest.FetchPartition(
                partition=partition,
                current_leader_epoch=chance.choice([-1, -1, 0, 0, 9]),
                fetch_offset=chance.choice([0, 0, 1, 2, 5, 6, 90]),
                partition_max_bytes=chance.choice([1, 300, 1_000_000]),
            )
            if version >= FLEXIBLE:
                each.last_fetched_epoch = chance.choice([-1, -1, 0, 5])
            topic.partitions.append(each)
        topics.append(topic)
    return topics


def asked(chance: Random, topics: list[FetchRequest.FetchTopic], session: tuple[int, int], rack: str) -> FetchRequest:
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=chance.choice([0, 1, 10_000]),
        max_bytes=chance.choice([1, 700, 1 << 30]),
        isolation_level=chance.choice([0, 1]),
        session_id=session[0],
        session_epoch=session[1],
        topics=topics,
        rack_id=rack,
    )


async def fill(client: Client) -> None:
    for name in ("orders", "bills"):
        await client.create(name, 3)
        for partition in range(2):
            for count in (1, 3, 2):
                await client.produce(name, *[bytes(100)] * count, partition=partition)


def told(reply: FetchResponse, version: int) -> bytes:
    """All that a reply says but for the number of its session."""
    reply.session_id = int(reply.session_id != 0)
    return encode(reply, version)


@pytest.mark.parametrize("version", VERSIONS)
def test_both_ways_say_the_same(version: int) -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await fill(client)
        chance = Random(version)
        for seed in range(40):
            topics = wanted(chance, client, version)
            short, long = (asked(Random(seed), topics, (0, FINAL), rack) for rack in ("", RACK))
            assert told(await client.ask(short, version), version) == told(await client.ask(long, version), version)

    walk(steps)


@pytest.mark.parametrize("version", VERSIONS)
def test_sessions_of_both_ways_say_the_same(version: int) -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await fill(client)
        chance = Random(version)
        for _ in range(4):
            ids: dict[str, int] = {"": 0, RACK: 0}
            for epoch in range(7):
                topics, seed = wanted(chance, client, version), chance.random()
                replies: dict[str, Any] = {}
                for rack in ids:
                    reply = await client.ask(asked(Random(seed), topics, (ids[rack], epoch), rack), version)
                    ids[rack] = reply.session_id or ids[rack]
                    replies[rack] = told(reply, version)
                assert replies[""] == replies[RACK]
                if chance.random() < 0.5:
                    await client.produce(chance.choice(["orders", "bills"]), b"more", partition=chance.randrange(2))

    walk(steps)
