"""What a node shows to others: the certificate and login of the listener that it dials."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from penstock.model.config import BrokerSettings
from penstock.model.errors import PenstockError
from penstock.model.secret import Secret
from penstock.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from penstock.server.dialling import towards_brokers, towards_controllers
from penstock.server.live_settings import LiveSettings
from penstock.server.loops.ports import SystemClock, ThreadOffload
from penstock.server.peers import Address, NetPeers
from penstock.transport.bearer import BearerCredentials, TokenEndpoint
from penstock.transport.dial import LoginFailed, Untrusted
from penstock.transport.dial_security import DialSecurity
from penstock.transport.login import PasswordCredentials
from penstock.transport.net import AsyncioNet
from penstock.transport.web import Address as WebAddress
from tests.unit.transport.pairs import on_loop
from tests.unit.transport.secured_peer import PASSWORD, Peer, listening
from tests.unit.transport.tls.world import (
    authority_text,
    chain_text,
    key_text,
    leaf,
    server_context,
    trusting,
    write_private,
)

NODE = {
    "node.id": "1",
    "process.roles": "broker,controller",
    "controller.quorum.voters": "1@127.0.0.1:9093",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "INTERNAL",
    "listeners": "INTERNAL://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
    "log.dirs": "/nowhere",
}

SCRAM = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="{}" password="{}";'
PLAIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="{}" password="{}";'


def node(internal: str, controller: str, **given: str) -> BrokerSettings:
    protocols = f"INTERNAL:{internal},CONTROLLER:{controller}"
    named = {name.replace("_", "."): value for name, value in given.items()}
    return BrokerSettings.load({**NODE, "listener.security.protocol.map": protocols, **named})


def store(tmp_path: Path, name: str, by: str = "authority") -> dict[str, str]:
    mine = leaf("127.0.0.1", common_name=name, by=by)
    return {
        "ssl_keystore_location": write_private(tmp_path / f"{name}.pem", chain_text(mine) + key_text(mine)),
        "ssl_keystore_type": "PEM",
        "ssl_truststore_location": write_private(tmp_path / f"{name}-ca.pem", authority_text(by)),
        "ssl_truststore_type": "PEM",
    }


def of_listener(listener: str, given: dict[str, str]) -> dict[str, str]:
    return {f"listener_name_{listener}_{name}": value for name, value in given.items()}


async def asked(security: DialSecurity | None, peer: Peer) -> object:
    peers = NetPeers(AsyncioNet(asyncio.get_running_loop()), SystemClock(), client_id="me", security=security)
    try:
        where = Address("127.0.0.1", peer.port)
        return await peers.ask(where, HeartbeatRequest(), 4, purpose="test", timeout_ms=5_000)
    finally:
        peers.close()


def test_plaintext_listeners_are_dialled_with_nothing() -> None:
    settings = node("PLAINTEXT", "PLAINTEXT")
    assert towards_brokers(settings, ThreadOffload()) is None
    assert towards_controllers(settings, ThreadOffload()) is None


def test_each_listener_is_dialled_with_its_own_certificate(tmp_path: Path) -> None:
    settings = node(
        "SSL",
        "SSL",
        **of_listener("internal", store(tmp_path, "between-brokers", by="brokers")),
        **of_listener("controller", store(tmp_path, "to-controllers", by="controllers")),
    )
    brokers = towards_brokers(settings, ThreadOffload())
    controllers = towards_controllers(settings, ThreadOffload())

    @on_loop
    async def test() -> None:
        wanting = server_context(leaf("127.0.0.1", by="brokers"), client_auth="required", **trusting("brokers"))
        async with listening(wanting, login=False) as peer:
            assert await asked(brokers, peer) == HeartbeatResponse()
            with pytest.raises(Untrusted):
                await asked(controllers, peer)

    test()


def test_each_listener_is_dialled_with_its_own_login(tmp_path: Path) -> None:
    settings = node(
        "SASL_PLAINTEXT",
        "SASL_PLAINTEXT",
        sasl_enabled_mechanisms="PLAIN,SCRAM-SHA-512",
        sasl_mechanism_inter_broker_protocol="SCRAM-SHA-512",
        sasl_mechanism_controller_protocol="PLAIN",
        **{
            "listener.name.internal.scram-sha-512.sasl.jaas.config": SCRAM.format("alice", PASSWORD),
            "listener.name.controller.plain.sasl.jaas.config": PLAIN.format("bob", "b"),
        },
    )
    brokers = towards_brokers(settings, ThreadOffload())
    controllers = towards_controllers(settings, ThreadOffload())
    assert brokers is not None
    assert controllers is not None
    assert brokers.credentials == PasswordCredentials("SCRAM-SHA-512", "alice", Secret(PASSWORD))
    assert controllers.credentials == PasswordCredentials("PLAIN", "bob", Secret("b"))

    @on_loop
    async def test() -> None:
        async with listening() as peer:
            assert await asked(brokers, peer) == HeartbeatResponse()

    test()


def test_a_node_that_could_not_dial_the_others_is_told_so_at_its_start(tmp_path: Path) -> None:
    stores = store(tmp_path, "node")
    (tmp_path / "node.pem").unlink()
    with pytest.raises(PenstockError, match=r"listener INTERNAL \(SSL\) cannot be dialled: .*node.pem: no such file"):
        towards_brokers(node("SSL", "PLAINTEXT", **stores), ThreadOffload())
    nobody = node("PLAINTEXT", "SASL_PLAINTEXT", sasl_mechanism_controller_protocol="PLAIN")
    with pytest.raises(PenstockError, match=r"there is no listener\.name\.controller\.plain\.sasl\.jaas\.config"):
        towards_controllers(nobody, ThreadOffload())


def test_what_cannot_mend_itself_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    @on_loop
    async def test() -> None:
        security = DialSecurity(None, PasswordCredentials("PLAIN", "alice", Secret("not this one")))
        net, clock = AsyncioNet(asyncio.get_running_loop()), SystemClock()
        peers = NetPeers(net, clock, client_id="me", security=security)
        async with listening() as peer:
            where = Address("127.0.0.1", peer.port)
            for _ in range(3):
                with pytest.raises(LoginFailed):
                    await peers.ask(where, HeartbeatRequest(), 4, purpose="test", timeout_ms=5_000)
        peers.close()

    with caplog.at_level(logging.WARNING):
        test()
    told = [record.getMessage() for record in caplog.records if record.name == "penstock.peers"]
    assert len(told) == 1
    assert "Invalid username or password" in told[0]
    assert "not this one" not in told[0]


def test_a_store_that_is_set_to_another_place_is_seen_by_the_next_dial(tmp_path: Path) -> None:
    old, new = store(tmp_path, "old", by="others"), store(tmp_path, "new")
    static = node("SSL", "PLAINTEXT", **of_listener("internal", old))
    live = LiveSettings(static)
    security = towards_brokers(live, ThreadOffload())
    moved = static.with_dynamic(
        {},
        {f"listener.name.internal.{name.replace('_', '.')}": value for name, value in new.items()},
    )

    @on_loop
    async def test() -> None:
        wanting = server_context(leaf("127.0.0.1"), client_auth="required", **trusting())
        async with listening(wanting, login=False) as peer:
            with pytest.raises(Untrusted):
                await asked(security, peer)
            live._values = dict(moved)
            assert await asked(security, peer) == HeartbeatResponse()

    test()


TOKENS = {
    "sasl_enabled_mechanisms": "OAUTHBEARER",
    "sasl_mechanism_inter_broker_protocol": "OAUTHBEARER",
    "sasl_oauthbearer_token_endpoint_url": "https://idp.example/token",
    "sasl_oauthbearer_client_credentials_client_id": "node",
    "sasl_oauthbearer_client_credentials_client_secret": "s3cret",
}


def test_nodes_log_in_by_tokens_from_where_their_file_allows() -> None:
    allowed = {"penstock_sasl_oauthbearer_allowed_urls": "https://idp.example/token"}
    brokers = towards_brokers(node("SASL_PLAINTEXT", "PLAINTEXT", **TOKENS, **allowed), ThreadOffload())
    assert brokers is not None
    assert isinstance(brokers.credentials, BearerCredentials)
    address = WebAddress("https", "idp.example", 443, "/token")
    assert brokers.credentials.source == TokenEndpoint(address, "node", Secret("s3cret"))
    with pytest.raises(PenstockError, match=r"is not in penstock\.sasl\.oauthbearer\.allowed\.urls") as raised:
        towards_brokers(node("SASL_PLAINTEXT", "PLAINTEXT", **TOKENS), ThreadOffload())
    assert "s3cret" not in str(raised.value)
