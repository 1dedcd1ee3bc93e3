"""What a script left behind: how its transactions stand, what lies in its partitions, and what its group committed."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from penstock.protocol.messages.describe_producers import DescribeProducersRequest
from penstock.protocol.messages.describe_transactions import DescribeTransactionsRequest
from penstock.protocol.messages.fetch import FetchRequest
from penstock.protocol.messages.list_offsets import ListOffsetsRequest
from penstock.protocol.messages.list_transactions import ListTransactionsRequest
from penstock.protocol.messages.offset_fetch import OffsetFetchRequest
from tests.compat.transactions.stage import SETTLES_WITHIN_S, Stage

PARTITIONS = 2
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
AGREES_WITHIN_S = 3.0


async def look(stage: Stage) -> None:
    """Compares what there is now; differences that do not go away within a while are kept."""
    await stage.settled()
    for request, version in _questions(stage):
        await agreed(stage, request, version)


async def agreed(stage: Stage, request: Any, version: int) -> Any:
    """Our answer to a question that changes nothing, put again while the answers differ."""
    api = request.__class__.__name__.removesuffix("Request")
    deadline = time.monotonic() + AGREES_WITHIN_S
    while True:
        exchange = await stage.exchange(api, request, version, patient=True)
        if not stage.differences(exchange) or time.monotonic() >= deadline:
            stage.keep(exchange, f"a look by {api}")
            return exchange.ours
        await asyncio.sleep(0.01)


async def in_state(stage: Stage, state: str) -> None:
    """Returns when both brokers say that the script's transaction stands like that."""
    for side in (stage.duo.ours, stage.duo.theirs):
        async with asyncio.timeout(SETTLES_WITHIN_S):
            while True:
                reply = await side.ask(DescribeTransactionsRequest(transactional_ids=[stage.id]), 0)
                if reply.transaction_states[0].transaction_state == state:
                    break
                await asyncio.sleep(0.02)


def _questions(stage: Stage) -> list[tuple[Any, int]]:
    return [
        (DescribeTransactionsRequest(transactional_ids=stage.ids), 0),
        (ListTransactionsRequest(state_filters=[], producer_id_filters=[stage.pid]), 1),
        (producers(stage.topic), 0),
        *((ends(stage.topic, isolation), 5) for isolation in (READ_UNCOMMITTED, READ_COMMITTED)),
        *((everything(stage.topic, isolation), 11) for isolation in (READ_UNCOMMITTED, READ_COMMITTED)),
        *((_offsets(stage.group, stable), 7) for stable in (False, True)),
    ]


def producers(topic: str) -> DescribeProducersRequest:
    made = DescribeProducersRequest
    return made(topics=[made.TopicRequest(name=topic, partition_indexes=[*range(PARTITIONS)])])


def ends(topic: str, isolation: int) -> ListOffsetsRequest:
    made = ListOffsetsRequest
    wanted = [made.ListOffsetsPartition(partition_index=each, timestamp=-1) for each in range(PARTITIONS)]
    topics = [made.ListOffsetsTopic(name=topic, partitions=wanted)]
    return made(replica_id=-1, isolation_level=isolation, topics=topics)


def everything(topic: str, isolation: int, *, offset: int = 0) -> FetchRequest:
    made = FetchRequest
    wanted = [
        made.FetchPartition(partition=each, fetch_offset=offset, partition_max_bytes=1 << 20)
        for each in range(PARTITIONS)
    ]
    topics = [made.FetchTopic(topic=topic, partitions=wanted)]
    return made(max_wait_ms=0, min_bytes=0, max_bytes=1 << 24, isolation_level=isolation, topics=topics)


def _offsets(group: str, stable: bool) -> OffsetFetchRequest:
    return OffsetFetchRequest(group_id=group, topics=None, require_stable=stable)
