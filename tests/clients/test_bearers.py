"""Clients of four libraries log in by access tokens, produce and consume; whoever has a bad one is refused."""

from __future__ import annotations

import asyncio
import contextlib
import re
import ssl
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiokafka
import aiokafka.abc
import kafka
import kafka.net.sasl.oauth
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from cryptography.hazmat.primitives.asymmetric import ec

import penstock
from penstock.blocking import Admin
from penstock.blocking import Consumer as OwnConsumer
from penstock.blocking import Producer as OwnProducer
from penstock.certificates import Role, create_authority, issue_node, write_issued
from penstock.client.errors import ClientError
from penstock.server.logs import Sparing
from penstock.testing import broker
from tests.compat.processes import free_ports
from tests.faults.counts import SOAKING
from tests.identity_provider import AUDIENCE, ISSUER, IdentityProvider, identity_provider
from tests.patience import wait_for, within

TOPIC = "bearers"
SASL = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "OAUTHBEARER"}
PROTOCOLS = ("SASL_PLAINTEXT", "SASL_SSL")
AT_ONCE_S = 1.0 if SOAKING else 5.0


@dataclass(frozen=True)
class Place:
    """A node that takes tokens, and whoever issues them."""

    addresses: dict[str, str]
    """By protocol."""
    trusted: Path
    provider: IdentityProvider
    protocol: str = "SASL_PLAINTEXT"

    @property
    def address(self) -> str:
        return self.addresses[self.protocol]

    @property
    def tls(self) -> bool:
        return self.protocol == "SASL_SSL"

    def by(self, protocol: str) -> Place:
        return replace(self, protocol=protocol)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    home, now = tmp_path_factory.mktemp("bearers"), datetime.now(UTC)
    cluster = create_authority(home / "cluster", Role.CLUSTER, "Xk2aCqkDQ-6hT0eB3v9T_A", now=now)
    (home / "trusted.pem").write_bytes(cluster.trusted_pem)
    write_issued(issue_node(cluster, 1, ["127.0.0.1", "localhost"], now=now), home / "node.pem")
    port, secure = free_ports(2)
    listeners = f"CLIENTS://127.0.0.1:{port},SECURE://127.0.0.1:{secure}"
    with identity_provider() as provider:
        settings = {
            "listeners": f"{listeners},CONTROLLER://127.0.0.1:0",
            "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT,SECURE:SASL_SSL,CONTROLLER:PLAINTEXT",
            "advertised.listeners": listeners,
            "ssl.keystore.location": str(home / "node.pem"),
            "inter.broker.listener.name": "CLIENTS",
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
            "sasl.oauthbearer.jwks.endpoint.url": provider.keys_url,
            "sasl.oauthbearer.token.endpoint.url": provider.tokens_url,
            "sasl.oauthbearer.client.credentials.client.id": "alice",
            "sasl.oauthbearer.client.credentials.client.secret": provider.clients["alice"],
            "penstock.sasl.oauthbearer.allowed.urls": f"{provider.keys_url},{provider.tokens_url}",
            "sasl.oauthbearer.expected.issuer": ISSUER,
            "sasl.oauthbearer.expected.audience": AUDIENCE,
        }
        with broker(settings):
            address = f"127.0.0.1:{port}"
            with Admin(bootstrap_servers=address, token_provider=provider.token) as admin:
                admin.create_topic(TOPIC, partitions=1)
            addresses = dict(zip(PROTOCOLS, (address, f"127.0.0.1:{secure}"), strict=True))
            yield Place(addresses, home / "trusted.pem", provider)


# What each library does: one record there, and back from its offset.


def confluent_settings(place: Place, token: Callable[[], str]) -> dict[str, Any]:
    return {
        **({"ssl.ca.location": str(place.trusted)} if place.tls else {}),
        "bootstrap.servers": place.address,
        "security.protocol": place.protocol,
        "sasl.mechanism": "OAUTHBEARER",
        "oauth_cb": lambda _config: (token(), time.time() + 600, "alice", {"traceId": "1"}),
    }


