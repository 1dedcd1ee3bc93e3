"""Logins by delegation tokens: SCRAM with the token's id and HMAC, over real sockets."""

from __future__ import annotations

import base64
import time
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.metadata.delta import Delta
from penstock.metadata.image import ClusterImage
from penstock.model.secret import Secret
from penstock.protocol.disk.metadata_security import DelegationTokenRecord
from penstock.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from penstock.security.delegation import token_hmac
from penstock.security.scram.client import ScramClient
from penstock.security.scram.keys import BY_NAME, SHA_256, SHA_512
from penstock.server.doors import Context
from penstock.server.reception import token_logins
from penstock.server.reception.gate import State
from penstock.server.reception.token_logins import TokenLogins
from tests.patience import until
from tests.unit.server.reception import test_logins
from tests.unit.server.reception.test_logins import V, asking, beat, log_in
from tests.unit.server.served import Client, on_loop

SECRET = "the same on all nodes"
DAY_MS = 86_400_000


def now_ms() -> int:
    return int(time.time() * 1_000)


def token(token_id: str = "token-1", *, owner: str = "User:alice", lasts_ms: int = DAY_MS) -> DelegationTokenRecord:
    return DelegationTokenRecord(
        owner=owner,
        requester="User:carol",
        renewers=[],
        issue_timestamp=now_ms(),
        max_timestamp=now_ms() + 7 * DAY_MS,
        expiration_timestamp=now_ms() + lasts_ms,
        token_id=token_id,
    )


class Lent:
    """The tokens of an image."""

    def __init__(self, *tokens: DelegationTokenRecord) -> None:
        self.image = ClusterImage()
        for each in tokens:
            self.put(each)

    def put(self, record: DelegationTokenRecord) -> Delta:
        self.image.tokens[record.token_id] = record
        return Delta(tokens={record.token_id})

    def drop(self, token_id: str) -> Delta:
        del self.image.tokens[token_id]
        return Delta(tokens={token_id})


class Noted:
    """A handler that keeps whom it served, and whether by a token."""

    def __init__(self) -> None:
        self.served: list[tuple[str, bool, bool]] = []

    def __call__(self, ctx: Context, _request: HeartbeatRequest) -> HeartbeatResponse:
        self.served.append((str(ctx.principal), ctx.by_token, ctx.asking(19, 7).by_token))
        return HeartbeatResponse()


def lending(lent: Any, noted: Noted | None = None, **changes: str) -> Any:
    return asking(lent, noted or Noted(), **{"delegation_token_secret_key": SECRET, **changes})


def password_of(token_id: str, secret: str = SECRET) -> str:
    return base64.b64encode(token_hmac(secret.encode(), token_id)).decode()


async def show_token(client: Client, token_id: str, password: str, mechanism: str = "SCRAM-SHA-256") -> Any:
    """Logs in with `tokenauth=true`; the last reply."""

    def exchange_of(mechanism: str, name: str, password: str) -> ScramClient:
        return ScramClient(BY_NAME[mechanism], name, Secret(password), "a-nonce-of-the-client", token=True)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(test_logins, "exchange_of", exchange_of)
        return await log_in(client, mechanism, token_id, password)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
@on_loop
async def test_whoever_shows_a_token_is_its_owner_and_known_by_it(mechanism: str) -> None:
    noted = Noted()
    async with lending(Lent(token()), noted) as world:
        client = await world.stranger()
        reply = await show_token(client, "token-1", password_of("token-1"), mechanism)
        assert (reply.error_code, 0 < reply.session_lifetime_ms <= DAY_MS) == (0, True)
        await beat(client)
        assert noted.served == [("User:alice", True, True)]


