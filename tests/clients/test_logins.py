"""Foreign clients over TLS and with logins: they produce and consume, and who may not come is told why in our log."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import re
import ssl
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import aiokafka
import kafka
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion
from confluent_kafka.cimpl import NewTopic

from penstock.blocking import Admin
from penstock.certificates import Role, create_authority, issue_client, issue_node, write_issued
from penstock.client.errors import ClientError
from penstock.server.logs import Sparing
from penstock.testing import broker
from tests.compat.processes import free_ports
from tests.faults.counts import SOAKING
from tests.patience import wait_for, within

NAMES = ("PLAINTEXT", "TLS", "MISNAMED", "MUTUAL", "LOGIN", "SECURE")
PROTOCOLS = {
    "PLAINTEXT": "PLAINTEXT",
    "TLS": "SSL",
    "MISNAMED": "SSL",
    "MUTUAL": "SSL",
    "LOGIN": "SASL_PLAINTEXT",
    "SECURE": "SASL_SSL",
}
JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="wonder";'
SCRAM = {"SCRAM-SHA-256": ScramMechanism.SCRAM_SHA_256, "SCRAM-SHA-512": ScramMechanism.SCRAM_SHA_512}
MECHANISMS = ("PLAIN", *SCRAM)
TOPIC = "logins"
WAYS = [("TLS", ""), ("MUTUAL", ""), *((name, each) for name in ("LOGIN", "SECURE") for each in MECHANISMS)]


@dataclass(frozen=True)
class Files:
    """What clients need on disk."""

    trusted: Path
    own: Path
    foreign: Path
    """An authority that signed nothing here."""


@dataclass(frozen=True)
class Place:
    """A node and its listeners."""

    ports: dict[str, int]
    files: Files

    def way(self, listener: str, mechanism: str = "", **changes: Any) -> Way:
        known = Way(f"127.0.0.1:{self.ports[listener]}", PROTOCOLS[listener], mechanism, self.files.trusted)
        own = self.files.own if listener == "MUTUAL" else None
        return Way(**{**vars(known), "own": own, **changes})


@dataclass
class Way:
    """How to reach a node, in no library's words."""

    address: str
    protocol: str
    mechanism: str
    trusted: Path
    own: Path | None = None
    password: str = "wonder"

    @property
    def tls(self) -> bool:
        return self.protocol.endswith("SSL")

    def confluent(self) -> dict[str, Any]:
        found: dict[str, Any] = {"bootstrap.servers": self.address, "security.protocol": self.protocol}
        if self.tls:
            found["ssl.ca.location"] = str(self.trusted)
        if self.own is not None:
            found |= {"ssl.certificate.location": str(self.own), "ssl.key.location": str(self.own)}
        if self.mechanism:
            found |= {"sasl.mechanism": self.mechanism, "sasl.username": "alice", "sasl.password": self.password}
        return found

    def own_client(self) -> dict[str, Any]:
        found: dict[str, Any] = {"bootstrap_servers": self.address, "security_protocol": self.protocol}
        if self.tls:
            found["cafile"] = str(self.trusted)
        if self.own is not None:
            found["certfile"] = str(self.own)
        if self.mechanism:
            found |= {"mechanism": self.mechanism, "username": "alice", "password": self.password}
        return found

    def _python(self) -> dict[str, Any]:
        found: dict[str, Any] = {"bootstrap_servers": self.address, "security_protocol": self.protocol}
        if self.mechanism:
            found |= {
                "sasl_mechanism": self.mechanism,
                "sasl_plain_username": "alice",
                "sasl_plain_password": self.password,
            }
        return found

    def kafka_python(self) -> dict[str, Any]:
        found = self._python()
        if self.tls:
            found["ssl_cafile"] = str(self.trusted)
        if self.own is not None:
            found |= {"ssl_certfile": str(self.own), "ssl_keyfile": str(self.own)}
        return found

    def aio(self) -> dict[str, Any]:
        found = self._python()
        if self.tls:
            found["ssl_context"] = context = ssl.create_default_context(cafile=str(self.trusted))
            if self.own is not None:
                context.load_cert_chain(str(self.own))
        return found


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    home, now = tmp_path_factory.mktemp("secured"), datetime.now(UTC)
    cluster = create_authority(home / "cluster", Role.CLUSTER, "Xk2aCqkDQ-6hT0eB3v9T_A", now=now)
    clients = create_authority(home / "clients", Role.CLIENTS, "Xk2aCqkDQ-6hT0eB3v9T_A", now=now)
    other = create_authority(home / "other", Role.CLUSTER, "a_cluster_of_somebody1", now=now)
    files = Files(home / "trusted.pem", home / "alice.pem", home / "foreign.pem")
    files.trusted.write_bytes(cluster.trusted_pem)
    files.foreign.write_bytes(other.trusted_pem)
    write_issued(issue_client(clients, "alice", now=now), files.own)
    write_issued(issue_node(cluster, 1, ["127.0.0.1", "localhost"], now=now), home / "node.pem")
    write_issued(issue_node(cluster, 1, ["elsewhere.example"], now=now), home / "misnamed.pem")
    ports = dict(zip(NAMES, free_ports(len(NAMES)), strict=True))
    listeners = [f"{name}://127.0.0.1:{port}" for name, port in ports.items()]
    protocols = [f"{name}:{protocol}" for name, protocol in PROTOCOLS.items()]
    settings = {
        "listeners": ",".join([*listeners, "CONTROLLER://127.0.0.1:0"]),
        "listener.security.protocol.map": ",".join([*protocols, "CONTROLLER:PLAINTEXT"]),
        "advertised.listeners": ",".join(listeners),
        "inter.broker.listener.name": "PLAINTEXT",
        "ssl.keystore.location": str(home / "node.pem"),
        "listener.name.misnamed.ssl.keystore.location": str(home / "misnamed.pem"),
        "listener.name.mutual.ssl.client.auth": "required",
        "listener.name.mutual.ssl.truststore.certificates": clients.trusted_pem.decode(),
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "listener.name.login.plain.sasl.jaas.config": JAAS,
        "listener.name.secure.plain.sasl.jaas.config": JAAS,
    }
    with broker(settings):
        admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{ports['PLAINTEXT']}"})
        for each in SCRAM.values():  # a user cannot be altered twice in one request
            credential = UserScramCredentialUpsertion("alice", ScramCredentialInfo(each, 4096), b"wonder")
            for altered in admin.alter_user_scram_credentials([credential]).values():
                altered.result(within(30))
        for created in admin.create_topics([_topic()]).values():
            created.result(within(30))
        yield Place(ports, files)


