"""Which properties are secret, and that no password of a file is shown."""

from __future__ import annotations

import pytest

from penstock.model.config import BROKER_CONFIGS, ConfigType
from penstock.security.hiding import secret_in_clients, secret_on_brokers, shown


def test_every_password_of_kafkas_brokers_is_secret_under_any_listener() -> None:
    passwords = [row.name for row in BROKER_CONFIGS.values() if row.type is ConfigType.PASSWORD]
    assert len(passwords) >= 10
    for name in passwords:
        for prefix in ("", "listener.name.clients.", "listener.name.clients.scram-sha-256."):
            if prefix.count(".") < 4 or name.startswith("sasl"):
                assert secret_on_brokers(prefix + name)
                assert secret_in_clients(prefix + name)


def test_what_a_broker_does_not_know_is_secret() -> None:
    assert secret_on_brokers("my.plugin.setting")
    assert not secret_on_brokers("log.retention.ms")
    assert not secret_on_brokers("listener.name.clients.ssl.client.auth")


@pytest.mark.parametrize(
    "name",
    [
        *("sasl.password", "sasl_plain_password", "ssl.key.pem", "ssl_password", "sasl.oauthbearer.client.secret"),
        *("kafka.sasl.jaas.config", "basic.auth.user.info", "ssl.keystore.key", "azure.api_key", "access_token"),
        *("schema.registry.basic.auth.user.info", "sasl.oauthbearer.assertion.private.key.passphrase", "PASSWD"),
    ],
)
def test_secrets_of_clients_go_by_their_words(name: str) -> None:
    assert secret_in_clients(name)


@pytest.mark.parametrize(
    "name",
    [
        *("bootstrap.servers", "sasl.username", "ssl.key.location", "sasl.oauthbearer.token.endpoint.url", "group.id"),
        *("ssl.keystore.location", "delegation.token.max.lifetime.ms", "client.id", "key.serializer", "key"),
    ],
)
def test_what_is_no_secret_is_shown(name: str) -> None:
    assert not secret_in_clients(name)


def test_properties_are_shown_without_their_secrets() -> None:
    properties = {"sasl.jaas.config": "x password=swordfish;", "ssl.client.auth": "required"}
    assert shown(properties, broker=True) == {"sasl.jaas.config": "[hidden]", "ssl.client.auth": "required"}
    assert shown({"sasl.password": "swordfish", "group.id": "g"}, broker=False) == {
        "sasl.password": "[hidden]",
        "group.id": "g",
    }
