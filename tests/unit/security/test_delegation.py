"""Rules of delegation tokens that are not the controller's."""

from __future__ import annotations

from typing import NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.security import ANONYMOUS, Principal
from penstock.protocol.disk.metadata_security import DelegationTokenRecord
from penstock.security.delegation import TokenIndex, TokenSettings, has_expired, is_visible, may_ask, token_hmac

SECRET = b"s"
ALICE, BOB, CAROL, DAN = (Principal("User", name) for name in ("alice", "bob", "carol", "dan"))
TOKEN = DelegationTokenRecord(owner="User:alice", requester="User:bob", renewers=["User:carol"], token_id="t")


@given(st.lists(st.sets(st.sampled_from("abcdef")), max_size=8))
def test_a_token_is_found_by_its_hmac_as_long_as_it_is_there(steps: list[set[str]]) -> None:
    index = TokenIndex(SECRET)
    for ids in steps:
        tokens = {each: DelegationTokenRecord(token_id=each) for each in sorted(ids)}
        for each in "abcdef":
            assert index.find(tokens, token_hmac(SECRET, each)) is tokens.get(each)
        assert index.find(tokens, b"") is None


def test_cve_2021_38153_an_hmac_is_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []
    monkeypatch.setattr(
        "penstock.security.delegation.hmac.compare_digest", lambda one, other: compared.append((one, other)) or True
    )
    mac = token_hmac(SECRET, "t")
    assert TokenIndex(SECRET).find({"t": TOKEN}, mac) is TOKEN
    assert compared == [(mac, mac)]


def test_cve_2026_33558_no_secret_shows_in_a_repr() -> None:
    index = TokenIndex(b"hidden")
    index.find({"t": TOKEN}, b"")
    assert "hidden" not in repr(TokenSettings(b"hidden")) + repr(index)
    assert token_hmac(b"hidden", "t").hex() not in repr(index)


def test_tokens_are_for_users_who_are_known_and_not_by_a_token() -> None:
    assert may_ask("SASL_SSL", ALICE, by_token=False)
    assert may_ask("SASL_PLAINTEXT", ALICE, by_token=False)
    assert may_ask("SSL", ALICE, by_token=False)
    assert not may_ask("SSL", ANONYMOUS, by_token=False)
    assert not may_ask("PLAINTEXT", ANONYMOUS, by_token=False)
    assert not may_ask("SASL_SSL", ALICE, by_token=True)


def test_a_token_is_visible_to_those_who_have_to_do_with_it_and_to_whom_acls_say() -> None:
    for who in (ALICE, BOB, CAROL):
        assert is_visible(TOKEN, who, None, may_describe=False)
    assert not is_visible(TOKEN, DAN, None, may_describe=False)
    assert is_visible(TOKEN, DAN, None, may_describe=True)
    assert is_visible(TOKEN, DAN, {str(CAROL)}, may_describe=True)
    assert not is_visible(TOKEN, ALICE, {str(DAN)}, may_describe=True)
    assert not is_visible(TOKEN, ALICE, frozenset(), may_describe=True)


def test_owners_that_a_request_names_are_not_gone_through_for_every_token() -> None:
    """300 tokens, which anybody may make, and 200,000 owners were 60 million comparisons on the one loop."""

    class Named(frozenset[str]):
        def __iter__(self) -> NoReturn:
            raise AssertionError("they are looked up")

    assert is_visible(TOKEN, ALICE, Named({"User:bob", "User:dan"}), may_describe=False)
    assert not is_visible(TOKEN, ALICE, Named({"User:dan"}), may_describe=True)


def test_a_token_is_over_after_the_earlier_of_its_ends() -> None:
    token = DelegationTokenRecord(max_timestamp=20, expiration_timestamp=10)
    assert [has_expired(token, now_ms) for now_ms in (10, 11)] == [False, True]
