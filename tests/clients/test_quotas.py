"""librdkafka's producer and consumer are held to a byte rate, and whoever has no limit is not.

Quotas let a burst of `quota.window.num` - 1 seconds through and measure over as long. The default of ten seconds makes
a client alternate between bursts and silence; with one second it is steady enough to be measured in a few.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from penstock.blocking import Admin
from penstock.client.admin.quotas import QuotaEntity
from penstock.testing import EmbeddedBroker, broker
from tests.faults.counts import SOAKING
from tests.patience import within

RATE = 200_000
RECORD = bytes(4_000)
STORED_RECORDS = 1_500
SETTLED_S, MEASURED_S = 2.5, 6.0
TOLERATED = (0.9, 1.1) if SOAKING else (0.25, 1.5)
"""How much of the limit: within a tenth on a machine that has nothing else to do, and held at all on any."""
TRIES = 1 if SOAKING else 3
"""A machine that stands still for seconds makes a client slower than its limit; it never makes one faster."""


@pytest.fixture(scope="module")
def node() -> Iterator[EmbeddedBroker]:
    with broker(settings={"quota.window.num": 2}) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap_servers, "log_level": 0})
        for made in admin.create_topics([NewTopic(name, 1, 1) for name in ("in", "out")]).values():
            made.result(within(30))
        with Admin(bootstrap_servers=running.bootstrap_servers) as own:
            limits: dict[str, float | None] = {"producer_byte_rate": RATE, "consumer_byte_rate": RATE}
            own.alter_quotas({QuotaEntity(client_id="greedy"): limits})
        yield running


def producer(node: EmbeddedBroker, client_id: str) -> Producer:
    return Producer(
        {
            "bootstrap.servers": node.bootstrap_servers,
            "client.id": client_id,
            "batch.size": 16_384,
            "queue.buffering.max.kbytes": 1_000,
            "log_level": 0,
        }
    )


def consumer(node: EmbeddedBroker, client_id: str) -> Consumer:
    reader = Consumer(
        {
            "bootstrap.servers": node.bootstrap_servers,
            "client.id": client_id,
            "group.id": "readers",
            "fetch.message.max.bytes": 16_384,
            "queued.max.messages.kbytes": 64,
            "fetch.queue.backoff.ms": 5,  # or it rests for a second whenever so much is queued
            "log_level": 0,
        }
    )
    reader.assign([TopicPartition("out", 0, 0)])
    return reader


class Sending:
    """A producer that never rests."""

    def __init__(self, made: Producer, topic: str) -> None:
        self._producer, self._topic = made, topic
        self.delivered_bytes = 0

    def step(self) -> int:
        """Sends until the buffer is full; bytes delivered meanwhile."""
        before = self.delivered_bytes
        try:
            self._producer.produce(self._topic, RECORD, on_delivery=self._delivered)
        except BufferError:
            self._producer.poll(0.01)
        return self.delivered_bytes - before

    def _delivered(self, failure: Any, message: Any) -> None:
        assert failure is None
        self.delivered_bytes += len(message.value())


def run_for(seconds: float, step: Callable[[], int]) -> float:
    """Bytes a second of something that is done again and again."""
    done, started = 0, time.monotonic()
    while (passed := time.monotonic() - started) < seconds:
        done += step()
    return done / passed


def assert_held(step: Callable[[], int]) -> None:
    least, most = (share * RATE for share in TOLERATED)
    run_for(SETTLED_S, step)  # the first burst
    rates: list[float] = []
    while len(rates) < TRIES and (not rates or rates[-1] <= least):
        rates.append(run_for(MEASURED_S, step))
        assert rates[-1] < most, rates
    assert rates[-1] > least, rates


def test_a_producer_is_held_to_its_rate(node: EmbeddedBroker) -> None:
    sending = producer(node, "greedy")
    assert_held(Sending(sending, "in").step)
    sending.purge()


def store(node: EmbeddedBroker) -> float:
    """Fills the topic as a client without limits; seconds that it took."""
    started = time.monotonic()
    filling = producer(node, "modest")
    for _ in range(STORED_RECORDS):
        while True:
            try:
                filling.produce("out", RECORD)
                break
            except BufferError:
                filling.poll(0.01)
    assert filling.flush(within(60)) == 0
    return time.monotonic() - started


def test_a_consumer_is_held_to_its_rate_and_others_are_not(node: EmbeddedBroker) -> None:
    limited_s = STORED_RECORDS * len(RECORD) / RATE
    assert store(node) < within(limited_s / 4)
    slow, fast = consumer(node, "greedy"), consumer(node, "modest")

    def read() -> int:
        return sum(len(message.value()) for message in slow.consume(100, timeout=0.01))

    assert_held(read)
    started = time.monotonic()
    assert len(fast.consume(STORED_RECORDS, timeout=within(60))) == STORED_RECORDS
    assert time.monotonic() - started < within(limited_s / 4)
    for reader in (slow, fast):
        reader.close()
