"""Logins of clients: raw frames over real sockets, mechanisms of our own client's side."""

from __future__ import annotations

import asyncio
import struct
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.metadata.delta import Delta
from penstock.metadata.image import ClusterImage
from penstock.model.secret import Secret
from penstock.protocol.disk.metadata_security import UserScramCredentialRecord
from penstock.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from penstock.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from penstock.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from penstock.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from penstock.security.exchange import Accepted, Derive, Finished, Identity, Token
from penstock.security.plain import PlainClient
from penstock.security.sasl_server import Limits, Mechanisms
from penstock.security.scram.client import ScramClient
from penstock.security.scram.keys import BY_NAME, credential_of
from penstock.server.doors import Context, Services
from penstock.server.handlers import sasl_authenticate, sasl_handshake
from penstock.server.metrics.page import connection_samples
from penstock.server.reception.gate import State
from penstock.server.reception.listener import BadListeners, Listeners
from penstock.server.reception.logins import Logins
from tests.patience import until
from tests.unit.server.reception.test_tls_listeners import client_tls, secured
from tests.unit.server.served import Client, World, framed, on_loop, serving, settings_with

V = 4
PLAIN_JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="node" password="n" user_alice="wonder" user_bob="builder";'
)
LISTENERS = {
    "listeners": "CLIENTS://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
    "listener_security_protocol_map": "CLIENTS:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter_broker_listener_name": "CLIENTS",
    "sasl_enabled_mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "sasl_mechanism_inter_broker_protocol": "PLAIN",
    "listener_name_clients_plain_sasl_jaas_config": PLAIN_JAAS,
}


class People:
    """The SCRAM users of an image."""

    def __init__(self) -> None:
        self.image = ClusterImage()

    def put(self, name: str, password: str) -> Delta:
        changed = set()
        for mechanism in BY_NAME.values():
            salt = b"salt of " + name.encode()
            salted = mechanism.derive(password, salt, 4096).run()
            credential = credential_of(mechanism, salted, salt, 4096)
            self.image.scram[mechanism.type, name] = UserScramCredentialRecord(
                name=name,
                mechanism=mechanism.type,
                salt=salt,
                stored_key=credential.stored_key,
                server_key=credential.server_key,
                iterations=4096,
            )
            changed.add((mechanism.type, name))
        return Delta(scram=changed)

    def drop(self, name: str) -> Delta:
        changed = {key for key in self.image.scram if key[1] == name}
        for key in changed:
            del self.image.scram[key]
        return Delta(scram=changed)


class Asked:
    """A handler that keeps whom it served."""

    def __init__(self) -> None:
        self.principals: list[str] = []

    def __call__(self, ctx: Context, _request: HeartbeatRequest) -> HeartbeatResponse:
        self.principals.append(str(ctx.principal))
        return HeartbeatResponse()


def asking(people: People | None = None, asked: Any = None, **changes: str) -> Any:
    def change(node: Services) -> None:
        node.metadata = SimpleNamespace(image=(people or People()).image)  # type: ignore[assignment]

    handlers = {
        "ApiVersions": lambda _ctx, _request: ApiVersionsResponse(),
        "Heartbeat": asked or Asked(),
        "SaslHandshake": sasl_handshake.handle,
        "SaslAuthenticate": sasl_authenticate.handle,
    }
    return serving(handlers, change=change, **{**LISTENERS, **changes})


def logins_of(world: World) -> Logins:
    entrance = next(iter(world.listeners)).entrance
    assert entrance is not None
    assert entrance.logins is not None
    return entrance.logins


def exchange_of(mechanism: str, name: str, password: str) -> Any:
    if mechanism == "PLAIN":
        return PlainClient(name, Secret(password))
    return ScramClient(BY_NAME[mechanism], name, Secret(password), "a-nonce-of-the-client")


async def shake_hands(client: Client, mechanism: str, version: int = 1) -> SaslHandshakeResponse:
    await client.ask(SaslHandshakeRequest(mechanism=mechanism), version)
    reply: SaslHandshakeResponse = (await client.reply(SaslHandshakeRequest(), version))[1]
    return reply


