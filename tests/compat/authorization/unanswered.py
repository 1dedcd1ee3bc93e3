"""Produces without acks get no answer; whoever may not make one learns it by a connection that ends, or does not."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

from penstock.protocol.messages.api_versions import ApiVersionsRequest
from penstock.protocol.messages.list_offsets import ListOffsetsRequest
from penstock.protocol.messages.produce import ProduceRequest
from tests.compat.answers.comparing import CLOSED
from tests.compat.authorization.asking import Report
from tests.compat.authorization.cast import ANONYMOUS, EVERYTHING, NOTHING
from tests.compat.authorization.pair import Pair, Side
from tests.compat.authorization.questions import produced
from tests.compat.authorization.state import TOPICS, State

WRITERS = (
    EVERYTHING,
    NOTHING,
    ANONYMOUS,
    "literal-topic-write",
    "prefixed-topic-write",
    "everywhere-topic-write",
    "literal-topic-read",
    "but-topic-write",
    "only-topic-write-from-here",
    "only-topic-write-from-elsewhere",
)
VERSIONS = range(3, 14)


async def compare_unanswered(pair: Pair, state: State, random: Random, report: Report, count: int) -> None:
    """So many produces without acks; the connection and the log have to be the same afterwards on both."""
    for _ in range(count):
        user, version = random.choice(WRITERS), random.choice(VERSIONS)
        topics = random.sample((*TOPICS, "void"), random.choice((1, 1, 1, 2)))
        data = produced(ProduceRequest, version, state.world, *topics)
        request = ProduceRequest(acks=0, timeout_ms=1_000, topic_data=data)
        theirs = pair.pairs.translated(request)
        told = await asyncio.gather(_told(pair.ours, user, request, version), _told(pair.theirs, user, theirs, version))
        report.asked["Produce", version] += 1
        report.users[user] += 1
        ended, ends = zip(*told, strict=True)
        assert ended[0] == ended[1], f"{user} produces to {topics} without acks by version {version}: closed {ended}"
        assert ends[0] == ends[1], f"{user} produced to {topics} without acks by version {version}: {ends}"


async def _told(side: Side, user: str, request: Any, version: int) -> tuple[bool, dict[str, int]]:
    """Whether the connection was closed, and where the logs end afterwards."""
    (await side.link(user)).tell(request, version)
    closed = await side.ask(user, ApiVersionsRequest(), 0) == CLOSED
    made = ListOffsetsRequest
    wanted = made.ListOffsetsPartition(partition_index=0, timestamp=-1)
    topics = [made.ListOffsetsTopic(name=name, partitions=[wanted]) for name in TOPICS]
    reply = await side.admin(made(replica_id=-1, topics=topics), 4)
    return closed, {each.name: each.partitions[0].offset for each in reply.topics}
