"""Delegation tokens: made, renewed, told and ended by those who may; numbers are those of Apache Kafka 4.3."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from penstock.model.errors import (
    DELEGATION_TOKEN_AUTH_DISABLED,
    DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    DELEGATION_TOKEN_EXPIRED,
    DELEGATION_TOKEN_NOT_FOUND,
    DELEGATION_TOKEN_OWNER_MISMATCH,
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
)
from penstock.protocol.messages.create_delegation_token import CreateDelegationTokenRequest
from penstock.protocol.messages.describe_delegation_token import DescribeDelegationTokenRequest
from penstock.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from penstock.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from penstock.security.delegation import token_hmac
from penstock.server.controller.driver import ControllerTimes
from penstock.server.doors import ANONYMOUS, ByToken, ListenerInfo, Operation, Principal, ResourceType
from penstock.server.handlers import (
    create_delegation_token,
    describe_delegation_token,
    expire_delegation_token,
    renew_delegation_token,
)
from penstock.server.reception.authorize import Asked, Recording
from tests.walks.control_plane import ControlPlane, walk

ALICE, BOB, CAROL = (Principal("User", name) for name in ("alice", "bob", "carol"))
SECRET = "the same on all nodes"
PROPERTIES = {"delegation.token.secret.key": SECRET}
DAY_MS = 86_400_000
LOGGED_IN = ListenerInfo("CLIENTS", "127.0.0.1", 9092, "SASL_SSL")


async def create(plane: ControlPlane, who: Principal = ALICE, *, version: int = 3, **said: Any) -> Any:
    nobody = {"owner_principal_type": None, "owner_principal_name": None} if version >= 3 else {}
    given = {**nobody, "max_lifetime_ms": -1, **said}
    renewers = [
        CreateDelegationTokenRequest.CreatableRenewers(principal_type=kind, principal_name=name)
        for kind, name in given.pop("renewers", ())
    ]
    request = CreateDelegationTokenRequest(renewers=renewers, **given)
    return await plane.ask(create_delegation_token, request, version, principal=who, listener=LOGGED_IN)


async def renew(plane: ControlPlane, hmac: bytes, who: Principal, period_ms: int = -1) -> Any:
    request = RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms)
    return await plane.ask(renew_delegation_token, request, 2, principal=who, listener=LOGGED_IN)


async def expire(plane: ControlPlane, hmac: bytes, who: Principal, period_ms: int = -1) -> Any:
    request = ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms)
    return await plane.ask(expire_delegation_token, request, 2, principal=who, listener=LOGGED_IN)


async def shown(plane: ControlPlane, who: Principal, *owners: Principal, every: bool = True) -> list[str]:
    made = DescribeDelegationTokenRequest.DescribeDelegationTokenOwner
    wanted = None if every else [made(principal_type=kind, principal_name=name) for kind, name in owners]
    request = DescribeDelegationTokenRequest(owners=wanted)
    reply = await plane.ask(describe_delegation_token, request, 3, principal=who, listener=LOGGED_IN)
    assert reply.error_code == 0
    return [token.principal_name for token in reply.tokens]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_token_is_its_askers_and_its_hmac_is_in_no_record(version: int) -> None:
    async def steps(plane: ControlPlane) -> None:
        reply = await create(plane, version=version)
        now = plane.clock.now_ms()
        assert (reply.error_code, reply.principal_name) == (0, "alice")
        times = (reply.issue_timestamp_ms, reply.expiry_timestamp_ms, reply.max_timestamp_ms)
        assert times == (now, now + DAY_MS, now + 7 * DAY_MS)
        assert reply.hmac == token_hmac(SECRET.encode(), reply.token_id)
        (kept,) = plane.image.tokens.values()
        assert (kept.owner, kept.requester, kept.token_id) == ("User:alice", "User:alice", reply.token_id)
        assert reply.hmac.hex() not in repr(kept)

    walk(steps, properties=PROPERTIES)


def test_owners_and_renewers_give_it_time_and_end_it() -> None:
    async def steps(plane: ControlPlane) -> None:
        hmac = (await create(plane, renewers=[BOB])).hmac
        plane.clock.advance(DAY_MS / 2)
        now = plane.clock.now_ms()
        renewed = await renew(plane, hmac, BOB)
        assert (renewed.error_code, renewed.expiry_timestamp_ms) == (0, now + DAY_MS)
        assert (await renew(plane, hmac, CAROL)).error_code == DELEGATION_TOKEN_OWNER_MISMATCH.code
        assert (await renew(plane, b"nobody's", ALICE)).error_code == DELEGATION_TOKEN_NOT_FOUND.code
        assert (await expire(plane, hmac, CAROL)).error_code == DELEGATION_TOKEN_OWNER_MISMATCH.code
        plane.clock.advance(2 * DAY_MS)
        assert (await renew(plane, hmac, ALICE)).error_code == DELEGATION_TOKEN_EXPIRED.code
        assert (await expire(plane, hmac, ALICE)).error_code == 0
        assert plane.image.tokens == {}

    walk(steps, properties=PROPERTIES)


def test_a_token_for_another_owner_takes_a_right_to_that_user() -> None:
    no = Recording(Asked(Operation.CREATE_TOKENS, ResourceType.USER, "User:bob"))

    async def steps(plane: ControlPlane) -> None:
        said = {"owner_principal_type": "User", "owner_principal_name": "bob"}
        refused = await create(plane, ALICE, **said)
        assert (refused.error_code, refused.hmac) == (DELEGATION_TOKEN_AUTHORIZATION_FAILED.code, b"")
        assert (await create(plane, BOB, **said)).error_code == 0
        plane.authorizer = Recording()
        allowed = await create(plane, ALICE, **said)
        told = (allowed.error_code, allowed.principal_name, allowed.token_requester_principal_name)
        assert told == (0, "bob", "alice")

    walk(steps, properties=PROPERTIES, authorizer=no)


def test_tokens_are_told_to_those_who_have_to_do_with_them() -> None:
    class OnlyCarolsTokens(Recording):
        def allows(self, principal: Principal, _host: str, operation: Operation, *resource: Any) -> bool:
            return principal == CAROL and operation == Operation.DESCRIBE_TOKENS and resource[1] == "User:bob"

    async def steps(plane: ControlPlane) -> None:
        await create(plane, ALICE, renewers=[BOB])
        await create(plane, BOB)
        plane.authorizer = OnlyCarolsTokens()
        assert await shown(plane, ALICE) == ["alice"]
        assert await shown(plane, BOB) == ["alice", "bob"]
        assert await shown(plane, CAROL) == ["bob"]
        assert await shown(plane, BOB, ALICE, every=False) == ["alice"]
        assert await shown(plane, BOB, every=False) == []
        assert plane.authorizer.offences == []

    walk(steps, properties=PROPERTIES)


NOT_PROVED = [
    pytest.param({"principal": ALICE}, id="in the plain"),
    pytest.param(
        {"principal": ANONYMOUS, "listener": LOGGED_IN._replace(security_protocol="SSL")}, id="no certificate"
    ),
]


@pytest.mark.parametrize("client", NOT_PROVED)
def test_who_has_not_proved_a_name_gets_no_token(client: dict[str, Any]) -> None:
    async def steps(plane: ControlPlane) -> None:
        for handler, request in (
            (create_delegation_token, CreateDelegationTokenRequest()),
            (renew_delegation_token, RenewDelegationTokenRequest(hmac=b"x")),
            (expire_delegation_token, ExpireDelegationTokenRequest(hmac=b"x")),
            (describe_delegation_token, DescribeDelegationTokenRequest(owners=None)),
        ):
            reply = await plane.ask(handler, request, 2, **client)
            assert reply.error_code == DELEGATION_TOKEN_REQUEST_NOT_ALLOWED.code
            if handler is not describe_delegation_token:
                assert reply.expiry_timestamp_ms == -1

    walk(steps, properties=PROPERTIES)


def test_a_token_begets_no_token_also_through_a_controller() -> None:
    async def steps(plane: ControlPlane) -> None:
        for listener in (LOGGED_IN, LOGGED_IN._replace(for_controllers=True)):
            ctx = ByToken(plane.services(), 38, 2, principal=ALICE, listener=listener)
            reply = await create_delegation_token.handle(ctx, CreateDelegationTokenRequest())
            assert reply.error_code == DELEGATION_TOKEN_REQUEST_NOT_ALLOWED.code

    walk(steps, properties=PROPERTIES)


def test_without_a_secret_there_are_no_tokens() -> None:
    async def steps(plane: ControlPlane) -> None:
        disabled = DELEGATION_TOKEN_AUTH_DISABLED.code
        assert (await create(plane)).error_code == disabled
        assert (await renew(plane, b"x", ALICE)).error_code == disabled
        request = DescribeDelegationTokenRequest(owners=None)
        reply = await plane.ask(describe_delegation_token, request, 3, principal=ALICE, listener=LOGGED_IN)
        assert reply.error_code == disabled

    walk(steps)


def test_tokens_that_are_over_are_swept() -> None:
    async def steps(plane: ControlPlane) -> None:
        plane.controller._times = ControllerTimes(0, 0, 0, token_sweep_ms=3_600_000)
        await create(plane)
        plane.clock.advance(2 * DAY_MS)
        plane.controller._tick()
        while plane.image.tokens:
            await asyncio.sleep(0)

    walk(steps, properties=PROPERTIES)