@pytest.mark.parametrize(
    ("known", "password"),
    [
        (token(), "guess"),
        (token("token-2"), password_of("token-1")),
        (token(lasts_ms=-1), password_of("token-1")),
        (token(), password_of("token-1", "another secret")),
        (token(owner="Group:alice"), password_of("token-1")),
    ],
    ids=["wrong", "unknown", "expired", "another secret", "no user"],
)
@on_loop
async def test_a_token_that_is_not_good_is_refused_like_a_wrong_password(
    known: DelegationTokenRecord, password: str
) -> None:
    async with lending(Lent(known)) as world:
        client = await world.stranger()
        assert (await show_token(client, "token-1", password)).error_code == 58
        assert await client.hung_up()


@on_loop
async def test_without_a_secret_no_token_logs_in() -> None:
    async with asking(Lent(token()), Noted()) as world:  # type: ignore[arg-type]
        assert (await show_token(await world.stranger(), "token-1", password_of("token-1"))).error_code == 58


@on_loop
async def test_a_token_id_is_no_user_name() -> None:
    async with lending(Lent(token())) as world:
        assert (await log_in(await world.stranger(), "SCRAM-SHA-256", "token-1", password_of("token-1"))).error_code


@on_loop
async def test_keys_are_derived_on_a_thread_at_the_first_login_alone() -> None:
    async with lending(Lent(token())) as world:
        offload, derived = world.reception.offload, []

        async def counted(work: Any, *args: Any) -> Any:
            derived.append(work)
            return await offload.call(work, *args)

        world.reception.offload = SimpleNamespace(call=counted)
        for _ in range(3):
            assert (await show_token(await world.stranger(), "token-1", password_of("token-1"))).error_code == 0
        assert len(derived) == 1
        await show_token(await world.stranger(), "token-1", password_of("token-1"), "SCRAM-SHA-512")
        assert len(derived) == 2
        world.reception.offload = offload


def test_only_so_many_keys_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_logins, "KEPT_MAX", 2)
    tokens = TokenLogins(b"secret")

    def kept(token_id: str) -> bytes | None:
        login = tokens.login(SHA_256, token(token_id))
        assert login is not None
        return login.salted

    tokens.keep(SHA_256, "a", b"A")
    tokens.keep(SHA_256, "b", b"B")
    assert kept("a") == b"A"
    tokens.keep(SHA_512, "c", b"C")
    assert (kept("a"), kept("b"), kept("c")) == (b"A", None, None)
    assert "secret" not in repr(tokens)


@on_loop
async def test_a_session_ends_with_its_token_and_goes_on_when_that_was_renewed() -> None:
    lent = Lent(token(lasts_ms=1_200))
    async with lending(lent) as world:
        client, lazy = await world.stranger(), await world.stranger()
        for each in (client, lazy):
            assert (await show_token(each, "token-1", password_of("token-1"))).session_lifetime_ms <= 1_200
        states = lambda: [each.state for each in world.reception.connections]  # noqa: E731
        await until(lambda: states() == [State.SESSION_OVER] * 2)
        await lazy.ask(HeartbeatRequest(), V)
        assert await lazy.hung_up()
        world.reception.follow(lent.image, lent.put(token()))
        assert (await show_token(client, "token-1", password_of("token-1"))).error_code == 0
        await beat(client)


@on_loop
async def test_who_removes_or_shortens_a_token_cuts_its_connections() -> None:
    names = ("removed", "shortened", "renewed", "other")
    lent = Lent(*map(token, names))
    async with lending(lent) as world:
        clients = {}
        for name in names:
            clients[name] = await world.stranger()
            await show_token(clients[name], name, password_of(name))
        world.reception.follow(lent.image, lent.drop("removed"))
        world.reception.follow(lent.image, lent.put(token("shortened", lasts_ms=60_000)))
        world.reception.follow(lent.image, lent.put(token("renewed", lasts_ms=2 * DAY_MS)))
        assert await clients["removed"].hung_up()
        assert await clients["shortened"].hung_up()
        await beat(clients["renewed"])
        await beat(clients["other"])
        assert (await show_token(await world.stranger(), "removed", password_of("removed"))).error_code == 58
