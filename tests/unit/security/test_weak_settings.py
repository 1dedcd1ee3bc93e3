"""Settings that let in more than their author may think."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.certificates.node_settings import Ports, listeners, security_settings
from penstock.model.config import BrokerSettings
from penstock.security.weak_settings import weak_settings

STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


def weak(**given: str) -> list[str]:
    """Names of weak properties of a node that is secured but for what is given."""
    secured = {
        "node.id": "1",
        "process.roles": "broker,controller",
        "listeners": listeners("0.0.0.0", Ports(9092, 9094, 9093)),
        "advertised.listeners": listeners("a.example", Ports(9092, 9094, 9093)),
        "controller.quorum.bootstrap.servers": "a.example:9093",
        "log.dirs": "/data",
        **security_settings("id", [1], admin="admin", key_store=Path("/k"), trust_store=Path("/c")),
    }
    return [each.name for each in weak_settings(BrokerSettings.load({**secured, **given}))]


def test_what_is_made_here_is_not_weak() -> None:
    assert weak() == []


@pytest.mark.parametrize(
    ("given", "names"),
    [
        (
            {
                "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT,REPLICATION:SSL,CONTROLLER:SSL",
                "listener.name.clients.sasl.enabled.mechanisms": "SCRAM-SHA-512,PLAIN",
            },
            ["listener.name.clients.sasl.enabled.mechanisms", "listeners"],
        ),
        ({"listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT,REPLICATION:SSL,CONTROLLER:SSL"}, ["listeners"]),
        (
            {"listener.name.controller.ssl.client.auth": "requested"},
            ["listener.name.controller.ssl.client.auth"],
        ),
        ({"listener.name.replication.ssl.client.auth": "none"}, ["listener.name.replication.ssl.client.auth"]),
        (
            {"listener.security.protocol.map": "CLIENTS:SASL_SSL,REPLICATION:SSL,CONTROLLER:PLAINTEXT"},
            ["listener.security.protocol.map"],
        ),
        ({"ssl.endpoint.identification.algorithm": ""}, ["ssl.endpoint.identification.algorithm"]),
        (
            {"listener.name.replication.ssl.endpoint.identification.algorithm": ""},
            ["listener.name.replication.ssl.endpoint.identification.algorithm"],
        ),
        (
            {
                "listener.name.clients.sasl.enabled.mechanisms": "OAUTHBEARER",
                "sasl.oauthbearer.jwks.endpoint.url": "http://far.example/keys",
                "listener.name.clients.oauthbearer.sasl.server.callback.handler.class": (
                    "org.apache.kafka.common.security.oauthbearer.internals.unsecured."
                    "OAuthBearerUnsecuredValidatorCallbackHandler"
                ),
            },
            [
                "listener.name.clients.oauthbearer.sasl.server.callback.handler.class",
                "sasl.oauthbearer.expected.issuer",
                "sasl.oauthbearer.expected.audience",
                "sasl.oauthbearer.jwks.endpoint.url",
            ],
        ),
        (
            {
                "listener.name.clients.sasl.enabled.mechanisms": "OAUTHBEARER",
                "sasl.oauthbearer.jwks.endpoint.url": "https://far.example/keys",
                "sasl.oauthbearer.expected.issuer": "https://far.example",
                "sasl.oauthbearer.expected.audience": "kafka",
            },
            [],
        ),
        ({"penstock.admin.listener": "0.0.0.0:9644"}, ["penstock.admin.listener"] * 2),
        ({"penstock.admin.listener": ":9644", "penstock.admin.username": ""}, ["penstock.admin.listener"] * 2),
        (
            {"penstock.admin.listener": "[::]:9644", "penstock.admin.bearer.token": "[hidden]"},
            ["penstock.admin.listener"],
        ),
        (
            {"penstock.admin.listener": "10.0.0.1:9644", "penstock.admin.security.protocol": "SSL"},
            ["penstock.admin.listener"],
        ),
        (
            {
                "penstock.admin.listener": "10.0.0.1:9644",
                "penstock.admin.security.protocol": "SSL",
                "penstock.admin.username": "scraper",
                "penstock.admin.password": "x",
            },
            [],
        ),
        (
            {
                "penstock.admin.listener": "10.0.0.1:9644",
                "penstock.admin.security.protocol": "SSL",
                "listener.name.admin.ssl.client.auth": "required",
            },
            [],
        ),
        ({"penstock.admin.listener": "[::1]:9644"}, []),
        ({"penstock.admin.listener": ""}, []),
        ({"super.users": "User:a; User:ANONYMOUS"}, ["super.users"]),
        ({"allow.everyone.if.no.acl.found": "TRUE"}, ["allow.everyone.if.no.acl.found"]),
        ({"authorizer.class.name": "", "super.users": "User:ANONYMOUS"}, ["authorizer.class.name"]),
    ],
)
def test_what_is_weak_is_named(given: dict[str, str], names: list[str]) -> None:
    assert weak(**given) == names


def test_logins_that_do_not_leave_the_machine_are_not_read_on_the_way() -> None:
    loopback = listeners("127.0.0.1", Ports(9092, 9094, 9093))
    protocols = "CLIENTS:SASL_PLAINTEXT,REPLICATION:SSL,CONTROLLER:SSL"
    given = {"listeners": loopback, "advertised.listeners": loopback, "listener.security.protocol.map": protocols}
    assert weak(**given) == []


def test_a_plain_node_is_open_and_says_so_itself() -> None:
    settings = BrokerSettings.load(
        {
            "node.id": "1",
            "process.roles": "broker,controller",
            "listeners": "PLAINTEXT://0.0.0.0:9092,CONTROLLER://0.0.0.0:9093",
            "advertised.listeners": "PLAINTEXT://a.example:9092,CONTROLLER://a.example:9093",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": "a.example:9093",
            "log.dirs": "/data",
        }
    )
    assert weak_settings(settings) == []
