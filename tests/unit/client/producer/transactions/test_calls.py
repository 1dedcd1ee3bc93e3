"""What a producer says of transactions before it has asked anybody."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from penstock import Consumer, GroupMetadata, Producer
from penstock.client.errors import BadSetting, ClientError, Closed, TimedOutWaiting
from penstock.client.producer.producer import whose_offsets

NOBODY = "127.0.0.1:1"


async def test_transactions_need_an_id() -> None:
    async with Producer(NOBODY) as producer:
        for call in (producer.begin, producer.commit, producer.abort, producer.prepare):
            with pytest.raises(BadSetting, match="transactional_id"):
                await call()


async def test_nothing_is_sent_outside_of_a_transaction() -> None:
    producer = Producer(NOBODY, transactional_id="t")
    for _ in range(2):
        with pytest.raises(ClientError, match="there is no transaction"):
            producer.send("orders", b"v")
        with pytest.raises(ClientError, match="there is no transaction"):
            producer.send_batch("orders", [b"v"])
        with pytest.raises(ClientError, match="there is no transaction"):
            await producer.commit()
        with pytest.raises(ClientError, match="there is no transaction"):
            await producer.send_offsets(GroupMetadata("g"), {("orders", 0): 1})
    await producer.close()
    with pytest.raises(Closed):
        producer.send("orders", b"v")
    with pytest.raises(Closed):
        await producer.begin()


async def test_a_coordinator_that_nobody_reaches_is_waited_for_as_long_as_was_said() -> None:
    producer = Producer(NOBODY, transactional_id="t", max_block_ms=100, retry_backoff_ms=1)
    for _ in range(2):
        with pytest.raises(
            TimedOutWaiting, match=r"no answer from the transaction coordinator.*begin\(\) may be called"
        ):
            await producer.begin()
    async with asyncio.timeout(5):
        await producer.close()


def test_offsets_are_those_of_a_consumer_that_commits_nothing_by_itself() -> None:
    with pytest.raises(BadSetting, match="auto_commit=False"):
        whose_offsets(Consumer("orders", group_id="g"), None)
    with pytest.raises(BadSetting, match="group_id"):
        whose_offsets(Consumer("orders"), None)
    with pytest.raises(ValueError, match="needs the offsets"):
        whose_offsets(GroupMetadata("g"), None)
    with pytest.raises(ValueError, match="member_id"):
        whose_offsets(GroupMetadata("g", 3), {})
    group, offsets = whose_offsets(GroupMetadata("g"), {("orders", 0): 3})
    found: Any = offsets["orders", 0]  # type: ignore[index]
    assert (group.group_id, found.offset) == ("g", 3)
