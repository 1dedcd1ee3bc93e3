"""The end of a consumer: bounded, whatever the broker does."""

from __future__ import annotations

import asyncio
import time

import pytest

from penstock import Consumer, Producer
from penstock.testing import EmbeddedBroker, broker
from tests.patience import within


async def joined(running: EmbeddedBroker, protocol: str) -> Consumer:
    async with Producer(bootstrap_servers=running.bootstrap_servers) as producer:
        await producer.send("t", b"x")
    consumer = Consumer(
        "t", bootstrap_servers=running.bootstrap_servers, group_id="g", group_protocol=protocol, offset_reset="earliest"
    )
    assert await consumer.poll(timeout_ms=20_000)
    return consumer


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_closing_takes_no_longer_than_it_may(protocol: str) -> None:
    async def main(running: EmbeddedBroker) -> float:
        consumer = await joined(running, protocol)
        with running.paused():
            began = time.monotonic()
            await consumer.close(timeout_ms=1_000)
            return time.monotonic() - began

    with broker() as running:
        assert asyncio.run(main(running)) < 2.6


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_cancelled_reader_is_gone_within_seconds(protocol: str) -> None:
    async def main(running: EmbeddedBroker) -> float:
        async with asyncio.timeout(within(60)):
            consumer = await joined(running, protocol)

            async def read() -> None:
                async with consumer:
                    await consumer.poll(timeout_ms=60_000)

            reading = asyncio.create_task(read())
            await asyncio.sleep(0)
            with running.paused():
                began = time.monotonic()
                reading.cancel()
                await asyncio.wait([reading])
                return time.monotonic() - began

    with broker() as running:
        assert asyncio.run(main(running)) < 6