def confluent_round(place: Place, token: Callable[[], str], value: bytes) -> bytes:
    settings = confluent_settings(place, token)
    offsets: list[int] = []
    producer = Producer({**settings, "message.timeout.ms": int(within(20) * 1000)})
    producer.produce(TOPIC, value, on_delivery=lambda _error, message: offsets.append(message.offset()))
    assert producer.flush(within(20)) == 0
    consumer = Consumer({**settings, "group.id": "unused"})
    try:
        consumer.assign([TopicPartition(TOPIC, 0, offsets[0])])
        message = consumer.poll(within(20))
        assert message is not None
        assert message.error() is None
        return bytes(message.value())
    finally:
        consumer.close()


def kafka_python_settings(place: Place, token: Callable[[], str]) -> dict[str, Any]:
    class Tokens(kafka.net.sasl.oauth.AbstractTokenProvider):  # type: ignore[misc]  # the library has no types
        def token(self) -> str:
            return token()

    return {
        **({"ssl_cafile": str(place.trusted)} if place.tls else {}),
        "bootstrap_servers": place.address,
        "security_protocol": place.protocol,
        "sasl_mechanism": "OAUTHBEARER",
        "sasl_oauth_token_provider": Tokens(),
    }


def kafka_python_round(place: Place, token: Callable[[], str], value: bytes) -> bytes:
    settings = kafka_python_settings(place, token)
    with contextlib.closing(kafka.KafkaProducer(**settings)) as producer:
        offset = producer.send(TOPIC, value, partition=0).get(within(20)).offset
    with contextlib.closing(kafka.KafkaConsumer(**settings)) as consumer:
        where = kafka.TopicPartition(TOPIC, 0)
        consumer.assign([where])
        consumer.seek(where, offset)
        return bytes(wait_for("a record", lambda: consumer.poll(timeout_ms=500), timeout_s=20)[where][0].value)


def aiokafka_settings(place: Place, token: Callable[[], str]) -> dict[str, Any]:
    class Tokens(aiokafka.abc.AbstractTokenProvider):  # type: ignore[misc]  # the library has no types
        async def token(self) -> str:
            return token()

    return {
        **({"ssl_context": ssl.create_default_context(cafile=str(place.trusted))} if place.tls else {}),
        "bootstrap_servers": place.address,
        "security_protocol": place.protocol,
        "sasl_mechanism": "OAUTHBEARER",
        "sasl_oauth_token_provider": Tokens(),
    }


def aiokafka_round(place: Place, token: Callable[[], str], value: bytes) -> bytes:
    async def main() -> bytes:
        settings = aiokafka_settings(place, token)
        producer = aiokafka.AIOKafkaProducer(**settings)
        await producer.start()
        try:
            offset = (await producer.send_and_wait(TOPIC, value, partition=0)).offset
        finally:
            await producer.stop()
        consumer = aiokafka.AIOKafkaConsumer(**settings)
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


def own_round(place: Place, value: bytes, **settings: Any) -> bytes:
    with OwnProducer(bootstrap_servers=place.address, **settings) as producer:
        offset = producer.send(TOPIC, value).result(within(20)).offset
    where = penstock.TopicPartition(TOPIC, 0)
    with OwnConsumer(bootstrap_servers=place.address, **settings) as consumer:
        consumer.assign([where])
        consumer.seek(where, offset)
        return bytes(wait_for("a record", lambda: consumer.poll(timeout_ms=500), timeout_s=20)[0].value or b"")


def penstock_round(place: Place, token: Callable[[], str], value: bytes) -> bytes:
    return own_round(place, value, **own_settings(place), token_provider=token)


def own_settings(place: Place) -> dict[str, Any]:
    return {"cafile": str(place.trusted)} if place.tls else {}


