"""Sessions of a second and a half under load: clients log in again, or come again, and nothing is lost.

librdkafka, kafka-python and our own client log in again on the same connection. aiokafka cannot: the node closes its
connection when it speaks after the end of its session, and it comes again, which takes retries.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import threading
from collections.abc import Callable, Iterator
from typing import Any

import aiokafka
import kafka
import pytest
from confluent_kafka import Producer

from penstock.blocking import Admin
from penstock.blocking import Producer as OwnProducer
from penstock.testing import EmbeddedBroker, broker
from tests.patience import Patience, wait_for, within

LIFETIME_MS = 1_500
RECORDS_MIN = 50
PAUSE_S = 0.005


@pytest.fixture(scope="module")
def node() -> Iterator[EmbeddedBroker]:
    with broker({"listener.name.clients.connections.max.reauth.ms": LIFETIME_MS}, secure=True) as running:
        with Admin(**running.client_settings) as admin:
            for library in SENDERS:
                admin.create_topic(library, partitions=1)
        yield running


def python_settings(node: EmbeddedBroker) -> dict[str, Any]:
    ours = node.client_settings
    return {
        "bootstrap_servers": node.bootstrap_servers,
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": ours["username"],
        "sasl_plain_password": ours["password"],
    }


class Load:
    """Numbers, one after the other, until a session has ended under them, and some after that."""

    def __init__(self, node: EmbeddedBroker) -> None:
        self._node, self._before = node, counts(node)
        self.sent = 0

    def values(self) -> Iterator[bytes]:
        patience, left = Patience(20), RECORDS_MIN
        while left and not patience.over():
            yield b"%d" % self.sent
            self.sent += 1
            left -= counts(self._node) != self._before
            threading.Event().wait(PAUSE_S)  # a load, not a flood


def by_penstock(node: EmbeddedBroker, topic: str) -> int:
    load, sent = Load(node), []
    with OwnProducer(**node.client_settings, linger_ms=0) as producer:
        sent = [producer.send(topic, value) for value in load.values()]
        for each in sent:
            each.result(within(20))
    return load.sent


def by_confluent(node: EmbeddedBroker, topic: str) -> int:
    load, failures = Load(node), []
    producer = Producer({**node.librdkafka_settings, "linger.ms": 0, "enable.idempotence": True, "log_level": 0})
    for value in load.values():
        producer.produce(topic, value, on_delivery=lambda error, _: failures.append(error) if error else None)
        producer.poll(0)
    assert producer.flush(within(20)) == 0
    assert failures == []
    return load.sent


def by_kafka_python(node: EmbeddedBroker, topic: str) -> int:
    load = Load(node)
    settings = {**python_settings(node), "ssl_cafile": node.client_settings["cafile"]}
    with contextlib.closing(kafka.KafkaProducer(**settings, enable_idempotence=True)) as producer:
        sent = [producer.send(topic, value, partition=0) for value in load.values()]
        for each in sent:
            each.get(within(20))
    return load.sent


def by_aiokafka(node: EmbeddedBroker, topic: str) -> int:
    async def main() -> int:
        load = Load(node)
        context = ssl.create_default_context(cafile=node.client_settings["cafile"])
        producer = aiokafka.AIOKafkaProducer(**python_settings(node), ssl_context=context, enable_idempotence=True)
        await producer.start()
        try:
            for value in load.values():
                await producer.send_and_wait(topic, value, partition=0)
        finally:
            await producer.stop()
        return load.sent

    return asyncio.run(main())


SENDERS: dict[str, Callable[[EmbeddedBroker, str], int]] = {
    "penstock": by_penstock,
    "confluent-kafka": by_confluent,
    "kafka-python": by_kafka_python,
    "aiokafka": by_aiokafka,
}
RENEWS = {"penstock", "confluent-kafka", "kafka-python"}


def counts(node: EmbeddedBroker) -> tuple[int, int]:
    """(logins that were renewed, connections that spoke after the end of their session) so far."""
    entrances = [listener.entrance for listener in node.node._listeners if listener.info.name == "CLIENTS"]
    (entrance,) = entrances
    assert entrance is not None
    assert entrance.logins is not None
    return entrance.logins.renewed, entrance.logins.expired


@pytest.mark.parametrize("library", SENDERS)
def test_nothing_is_lost_while_sessions_end(node: EmbeddedBroker, library: str) -> None:
    renewed, expired = counts(node)
    sent = SENDERS[library](node, library)
    now_renewed, now_expired = counts(node)
    assert sent > RECORDS_MIN
    if library in RENEWS:
        assert now_renewed > renewed
    else:
        assert now_renewed == renewed, f"{library} has learned to log in again: say so in docs/limits.md"
        assert now_expired > expired

    def end() -> int:
        with Admin(**node.client_settings) as admin:
            return admin.describe_topic(library).partitions[0].end

    wait_for("all records, once each", lambda: end() == sent, timeout_s=20)
