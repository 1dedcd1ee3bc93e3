"""There are no transactions yet, and a producer that asks for them is told so at once instead of waiting for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import TransactionalIdAuthorizationFailed
from confluent_kafka import KafkaException, Producer
from kafka import KafkaProducer
from kafka.errors import TransactionalIdAuthorizationFailedError

from penstock.model.errors import TRANSACTIONAL_ID_AUTHORIZATION_FAILED
from tests.patience import within

PATIENCE_S = 60
"""Each of them would ask again for at least this long."""


def confluent(bootstrap: str) -> None:
    Producer({"bootstrap.servers": bootstrap, "transactional.id": "t"}).init_transactions(within(PATIENCE_S))


def kafka_python(bootstrap: str) -> None:
    producer = KafkaProducer(bootstrap_servers=bootstrap, transactional_id="t", max_block_ms=within(PATIENCE_S) * 1_000)
    try:
        producer.init_transactions()
    finally:
        producer.close(timeout=within(1))


def aio(bootstrap: str) -> None:
    async def begin() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id="t")
        try:
            async with asyncio.timeout(within(PATIENCE_S)):
                await producer.start()
        finally:
            await producer.stop()

    asyncio.run(begin())


@pytest.mark.parametrize(
    ("begin", "stops"),
    [
        (confluent, KafkaException),
        (kafka_python, TransactionalIdAuthorizationFailedError),
        (aio, TransactionalIdAuthorizationFailed),
    ],
)
def test_a_transactional_producer_is_stopped_by_the_first_answer(
    bootstrap: str, begin: Callable[[str], None], stops: type[Exception]
) -> None:
    with pytest.raises(stops) as told:
        begin(bootstrap)
    if stops is KafkaException:
        error = told.value.args[0]
        assert (error.fatal(), error.code()) == (True, TRANSACTIONAL_ID_AUTHORIZATION_FAILED.code)
        assert "no transactions yet" in error.str(), "librdkafka passes our words on"
