"""Listeners with TLS: who gets in, as whom, and what the log says of those who do not."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from penstock.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from penstock.server.doors import Context
from penstock.server.reception.listener import BadListeners, Listeners
from penstock.server.reception.strangers import STRANGERS_PER_HOST_MAX, Strangers
from penstock.server.reception.tls_door import TlsDoor
from penstock.transport.tls.stream import HANDSHAKE_TIMEOUT_S
from tests.patience import until
from tests.unit.server.served import PROPERTIES, Client, World, on_loop, serving, settings_with
from tests.unit.transport.tls.world import authority, authority_text, chain_text, key_text, leaf, write_private

V = 4
LISTENERS = {
    "listeners": "SSL://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
    "listener_security_protocol_map": "SSL:SSL,CONTROLLER:PLAINTEXT",
    "security_inter_broker_protocol": "SSL",
}


def server_leaf(name: str = "broker") -> Any:
    return authority().issue_cert("127.0.0.1", "localhost", common_name=name, organization_unit_name="nodes")


def secured(tmp_path: Path, **changes: str) -> dict[str, str]:
    stored = server_leaf()
    store = write_private(tmp_path / "node.pem", key_text(stored) + chain_text(stored))
    return {
        **LISTENERS,
        "ssl_keystore_location": store,
        "ssl_truststore_certificates": authority_text(),
        **changes,
    }


def client_tls(certificate: Any = None, trusting: str = "authority") -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=authority_text(trusting))
    if certificate is not None:
        certificate.configure_cert(context)
    return context


def echo(_ctx: Context, request: HeartbeatRequest) -> HeartbeatResponse:
    return HeartbeatResponse(throttle_time_ms=request.generation_id)


async def who_asks(world: World, tls: ssl.SSLContext, seen: list[Context]) -> str:
    client = await world.client(tls=tls)
    await client.ask(HeartbeatRequest(), V)
    await client.frame()
    return str(seen[-1].principal)


def door(world: World) -> TlsDoor:
    entrance = next(iter(world.listeners)).entrance
    assert entrance is not None
    assert entrance.tls is not None
    return entrance.tls


@on_loop
async def test_requests_are_served_over_tls(tmp_path: Path) -> None:
    async with serving({"Heartbeat": echo}, **secured(tmp_path)) as world:
        client = await world.client(tls=client_tls())
        for n in range(50):
            await client.ask(HeartbeatRequest(generation_id=n, group_id="g" * 30_000), V, correlation_id=n)
            assert await client.reply(HeartbeatRequest(), V) == (n, HeartbeatResponse(throttle_time_ms=n))
        assert (door(world).handshakes, world.strangers.count) == (1, 0)


@pytest.mark.parametrize(
    ("rules", "user"),
    [("DEFAULT", "User:CN=alice,OU=alices,O=trustme v"), ("RULE:^CN=([^,]+),.*$/$1/U,DEFAULT", "User:ALICE")],
)
@on_loop
async def test_a_client_is_who_its_certificate_says(tmp_path: Path, rules: str, user: str) -> None:
    seen: list[Context] = []

    def keep(ctx: Context, _request: HeartbeatRequest) -> HeartbeatResponse:
        seen.append(ctx)
        return HeartbeatResponse()

    asks = secured(tmp_path, ssl_client_auth="requested", ssl_principal_mapping_rules=rules)
    async with serving({"Heartbeat": keep}, **asks) as world:
        alice = authority().issue_cert("alice", common_name="alice", organization_unit_name="alices")
        assert (await who_asks(world, client_tls(alice), seen)).startswith(user)
        assert await who_asks(world, client_tls(), seen) == "User:ANONYMOUS"


@on_loop
async def test_a_name_that_no_rule_knows_is_closed_and_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    asks = secured(tmp_path, ssl_client_auth="required", ssl_principal_mapping_rules="RULE:^CN=bob$/bob/")
    async with serving({"Heartbeat": echo}, **asks) as world:
        client = await world.stranger(tls=client_tls(leaf("alice", common_name="alice")))
        assert await client.hung_up()
    assert "no rule of ssl.principal.mapping.rules applies to 'CN=alice" in caplog.text


@on_loop
async def test_a_client_without_the_certificate_that_is_required_is_told_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving({"Heartbeat": echo}, **secured(tmp_path, ssl_client_auth="required")) as world:
        client = await world.stranger(tls=client_tls())
        await client.ask(HeartbeatRequest(), V)
        with pytest.raises((ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)):
            await client.frame()
        await until(lambda: "the client showed no certificate" in caplog.text)
        assert [kind.value for kind in door(world).failures] == ["no-certificate"]


@on_loop
async def test_a_plaintext_client_is_named_and_closed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with serving({"Heartbeat": echo}, **secured(tmp_path)) as world:
        client = await world.stranger()
        await client.ask(HeartbeatRequest(), V)
        assert await client.hung_up()
        await until(lambda: world.strangers.count == 0)
    assert "127.0.0.1 on SSL is closed: this looks like a plaintext client on a TLS listener" in caplog.text


@on_loop
async def test_a_tls_client_of_a_plaintext_listener_is_named_and_closed(caplog: pytest.LogCaptureFixture) -> None:
    async with serving({"Heartbeat": echo}) as world:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await world.stranger(tls=client_tls())
    assert "this looks like a TLS handshake on a plaintext listener" in caplog.text


@on_loop
async def test_strangers_have_places_of_their_own_and_take_none_of_those_who_stand(tmp_path: Path) -> None:
    async with serving({"Heartbeat": echo}, **secured(tmp_path, max_connections="2")) as world:
        for _ in range(5):
            await world.stranger()  # says nothing
        await until(lambda: world.strangers.count == 5)
        for _ in range(2):
            client = await world.client(tls=client_tls())
            await client.ask(HeartbeatRequest(), V)
            await client.frame()
        world.clients[0].reset()
        await until(lambda: world.strangers.count == 4)


@on_loop
async def test_too_many_strangers_are_turned_away(tmp_path: Path) -> None:
    async with serving({"Heartbeat": echo}, **secured(tmp_path)) as world:
        door(world)._strangers = few = Strangers(most=9, most_per_host=1)
        await world.stranger()
        await until(lambda: few.count == 1)
        assert await (await world.stranger()).hung_up()
        assert few.refused == 1


@on_loop
async def test_who_was_accepted_in_the_turn_in_which_the_listener_closed_is_cut(tmp_path: Path) -> None:
    async with serving({"Heartbeat": echo}, **secured(tmp_path)) as world:
        entrance = next(iter(world.listeners)).entrance
        assert entrance is not None
        entrance.close()
        # The socket still listens, so this one is told of after the end of all that were known.
        client = await world.stranger()
        async with asyncio.timeout(HANDSHAKE_TIMEOUT_S / 2):
            assert await client.hung_up()
        assert world.strangers.count == 0


@on_loop
async def test_who_crowds_the_door_of_clients_keeps_no_node_from_the_others(tmp_path: Path) -> None:
    asks = secured(
        tmp_path,
        listeners="CLIENTS://127.0.0.1:0,NODES://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
        listener_security_protocol_map="CLIENTS:SSL,NODES:SSL,CONTROLLER:PLAINTEXT",
        inter_broker_listener_name="NODES",
    )
    del asks["security_inter_broker_protocol"]
    async with serving({"Heartbeat": echo}, **asks) as world:
        ports = {listener.info.name: listener.info.port for listener in world.listeners}
        assert world.port == ports["CLIENTS"]
        for _ in range(STRANGERS_PER_HOST_MAX):
            await world.stranger()
        assert await (await world.stranger()).hung_up()
        node = Client(*await asyncio.open_connection("127.0.0.1", ports["NODES"], ssl=client_tls()))
        world.clients.append(node)
        await node.ask(HeartbeatRequest(generation_id=3), V)
        assert (await node.reply(HeartbeatRequest(), V))[1].throttle_time_ms == 3


async def served_certificate(world: World) -> bytes | None:
    client = await world.stranger(tls=client_tls())
    shown: ssl.SSLObject = client.writer.get_extra_info("ssl_object")
    return shown.getpeercert(binary_form=True)


@on_loop
async def test_a_renewed_certificate_is_shown_to_new_connections_and_another_subject_is_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    asks = secured(tmp_path)
    path = Path(asks["ssl_keystore_location"])
    async with serving({"Heartbeat": echo}, **asks) as world:
        standing = await world.client(tls=client_tls())
        first = await served_certificate(world)
        renewed = server_leaf()
        stranger = server_leaf("somebody else")
        write_private(path, key_text(stranger) + chain_text(stranger))
        await door(world).look()
        assert "goes on with the certificate it has: the new certificate has another subject" in caplog.text
        assert await served_certificate(world) == first
        write_private(path, key_text(renewed) + chain_text(renewed))
        await door(world).look()
        assert await served_certificate(world) != first
        path.write_text("no certificate")
        await door(world).look()
        assert await served_certificate(world) != first
        await standing.ask(HeartbeatRequest(), V)
        await standing.frame()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"ssl_keystore_location": "/nowhere/node.pem"}, "/nowhere/node.pem"),
        ({"ssl_truststore_certificates": "nonsense"}, "no certificate to trust"),
        ({"ssl_principal_mapping_rules": "BAD"}, "Invalid rule"),
        ({"ssl_enabled_protocols": "TLSv1"}, "TLSv1"),
    ],
)
def test_what_cannot_be_served_is_refused_before_anything_is_bound(
    tmp_path: Path, changes: dict[str, str], words: str
) -> None:
    with pytest.raises(BadListeners, match=f"listener SSL://.*{words}"):
        Listeners(settings_with(**{**secured(tmp_path), **changes}))


def test_a_node_without_tls_loads_none() -> None:
    script = (
        f"PLAIN = {PROPERTIES!r}"
        + """
import sys
import penstock.server.node, penstock.server.parts.broker
from penstock.model.config import BrokerSettings
from penstock.server.reception.listener import Listeners
Listeners(BrokerSettings.load(PLAIN))
heavy = ("cryptography", "penstock.transport.tls.stream", "penstock.security.sasl_server")
print([name for name in heavy if name in sys.modules])
"""
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