def _topic() -> NewTopic:
    return NewTopic(TOPIC, num_partitions=1, replication_factor=1)


# What each library does: one record there, and back from its offset.


def confluent_round(way: Way, value: bytes) -> bytes:
    offsets: list[int] = []
    producer = Producer({**way.confluent(), "message.timeout.ms": int(within(20) * 1000)})
    producer.produce(TOPIC, value, on_delivery=lambda _error, message: offsets.append(message.offset()))
    assert producer.flush(within(20)) == 0
    consumer = Consumer({**way.confluent(), "group.id": "unused"})
    try:
        consumer.assign([TopicPartition(TOPIC, 0, offsets[0])])
        message = consumer.poll(within(20))
        assert message is not None
        assert message.error() is None
        return bytes(message.value())
    finally:
        consumer.close()


def kafka_python_round(way: Way, value: bytes) -> bytes:
    with contextlib.closing(kafka.KafkaProducer(**way.kafka_python())) as producer:
        offset = producer.send(TOPIC, value, partition=0).get(within(20)).offset
    with contextlib.closing(kafka.KafkaConsumer(**way.kafka_python())) as consumer:
        where = kafka.TopicPartition(TOPIC, 0)
        consumer.assign([where])
        consumer.seek(where, offset)
        return bytes(wait_for("a record", lambda: consumer.poll(timeout_ms=500), timeout_s=20)[where][0].value)


def aiokafka_round(way: Way, value: bytes) -> bytes:
    async def main() -> bytes:
        producer = aiokafka.AIOKafkaProducer(**way.aio())
        await producer.start()
        try:
            offset = (await producer.send_and_wait(TOPIC, value, partition=0)).offset
        finally:
            await producer.stop()
        consumer = aiokafka.AIOKafkaConsumer(**way.aio())
        where = aiokafka.TopicPartition(TOPIC, 0)
        consumer.assign([where])
        await consumer.start()
        try:
            consumer.seek(where, offset)
            async with asyncio.timeout(within(20)):
                return bytes((await consumer.getone()).value)
        finally:
            await consumer.stop()

    return asyncio.run(main())


Round = Callable[[Way, bytes], bytes]
ROUNDS: dict[str, Round] = {
    "confluent-kafka": confluent_round,
    "kafka-python": kafka_python_round,
    "aiokafka": aiokafka_round,
}


@pytest.mark.parametrize("library", ROUNDS)
@pytest.mark.parametrize(("listener", "mechanism"), WAYS)
def test_a_record_goes_there_and_back(place: Place, library: str, listener: str, mechanism: str) -> None:
    value = f"{library} {listener} {mechanism}".encode()
    assert ROUNDS[library](place.way(listener, mechanism), value) == value


# Who may not come. Libraries try again for long; one attempt is enough for the sentence.


def penstock_attempt(way: Way) -> str:
    """What our own client is told."""
    with pytest.raises(ClientError) as raised, Admin(**way.own_client()) as admin:
        admin.topics()
    return f"{type(raised.value).__name__}: {raised.value}"


def confluent_attempt(way: Way) -> str:
    told: list[Any] = []
    producer = Producer({**way.confluent(), "error_cb": told.append, "log_level": 0})
    wait_for("librdkafka to tell its user", lambda: producer.poll(0.02) or told, timeout_s=20)
    return f"{told[0].name()}: {told[0].str()}"