async def log_in(client: Client, mechanism: str, name: str, password: str) -> SaslAuthenticateResponse:
    """The last reply: good, or the first with an error."""
    assert (await shake_hands(client, mechanism)).error_code == 0
    exchange = exchange_of(mechanism, name, password)
    step = exchange.start()
    while True:
        if isinstance(step, Derive):
            step = exchange.worked(step.run())
        assert isinstance(step, Token)
        await client.ask(SaslAuthenticateRequest(auth_bytes=step.data), 2)
        reply: SaslAuthenticateResponse = (await client.reply(SaslAuthenticateRequest(), 2))[1]
        if reply.error_code:
            return reply
        step = exchange.heard(reply.auth_bytes)
        while isinstance(step, Derive):
            step = exchange.worked(step.run())
        if isinstance(step, Finished):
            return reply


async def beat(client: Client) -> None:
    await client.ask(HeartbeatRequest(), V)
    assert (await client.reply(HeartbeatRequest(), V))[1] == HeartbeatResponse()


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
@on_loop
async def test_a_client_logs_in_and_is_served_as_who_it_is(mechanism: str) -> None:
    people, asked = People(), Asked()
    people.put("alice", "wonder")
    async with asking(people, asked) as world:
        client = await world.stranger()
        await client.ask(ApiVersionsRequest(), 3)
        await client.frame()
        assert (await log_in(client, mechanism, "alice", "wonder")).error_code == 0
        await beat(client)
        assert asked.principals == ["User:alice"]
        assert world.connection.state is State.AUTHENTICATED
        assert world.connection.frame_bytes_max == world.reception.frame_bytes_max
        assert logins_of(world).succeeded[mechanism] == 1
        assert world.strangers.count == 0
        assert world.dispatch.metrics[36].total.count == (1 if mechanism == "PLAIN" else 2)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("name", ["alice", "nobody"])
