"""What a secured node is told, word for word, and that a node takes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.certificates.node_settings import Ports, listeners, properties_text, security_settings
from penstock.model.config import BrokerSettings
from penstock.model.config.files import parse_properties

CLUSTER = "Xk2aCqkDQ-6hT0eB3v9T_A"


def told() -> dict[str, str]:
    return security_settings(
        CLUSTER, [1, 2], admin="admin", key_store=Path("/k/node-1.pem"), trust_store=Path("/k/ca.pem")
    )


def test_a_secured_node_is_told_this() -> None:
    assert properties_text(told()) == (
        "listener.security.protocol.map=CLIENTS:SASL_SSL,REPLICATION:SSL,CONTROLLER:SSL\n"
        "inter.broker.listener.name=REPLICATION\n"
        "controller.listener.names=CONTROLLER\n"
        "ssl.keystore.type=PEM\n"
        "ssl.keystore.location=/k/node-1.pem\n"
        "ssl.truststore.type=PEM\n"
        "ssl.truststore.location=/k/ca.pem\n"
        "listener.name.replication.ssl.client.auth=required\n"
        "listener.name.controller.ssl.client.auth=required\n"
        "listener.name.clients.sasl.enabled.mechanisms=SCRAM-SHA-512,SCRAM-SHA-256\n"
        "listener.name.clients.scram-sha-512.sasl.jaas.config="
        "org.apache.kafka.common.security.scram.ScramLoginModule required;\n"
        "listener.name.clients.scram-sha-256.sasl.jaas.config="
        "org.apache.kafka.common.security.scram.ScramLoginModule required;\n"
        "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer\n"
        "allow.everyone.if.no.acl.found=false\n"
        f"super.users=User:CN=node-1,O={CLUSTER};User:CN=node-2,O={CLUSTER};User:admin\n"
    )


def test_a_node_takes_it() -> None:
    ports = Ports(clients=9092, replication=9094, controller=9093)
    settings = BrokerSettings.load(
        {
            "node.id": "1",
            "process.roles": "broker,controller",
            "listeners": listeners("127.0.0.1", ports),
            "controller.quorum.bootstrap.servers": "127.0.0.1:9093",
            "log.dirs": "/data",
            **told(),
        }
    )
    assert {each.name: each.security_protocol for each in settings.listeners} == {
        "CLIENTS": "SASL_SSL", "REPLICATION": "SSL", "CONTROLLER": "SSL",
    }  # fmt: skip
    assert settings.for_listener("CONTROLLER", "ssl.client.auth") == "required"
    assert settings.for_listener("CLIENTS", "ssl.client.auth") == "none"


def test_listeners_are_the_clients_first() -> None:
    assert listeners("h", Ports(1, 2, 3)) == "CLIENTS://h:1,REPLICATION://h:2,CONTROLLER://h:3"
    assert listeners("::1", Ports(1, 2, None)) == "CLIENTS://[::1]:1,REPLICATION://[::1]:2"


@pytest.mark.parametrize("value", ["a=b:c;d", "back\\slash", " blank", "\ttab", "Übung/𝄞", "a # b", "two\nlines", ""])
def test_properties_are_read_as_they_were_meant(value: str) -> None:
    text = properties_text({"name": value}, "words\nmore words")
    assert text.isascii()
    assert parse_properties(text) == {"name": value}
