"""Transactions that nobody will end: batches that say they belong to one, of a producer that no coordinator knows.

Brokers take them in versions of Produce that do not join transactions by themselves, where
`transaction.partition.verification.enable` is false.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Mapping
from typing import Any

from penstock.client.cluster_view import ClusterView
from penstock.client.settings import AdminSettings
from penstock.kernels import Record
from penstock.protocol.batch import build_batch
from penstock.protocol.messages.produce import ProduceRequest
from penstock.transport.dial_security import DialSecurity

UNVERIFIED = {"transaction.partition.verification.enable": False}
"""What a broker needs to be set to for it."""
VERSION = 11

_producers = itertools.count(700_000)


def hang(
    bootstrap: str,
    topic: str,
    *values: bytes,
    partition: int = 0,
    age_ms: int = 3_600_000,
    epoch: int = 3,
    settings: Mapping[str, Any] | None = None,
) -> int:
    """Begins one in a partition whose records are so old; the id of its producer. `settings` has a login if need be."""
    security = None if settings is None else AdminSettings.of(settings).dial_security()
    return asyncio.run(_hang(bootstrap, topic, values or (b"left behind",), partition, age_ms, epoch, security))


async def _hang(
    bootstrap: str,
    topic: str,
    values: tuple[bytes, ...],
    partition: int,
    age_ms: int,
    epoch: int,
    security: DialSecurity | None,
) -> int:
    producer_id, at_ms = next(_producers), time.time_ns() // 1_000_000 - age_ms
    batch = build_batch(
        [Record(index, at_ms, None, value, ()) for index, value in enumerate(values)],
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=0,
        transactional=True,
    )
    made = ProduceRequest
    data = made.TopicProduceData(name=topic, partition_data=[made.PartitionProduceData(index=partition, records=batch)])
    request = made(transactional_id="late", acks=-1, timeout_ms=30_000, topic_data=[data])
    view = ClusterView(bootstrap, security=security)
    try:
        await view.topic(topic)
        leader = view.leader_of(topic, partition)
        assert leader is not None
        reply = await (await view.link(leader)).request(request, VERSION, 30_000)
        assert reply.responses[0].partition_responses[0].error_code == 0
    finally:
        view.close()
    return producer_id