def kafka_python_attempt(way: Way) -> str:
    patience = {"bootstrap_timeout_ms": int(within(1) * 1_000), "request_timeout_ms": int(within(3) * 1_000)}
    with pytest.raises(kafka.errors.KafkaError) as raised:
        kafka.KafkaAdminClient(**way.kafka_python(), **patience)
    assert not isinstance(raised.value, kafka.errors.KafkaConfigurationError)
    return str(raised.value)


def aiokafka_attempt(way: Way) -> str:
    async def main() -> str:
        producer = aiokafka.AIOKafkaProducer(**way.aio())
        try:
            with pytest.raises((aiokafka.errors.KafkaError, TimeoutError)) as raised:
                async with asyncio.timeout(within(1)):
                    await producer.start()
            return str(raised.value)
        finally:
            await producer.stop()

    return asyncio.run(main())


ATTEMPTS = {
    "penstock": penstock_attempt,
    "confluent-kafka": confluent_attempt,
    "kafka-python": kafka_python_attempt,
    "aiokafka": aiokafka_attempt,
}


class Refusal(NamedTuple):
    """Where somebody comes and how, what our log says of it, and what our client and librdkafka tell their users."""

    listener: str
    changes: dict[str, Any]
    logged: str
    ours: str
    confluent: str


REFUSED = {
    "wrong password": Refusal(
        "SECURE",
        {"mechanism": "PLAIN", "password": "guess"},
        "the login of 'alice' from 127.0.0.1",
        "AuthenticationFailed.*Invalid username or password.*check the user's name and password",
        "_AUTHENTICATION.*Invalid username or password",
    ),
    "wrong password of SCRAM": Refusal(
        "LOGIN",
        {"mechanism": "SCRAM-SHA-256", "password": "guess"},
        "wrong password, or no such user",
        "AuthenticationFailed.*due to invalid credentials with SASL mechanism SCRAM-SHA-256",
        "_AUTHENTICATION.*due to invalid credentials with SASL mechanism SCRAM-SHA-256",
    ),
    "unknown authority": Refusal(
        "TLS",
        {"trusted": "foreign"},
        "on TLS is closed: ",
        "NotTrusted.*name the authority that signed it in cafile",
        "certificate verify failed",
    ),
    "wrong host name": Refusal(
        "MISNAMED",
        {},
        "on MISNAMED is closed: ",
        "NotTrusted.*127.0.0.1",
        "certificate verify failed",
    ),
    "no certificate": Refusal(
        "MUTUAL",
        {"own": None},
        "the client showed no certificate",
        "NotTrusted.*it may want a certificate of its own authority",
        "SSL handshake failed|certificate required|_TRANSPORT",
    ),
    "plaintext to TLS": Refusal(
        "TLS",
        {"protocol": "PLAINTEXT"},
        "this looks like a plaintext client on a TLS listener",
        "NotReachable.*is this a listener with TLS",
        "_TRANSPORT.*Disconnected|_ALL_BROKERS_DOWN",
    ),
    "TLS to plaintext": Refusal(
        "PLAINTEXT",
        {"protocol": "SSL"},
        "this looks like a TLS handshake on a plaintext listener",
        "NotReachable.*is this a plaintext listener",
        # What it says goes by whether it reads the end of the connection before its own handshake fails.
        "SSL handshake failed.*connecting to a PLAINTEXT broker listener|SSL connection closed by peer",
    ),
}
AT_ONCE_S = 1.0 if SOAKING else 5.0
"""A second on a machine that has nothing else to do, and on any machine sooner than anybody would try again."""


@pytest.fixture
def leftovers() -> Iterator[None]:
    """kafka-python and aiokafka drop sockets whose handshake or login failed without closing them."""
    yield
    gc.collect()


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.usefixtures("leftovers")
@pytest.mark.parametrize("library", ATTEMPTS)
@pytest.mark.parametrize("why", REFUSED)
def test_who_may_not_come_is_named_in_the_log(
    place: Place, library: str, why: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The node tells the same of one address once in ten seconds; here every attempt is to be heard.
    monkeypatch.setattr(Sparing, "warning", lambda self, _kind, *words: self._logger.warning(*words))
    refusal = REFUSED[why]
    changes = {name: place.files.foreign if value == "foreign" else value for name, value in refusal.changes.items()}
    with caplog.at_level(logging.INFO):
        began = time.monotonic()
        told = ATTEMPTS[library](place.way(refusal.listener, **changes))
        took_s = time.monotonic() - began
        wait_for("a sentence", lambda: refusal.logged in caplog.text, timeout_s=20)
    wanted = {"penstock": refusal.ours, "confluent-kafka": refusal.confluent}.get(library)
    if wanted is not None:
        # These tell their users of the first attempt; the others go on for as long as they were given.
        assert re.search(wanted, told), told
        assert took_s < within(AT_ONCE_S)
    assert "guess" not in "".join(record.getMessage() for record in caplog.records if "penstock" in record.name)
