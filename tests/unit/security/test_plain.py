"""PLAIN, in Kafka's words."""

from __future__ import annotations

import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.ids import Millis
from penstock.model.secret import Secret
from penstock.security import plain
from penstock.security.exchange import Accepted, Finished, Identity, Rejected, Token
from penstock.security.plain import PlainClient, PlainServer, PlainUsers

NOW = Millis(0)
USERS = PlainUsers({"alice": Secret("secret"), "ünï": Secret("pässwörd"), "empty": Secret("")})


def told(token: bytes) -> str | None:
    step = PlainServer(USERS).heard(token, NOW)
    assert isinstance(step, Rejected)
    return step.told


@pytest.mark.parametrize("token", [b"\0alice\0secret", b"alice\0alice\0secret", "\0ünï\0pässwörd".encode()])
def test_name_and_password_get_in(token: bytes) -> None:
    step = PlainServer(USERS).heard(token, NOW)
    assert step == Accepted(b"", Identity(token.decode().split("\0")[1]))


@pytest.mark.parametrize(
    ("token", "words"),
    [
        (b"\0alice\0wrong", "Authentication failed: Invalid username or password"),
        (b"\0nobody\0secret", "Authentication failed: Invalid username or password"),
        (b"\0empty\0x", "Authentication failed: Invalid username or password"),
        (b"\0alice\0secret\xff", "Authentication failed: Invalid username or password"),
        (b"\0\0secret", "Authentication failed: username not specified"),
        (b"\0alice\0", "Authentication failed: password not specified"),
        (b"\0empty\0", "Authentication failed: password not specified"),
        (b"bob\0alice\0wrong", "Authentication failed: Invalid username or password"),
        (
            b"bob\0alice\0secret",
            "Authentication failed: Client requested an authorization id that is different from username",
        ),
        (b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (b"alice\0secret", "Invalid SASL/PLAIN response: expected 3 tokens, got 2"),
        (b"\0alice\0secret\0", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"\0" * 50, "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
    ],
)
def test_what_a_refused_client_is_told(token: bytes, words: str) -> None:
    assert told(token) == words


def test_cve_2021_38153_passwords_are_compared_in_constant_time_and_length(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []
    real = hmac.compare_digest
    monkeypatch.setattr(
        plain.hmac, "compare_digest", lambda left, right: compared.append((len(left), len(right))) or real(left, right)
    )
    for name in ("alice", "nobody", "ünï"):
        assert not USERS.accepts(name, "x" * 1_000)
    assert compared == [(32, 32)] * 3


def test_a_table_of_users_keeps_no_password() -> None:
    assert not any("secret" in str(value) or b"secret" in value for value in vars(USERS)["_digests"].values())


@given(
    name=st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1),
    password=st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1),
)
def test_a_client_gets_in_with_its_password(name: str, password: str) -> None:
    client = PlainClient(name, Secret(password), authzid=name)
    first = client.start()
    assert isinstance(first, Token)
    assert PlainServer(PlainUsers({name: Secret(password)})).heard(first.data, NOW) == Accepted(b"", Identity(name))
    assert client.heard(b"") == Finished()
    assert password not in repr(first) or password in "Token()"


@given(st.binary(max_size=60))
def test_no_bytes_break_a_server_or_get_in(token: bytes) -> None:
    assert isinstance(PlainServer(PlainUsers({"alice": Secret("a long password")})).heard(token, NOW), Rejected)


def test_a_client_hears_no_challenge_and_sends_no_nul() -> None:
    assert isinstance(PlainClient("a", Secret("b")).heard(b"x"), Rejected)
    for name, password in (("a\0", "b"), ("a", "b\0")):
        with pytest.raises(ValueError, match="NUL"):
            PlainClient(name, Secret(password))