ROUNDS = {
    "confluent-kafka": confluent_round,
    "kafka-python": kafka_python_round,
    "aiokafka": aiokafka_round,
    "penstock": penstock_round,
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("library", ROUNDS)
def test_a_record_goes_there_and_back(place: Place, library: str, protocol: str) -> None:
    value = f"by {library} over {protocol}".encode()
    assert ROUNDS[library](place.by(protocol), place.provider.token, value) == value


def penstock_refusal(place: Place, token: str) -> tuple[str, float]:
    """What the user is told, and after how many seconds."""
    began = time.monotonic()
    with (
        pytest.raises(ClientError) as raised,
        Admin(bootstrap_servers=place.address, **own_settings(place), token_provider=lambda: token) as admin,
    ):
        admin.topics()
    return str(raised.value), time.monotonic() - began


def confluent_refusal(place: Place, token: str) -> tuple[str, float]:
    """librdkafka calls its user back at a tick of its own, once a second; how long the answer took is in the error."""
    told: list[Any] = []
    producer = Producer({**confluent_settings(place, lambda: token), "error_cb": told.append, "log_level": 0})
    wait_for("librdkafka to tell its user", lambda: producer.poll(0.02) or told, timeout_s=20)
    after = re.search(r"after (\d+)ms in state AUTH_REQ", str(told[0]))
    assert after is not None, told
    return str(told[0]), int(after[1]) / 1000


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("refusal", [penstock_refusal, confluent_refusal])
def test_a_token_that_has_ended_is_told_at_once_and_named_in_the_log(
    place: Place,
    refusal: Callable[[Place, str], tuple[str, float]],
    protocol: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Sparing, "warning", lambda self, _kind, *words: self._logger.warning(*words))
    ended = place.provider.token(iat=time.time() - 7_200, exp=time.time() - 3_600)
    told, seconds = refusal(place.by(protocol), ended)
    assert seconds < within(AT_ONCE_S)
    assert "invalid_token" in told
    wait_for("a sentence", lambda: "by OAUTHBEARER failed: " in caplog.text, timeout_s=20)
    assert "exp" in caplog.text
    assert ended not in caplog.text + told


def test_our_client_asks_a_token_endpoint(place: Place) -> None:
    provider = place.provider
    jaas = (
        "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
        f'clientId="alice" clientSecret="{provider.clients["alice"]}" scope="read write" extension_traceId="7";'
    )
    settings = {**SASL, "sasl_jaas_config": jaas, "sasl_oauthbearer_token_endpoint_url": provider.tokens_url}
    assert own_round(place, b"by an endpoint", **settings) == b"by an endpoint"
    assert provider.scopes[-1] == "read write"


def test_our_client_reads_a_token_file(place: Place, tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(place.provider.token() + "\n")
    settings = {**SASL, "sasl_oauthbearer_token_endpoint_url": f"file://{path}"}
    assert own_round(place, b"by a file", **settings) == b"by a file"


def test_sessions_are_renewed_before_their_tokens_end(place: Place) -> None:
    asked: list[float] = []

    def short() -> str:
        asked.append(time.monotonic())
        return place.provider.token(exp=time.time() + 4)

    with OwnProducer(bootstrap_servers=place.address, token_provider=short) as producer:
        producer.send(TOPIC, b"before").result(within(20))
        wait_for("another token", lambda: len(asked) > 2, timeout_s=30)
        producer.send(TOPIC, b"after").result(within(20))


def test_keys_that_change_are_followed(place: Place) -> None:
    place.provider.rotate()
    assert penstock_round(place, place.provider.token, b"by another key") == b"by another key"


def test_our_client_says_that_its_token_is_refused_and_shows_none_of_it(place: Place) -> None:
    forged = place.provider.token(key=ec.generate_private_key(ec.SECP256R1()))
    with (
        pytest.raises(ClientError, match="invalid_token") as raised,
        Admin(bootstrap_servers=place.address, token_provider=lambda: forged) as admin,
    ):
        admin.topics()
    assert forged not in str(raised.value)


def test_our_client_says_why_there_is_no_token(place: Place) -> None:
    settings = {
        **SASL,
        "sasl_oauthbearer_token_endpoint_url": place.provider.tokens_url,
        "sasl_oauthbearer_client_credentials_client_id": "alice",
        "sasl_oauthbearer_client_credentials_client_secret": "a guess",
    }
    with (
        pytest.raises(ClientError, match=r"no access token.*status 401") as raised,
        Admin(bootstrap_servers=place.address, **settings) as admin,
    ):
        admin.topics()
    assert "guess" not in str(raised.value)
