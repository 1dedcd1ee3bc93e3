"""Delegation tokens: made, renewed, ended, swept."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.controller import tokens
from penstock.controller.tokens import (
    NAMES_CHARACTERS_MAX,
    TokenAsker,
    decide_create,
    decide_expire,
    decide_renew,
    decide_sweep,
)
from penstock.model.errors import (
    DELEGATION_TOKEN_AUTH_DISABLED,
    DELEGATION_TOKEN_EXPIRED,
    DELEGATION_TOKEN_NOT_FOUND,
    DELEGATION_TOKEN_OWNER_MISMATCH,
    INVALID_PRINCIPAL_TYPE,
    INVALID_REQUEST,
    POLICY_VIOLATION,
    UNSUPPORTED_VERSION,
)
from penstock.model.security import Principal
from penstock.protocol.disk.metadata_security import DelegationTokenRecord
from penstock.protocol.messages.create_delegation_token import CreateDelegationTokenRequest
from penstock.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from penstock.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from penstock.security.delegation import TokenIndex, TokenSettings, token_hmac
from tests.unit.controller.security_desk import SecurityDesk

SECRET = b"the same on all nodes"
ALICE, BOB, CAROL = (Principal("User", name) for name in ("alice", "bob", "carol"))
NOW_MS = 1_700_000_000_000
DAY_MS = 86_400_000


class Tokens(SecurityDesk):
    """A desk with a clock for tokens."""

    def __init__(self, level: int = 30) -> None:
        super().__init__(level)
        self.now_ms = NOW_MS
        self._index = TokenIndex(SECRET)

    def asker(self, who: Principal, secret: bytes | None = SECRET) -> TokenAsker:
        return TokenAsker(who, self.now_ms, TokenSettings(secret), None if secret is None else self._index)

    def create(self, who: Principal = ALICE, *, secret: bytes | None = SECRET, **said: Any) -> Any:
        request = CreateDelegationTokenRequest(**{"owner_principal_name": None, **said})
        return self.do(decide_create(self.world, request, self.asker(who, secret)))

    def renew(self, hmac: bytes, who: Principal = ALICE, period_ms: int = -1) -> Any:
        request = RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms)
        return self.do(decide_renew(self.world, request, self.asker(who)))

    def expire(self, hmac: bytes, who: Principal = ALICE, period_ms: int = -1) -> Any:
        request = ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms)
        return self.do(decide_expire(self.world, request, self.asker(who)))


def renewers(*principals: Principal) -> list[CreateDelegationTokenRequest.CreatableRenewers]:
    made = CreateDelegationTokenRequest.CreatableRenewers
    return [made(principal_type=kind, principal_name=name) for kind, name in principals]


def test_a_token_is_told_with_its_hmac_and_kept_without() -> None:
    desk = Tokens()
    reply = desk.create(renewers=renewers(BOB))
    assert reply.error_code == 0
    assert reply.hmac == token_hmac(SECRET, reply.token_id)
    assert desk.image.tokens == {
        reply.token_id: DelegationTokenRecord(
            owner="User:alice",
            requester="User:alice",
            renewers=["User:bob"],
            issue_timestamp=NOW_MS,
            max_timestamp=NOW_MS + 7 * DAY_MS,
            expiration_timestamp=NOW_MS + DAY_MS,
            token_id=reply.token_id,
        )
    }


def test_a_token_for_somebody_else_is_theirs() -> None:
    desk = Tokens()
    reply = desk.create(owner_principal_type="User", owner_principal_name="bob")
    assert (reply.principal_name, reply.token_requester_principal_name) == ("bob", "alice")
    assert desk.renew(reply.hmac, BOB).error_code == 0
    assert desk.renew(reply.hmac, ALICE).error_code == DELEGATION_TOKEN_OWNER_MISMATCH.code


def test_a_short_life_is_kept_and_a_long_one_is_cut() -> None:
    desk = Tokens()
    short, endless = desk.create(max_lifetime_ms=1_000), desk.create(max_lifetime_ms=1 << 62)
    assert (short.max_timestamp_ms, short.expiry_timestamp_ms) == (NOW_MS + 1_000, NOW_MS + 1_000)
    assert endless.max_timestamp_ms == NOW_MS + 7 * DAY_MS


@pytest.mark.parametrize(
    ("desk", "said", "error"),
    [
        (Tokens(), {"secret": None}, DELEGATION_TOKEN_AUTH_DISABLED),
        (Tokens(level=13), {}, UNSUPPORTED_VERSION),
        (Tokens(), {"renewers": renewers(Principal("Group", "g"))}, INVALID_PRINCIPAL_TYPE),
    ],
)
def test_no_token_is_made_where_none_can_be(desk: Tokens, said: dict[str, Any], error: Any) -> None:
    reply = desk.create(**said)
    assert (reply.error_code, reply.hmac, desk.image.tokens) == (error.code, b"", {})


def test_owner_and_renewers_may_renew_up_to_the_longest_life() -> None:
    desk = Tokens()
    made = desk.create(renewers=renewers(BOB), max_lifetime_ms=2 * DAY_MS)
    desk.now_ms += DAY_MS // 2
    assert desk.renew(made.hmac, BOB, 1_000).expiry_timestamp_ms == desk.now_ms + 1_000
    assert desk.renew(made.hmac).expiry_timestamp_ms == desk.now_ms + DAY_MS
    desk.now_ms = NOW_MS + DAY_MS + 1_000
    assert desk.renew(made.hmac).expiry_timestamp_ms == made.max_timestamp_ms
    assert desk.renew(made.hmac, CAROL).error_code == DELEGATION_TOKEN_OWNER_MISMATCH.code
    assert desk.renew(b"guess").error_code == DELEGATION_TOKEN_NOT_FOUND.code
    desk.now_ms = made.max_timestamp_ms + 1
    assert desk.renew(made.hmac).error_code == DELEGATION_TOKEN_EXPIRED.code


def test_a_token_ends_when_it_is_told_to() -> None:
    desk = Tokens()
    made = desk.create()
    assert desk.expire(made.hmac, BOB).error_code == DELEGATION_TOKEN_OWNER_MISMATCH.code
    assert desk.expire(made.hmac, period_ms=5_000).expiry_timestamp_ms == NOW_MS + 5_000
    desk.now_ms += 6_000
    assert desk.expire(made.hmac, period_ms=5_000).error_code == DELEGATION_TOKEN_EXPIRED.code
    assert desk.expire(made.hmac).error_code == 0, "also one that is over can be removed"
    assert desk.image.tokens == {}
    assert desk.expire(made.hmac).error_code == DELEGATION_TOKEN_NOT_FOUND.code


def test_tokens_that_are_over_are_swept_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "SWEPT_MAX", 3)
    desk = Tokens()
    for _ in range(5):
        desk.create(max_lifetime_ms=1_000)
    kept = desk.create()
    assert decide_sweep(desk.world, NOW_MS + 1_000).records == []
    swept = []
    while (decision := decide_sweep(desk.world, NOW_MS + 1_001)).records:
        swept.append(len(decision.records))
        desk.do(decision)
    assert swept == [3, 2]
    assert list(desk.image.tokens) == [kept.token_id]


def test_a_token_does_not_grow_by_the_names_of_its_renewers() -> None:
    """A record of 90 MB, which any user could have made, cost the leader of the quorum its lead."""
    desk = Tokens()
    for many in (renewers(Principal("User", "x" * NAMES_CHARACTERS_MAX)), renewers(BOB) * (NAMES_CHARACTERS_MAX // 3)):
        assert desk.create(renewers=many).error_code == INVALID_REQUEST.code
    assert desk.image.tokens == {}
    assert desk.create(renewers=renewers(Principal("User", "x" * 10_000))).error_code == 0


def test_a_user_makes_so_many_tokens_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "TOKENS_MAX", 3)
    desk = Tokens()
    made = [desk.create() for _ in range(4)]
    assert [reply.error_code for reply in made] == [0, 0, 0, POLICY_VIOLATION.code]
    # For somebody else too: it is counted who makes them, and nobody loses a place by what others make for them.
    for_bob = {"owner_principal_type": "User", "owner_principal_name": "bob"}
    assert desk.create(**for_bob).error_code == POLICY_VIOLATION.code
    assert desk.create(BOB).error_code == 0
    desk.expire(made[0].hmac)
    assert desk.create().error_code == 0