@on_loop
async def test_a_wrong_password_is_told_after_a_while_and_closes(
    mechanism: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    people = People()
    people.put("alice", "wonder")
    async with asking(people, connection_failed_authentication_delay_ms="150") as world:
        client = await world.stranger()
        began = time.monotonic()
        reply = await log_in(client, mechanism, name, "guess")
        assert time.monotonic() - began >= 0.15
        assert reply.error_code == 58
        assert await client.hung_up()
        assert logins_of(world).failed[mechanism] == 1
    assert f"the login of '{name}' from 127.0.0.1" in caplog.text
    assert "guess" not in caplog.text


@on_loop
async def test_metrics_tell_of_logins() -> None:
    async with asking() as world:
        await log_in(await world.stranger(), "PLAIN", "alice", "wonder")
        await log_in(await world.stranger(), "PLAIN", "alice", "guess")
        samples = list(connection_samples(world.listeners, world.reception))
        assert {
            (each.name.rpartition("metrics_")[2], each.labels.get("mechanism"), each.value)
            for each in samples
            if each.name.endswith("authentication_total") and each.value
        } == {("successful_authentication_total", "PLAIN", 1), ("failed_authentication_total", "PLAIN", 1)}
        assert sum(each.name.endswith("authentication_total") for each in samples) == 3 + 4 + 2


@on_loop
async def test_tokens_without_headers_follow_the_old_handshake() -> None:
    asked = Asked()
    async with asking(None, asked) as world:
        client = await world.stranger()
        assert (await shake_hands(client, "PLAIN", version=0)).error_code == 0
        await client.send(framed(b"\0alice\0wonder"))
        assert await client.frame() == b""
        await beat(client)
        assert asked.principals == ["User:alice"]
        other = await world.stranger()
        await shake_hands(other, "PLAIN", version=0)
        await other.send(framed(b"\0alice\0guess"))
        assert await other.hung_up()


@on_loop
async def test_a_mechanism_that_is_not_enabled_is_refused_with_those_that_are() -> None:
    async with asking() as world:
        client = await world.stranger()
        reply = await shake_hands(client, "GSSAPI")
        assert reply == SaslHandshakeResponse(error_code=33, mechanisms=["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
        assert await client.hung_up()


@on_loop
async def test_nothing_is_served_before_the_login(caplog: pytest.LogCaptureFixture) -> None:
    asked = Asked()
    async with asking(None, asked) as world:
        before = await world.stranger()
        await before.ask(HeartbeatRequest(), V)
        assert await before.hung_up()
        within_login = await world.stranger()
        await shake_hands(within_login, "PLAIN")
        await within_login.ask(HeartbeatRequest(), V)
        assert (await within_login.reply(HeartbeatRequest(), V))[1].error_code == 34
        assert await within_login.hung_up()
        assert asked.principals == []
        await until(lambda: world.strangers.count == 0)
    assert "before the SASL handshake" in caplog.text


@on_loop
async def test_a_stranger_may_not_announce_more_than_it_needs(caplog: pytest.LogCaptureFixture) -> None:
    async with asking(sasl_server_max_receive_size="1000") as world:
        client = await world.stranger()
        await client.send(struct.pack(">i", 1001))
        assert await client.hung_up()
    assert "sasl.server.max.receive.size allows 1000" in caplog.text


@on_loop
async def test_whoever_does_not_log_in_in_time_is_closed(caplog: pytest.LogCaptureFixture) -> None:
    async with asking() as world:
        logins_of(world).limits = Limits(login_ms_max=50)
        assert await (await world.stranger()).hung_up()
        await until(lambda: world.strangers.count == 0)
    assert "no login within 0.05 s" in caplog.text


@on_loop
async def test_strangers_take_no_place_of_those_who_are_known() -> None:
    asked = Asked()
    async with asking(None, asked, max_connections="1") as world:
        for _ in range(3):
            await world.stranger()
        await until(lambda: world.strangers.count == 3)
        first, second = await world.stranger(), await world.stranger()
        await log_in(first, "PLAIN", "alice", "wonder")
        await log_in(second, "PLAIN", "bob", "builder")
        await beat(first)
        await second.ask(HeartbeatRequest(), V)
        await until(lambda: len(world.reception._queue) == 1)
        first.reset()
        await second.frame()
        assert asked.principals == ["User:alice", "User:bob"]


@on_loop
async def test_a_session_ends_and_can_be_renewed() -> None:
    async with asking(connections_max_reauth_ms="1500") as world:
        client, lazy = await world.stranger(), await world.stranger()
        assert (await log_in(lazy, "PLAIN", "bob", "builder")).session_lifetime_ms == 1500
        assert (await log_in(client, "PLAIN", "alice", "wonder")).session_lifetime_ms == 1500
        await beat(client)
        states = lambda: [each.state for each in world.reception.connections]  # noqa: E731
        assert (await log_in(client, "PLAIN", "alice", "wonder")).error_code == 0
        assert logins_of(world).renewed == 1
        await until(lambda: State.SESSION_OVER in states())
        await lazy.ask(HeartbeatRequest(), V)
        assert await lazy.hung_up()
        assert logins_of(world).expired == 1
        await until(lambda: states() == [State.SESSION_OVER])
        assert (await log_in(client, "PLAIN", "alice", "wonder")).error_code == 0
        await beat(client)


@on_loop
async def test_a_login_cannot_be_renewed_as_somebody_else() -> None:
    async with asking(connections_max_reauth_ms="60000") as world:
        client = await world.stranger()
        await log_in(client, "PLAIN", "alice", "wonder")
        reply = await log_in(client, "PLAIN", "bob", "builder")
        assert (reply.error_code, "Cannot change principals" in (reply.error_message or "")) == (58, True)
        assert await client.hung_up()
        assert logins_of(world).not_renewed == 1


@on_loop
async def test_who_has_logged_in_for_good_is_refused_another_login_and_stays() -> None:
    async with asking() as world:
        client = await world.stranger()
        await log_in(client, "PLAIN", "alice", "wonder")
        assert (await shake_hands(client, "PLAIN")).error_code == 34
        await client.ask(SaslAuthenticateRequest(), 2)
        assert (await client.reply(SaslAuthenticateRequest(), 2))[1].error_code == 34
        await beat(client)


@on_loop
async def test_where_nobody_logs_in_the_requests_for_it_are_answered() -> None:
    handlers = {"SaslHandshake": sasl_handshake.handle, "SaslAuthenticate": sasl_authenticate.handle}
    async with serving(handlers) as world:
        client = await world.client()
        assert (await shake_hands(client, "PLAIN")).error_code == 34
        await client.ask(SaslAuthenticateRequest(), 2)
        assert (await client.reply(SaslAuthenticateRequest(), 2))[1].error_code == 34
        assert (await shake_hands(client, "PLAIN")).error_code == 34


@on_loop
async def test_who_changes_a_password_or_deletes_a_user_cuts_their_connections() -> None:
    people = People()
    for name in ("alice", "bob", "carol"):
        people.put(name, "wonder")
    async with asking(people) as world:
        clients = {}
        for name in ("alice", "bob", "carol"):
            clients[name] = await world.stranger()
            await log_in(clients[name], "SCRAM-SHA-256", name, "wonder")
        world.reception.follow(people.image, people.put("alice", "another"))
        world.reception.follow(people.image, people.drop("bob"))
        assert await clients["alice"].hung_up()
        assert await clients["bob"].hung_up()
        await beat(clients["carol"])
        again = await world.stranger()
        assert (await log_in(again, "SCRAM-SHA-256", "alice", "wonder")).error_code == 58


class Held:
    """A handler whose replies wait for a word."""

    def __init__(self) -> None:
        self.held: list[asyncio.Future[HeartbeatResponse]] = []

    def __call__(self, _ctx: Context, _request: HeartbeatRequest) -> asyncio.Future[HeartbeatResponse]:
        self.held.append(asyncio.get_running_loop().create_future())
        return self.held[-1]


@on_loop
async def test_what_is_under_way_when_a_password_changes_is_answered_and_nothing_after_it() -> None:
    people, held = People(), Held()
    people.put("alice", "wonder")
    async with asking(people, held) as world:
        client = await world.stranger()
        await log_in(client, "SCRAM-SHA-256", "alice", "wonder")
        await client.ask(HeartbeatRequest(), V)
        await until(lambda: bool(held.held))
        await client.ask(HeartbeatRequest(), V)
        world.reception.follow(people.image, people.put("alice", "another"))
        held.held[0].set_result(HeartbeatResponse(throttle_time_ms=7))
        assert (await client.reply(HeartbeatRequest(), V))[1].throttle_time_ms == 7
        assert await client.hung_up()
        assert len(held.held) == 1


@on_loop
async def test_who_waits_for_longer_than_a_second_is_cut_all_the_same() -> None:
    people, held = People(), Held()
    people.put("alice", "wonder")
    async with asking(people, held) as world:
        client = await world.stranger()
        await log_in(client, "SCRAM-SHA-256", "alice", "wonder")
        await client.ask(HeartbeatRequest(), V)
        await until(lambda: bool(held.held))
        world.reception.follow(people.image, people.drop("alice"))
        assert await client.hung_up()
        assert held.held[0].cancelled()


@on_loop
async def test_a_login_that_began_with_the_old_password_does_not_outlive_it() -> None:
    people = People()
    people.put("alice", "wonder")
    async with asking(people) as world:
        client = await world.stranger()
        await shake_hands(client, "SCRAM-SHA-256")
        exchange = exchange_of("SCRAM-SHA-256", "alice", "wonder")
        await client.ask(SaslAuthenticateRequest(auth_bytes=exchange.start().data), 2)
        challenge = (await client.reply(SaslAuthenticateRequest(), 2))[1]
        world.reception.follow(people.image, people.drop("alice"))
        proof = exchange.worked(exchange.heard(challenge.auth_bytes).run())
        await client.ask(SaslAuthenticateRequest(auth_bytes=proof.data), 2)
        assert await client.hung_up()


@on_loop
async def test_users_that_are_taken_out_of_the_settings_are_cut() -> None:
    async with asking() as world:
        alice, bob = await world.stranger(), await world.stranger()
        await log_in(alice, "PLAIN", "alice", "wonder")
        await log_in(bob, "PLAIN", "bob", "builder")
        left = {**LISTENERS, "listener_name_clients_plain_sasl_jaas_config": PLAIN_JAAS.replace("user_bob", "user_eve")}
        world.reception.node.settings = settings_with(**left)
        world.listeners.settings_changed(for_controllers=False)
        assert await bob.hung_up()
        await beat(alice)


class Slow:
    """A mechanism that hands out work, as logins by delegation tokens do."""

    def heard(self, _token: bytes, _wall_ms: int) -> Derive:
        return Derive("sha256", b"p", b"s", 2)

    def worked(self, result: object, _wall_ms: int) -> Accepted:
        assert isinstance(result, bytes)
        return Accepted(b"", Identity("alice"))


@on_loop
async def test_work_is_done_on_a_thread_and_what_comes_meanwhile_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked()
    monkeypatch.setattr(Logins, "mechanisms", lambda *_: Mechanisms({"PLAIN": Slow}, {}))
    async with asking(None, asked) as world:
        client = await world.stranger()
        await shake_hands(client, "PLAIN")
        begin: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        offload = world.reception.offload
        assert offload is not None

        async def held(work: Any, *args: Any) -> Any:
            await begin
            return await offload.call(work, *args)

        world.reception.offload = SimpleNamespace(call=held)  # type: ignore[assignment]
        await client.ask(SaslAuthenticateRequest(auth_bytes=b"x"), 2)
        await client.ask(HeartbeatRequest(), V)
        await until(lambda: any(each.in_flight for each in world.reception._greeted))  # type: ignore[attr-defined]
        assert asked.principals == []
        begin.set_result(None)
        await client.frame()
        await client.reply(HeartbeatRequest(), V)
        assert asked.principals == ["User:alice"]
        world.reception.offload = offload


@on_loop
async def test_work_that_fails_costs_its_connection_and_not_the_node(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(Logins, "mechanisms", lambda *_: Mechanisms({"PLAIN": Slow}, {}))
    told: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: told.append(context))

    async def failing(*_args: Any) -> Any:
        raise ZeroDivisionError("nobody foresaw this")

    async with asking() as world:
        client = await world.stranger()
        await shake_hands(client, "PLAIN")
        offload, world.reception.offload = world.reception.offload, SimpleNamespace(call=failing)  # type: ignore[assignment]
        await client.ask(SaslAuthenticateRequest(auth_bytes=b"x"), 2)
        assert await client.hung_up()
        world.reception.offload = offload
    assert told == []
    assert "cannot be judged" in caplog.text


@on_loop
async def test_logins_within_tls(tmp_path: Path) -> None:
    asked = Asked()
    changes = secured(tmp_path)
    changes.pop("security_inter_broker_protocol")
    changes |= {
        "listeners": LISTENERS["listeners"],
        "listener_security_protocol_map": "CLIENTS:SASL_SSL,CONTROLLER:PLAINTEXT",
    }
    async with asking(None, asked, **changes) as world:
        client = await world.stranger(tls=client_tls())
        await log_in(client, "PLAIN", "alice", "wonder")
        await beat(client)
        assert asked.principals == ["User:alice"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sasl_enabled_mechanisms": "PLAIN,GSSAPI"}, "sasl.enabled.mechanisms has GSSAPI; PLAIN, SCRAM-SHA-256"),
        (
            {"listener_security_protocol_map": "CLIENTS:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT"},
            "sasl.mechanism.controller.protocol is GSSAPI",
        ),
        ({"listener_name_clients_plain_sasl_jaas_config": "secret"}, "listener.name.clients.plain.sasl.jaas.config: "),
    ],
)
def test_what_cannot_be_served_is_refused_before_anything_is_bound(changes: dict[str, str], words: str) -> None:
    with pytest.raises(BadListeners, match=words) as refused:
        Listeners(settings_with(**{**LISTENERS, **changes}))
    assert "secret" not in str(refused.value)


def test_without_its_users_plain_is_refused() -> None:
    given = {name: value for name, value in LISTENERS.items() if "jaas" not in name}
    with pytest.raises(BadListeners, match=r"clients\.plain\.sasl\.jaas\.config is not given"):
        Listeners(settings_with(**given))
