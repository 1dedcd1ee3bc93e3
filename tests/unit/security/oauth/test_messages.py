"""The SASL texts of OAUTHBEARER."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.ids import Millis
from penstock.model.secret import Secret
from penstock.security.exchange import Accepted, CheckToken, Finished, Identity, Rejected, Token
from penstock.security.oauth.messages import (
    INVALID_TOKEN,
    BadToken,
    ClientFirst,
    GoodToken,
    Malformed,
    OAuthClient,
    OAuthServer,
    check_extensions,
    parse_client_first,
)

NOW = Millis(0)
GOOD = GoodToken("alice", Millis(1_000))


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"n,,\x01auth=Bearer abc\x01\x01", ClientFirst("abc")),
        (b"n,a=al=2Ce,\x01auth=bEARER  a.b-_~+/c==\x01\x01", ClientFirst("a.b-_~+/c==", "al,e")),
        (
            b"n,,\x01x=1\x01auth=Bearer abc\x01yY=a b\t\r\n\x01\x01",
            ClientFirst("abc", "", {"x": "1", "yY": "a b\t\r\n"}),
        ),
        (b"n,,\x01auth=Bearer a\x01auth=Bearer b\x01\x01", ClientFirst("b")),
    ],
)
def test_first_messages_are_read_as_kafka_reads_them(data: bytes, found: ClientFirst) -> None:
    assert parse_client_first(data) == found


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x01",
        b"n,,\x01\x01",
        b"y,,\x01auth=Bearer abc\x01\x01",
        b"n,,\x01auth=Bearer abc\x01",
        b"n,,\x01auth=Bearer\x01\x01",
        b"n,,\x01auth=Basic abc\x01\x01",
        b"n,,\x01auth=Bearer a b\x01\x01",
        b"n,,\x01x1=a\x01auth=Bearer abc\x01\x01",
        b"n,,\x01x=\x01auth=Bearer abc\x01\x01",
        "n,,\x01x=é\x01auth=Bearer abc\x01\x01".encode(),
        b"n,,\x01auth=Bearer abc\x01\x01\x01",
    ],
)
def test_what_is_no_first_message_is_rejected(data: bytes) -> None:
    assert isinstance(OAuthServer().heard(data, NOW), Rejected)


def test_a_good_token_logs_in() -> None:
    server = OAuthServer()
    assert server.heard(ClientFirst("abc", "alice", {"pool": "p"}).data, NOW) == CheckToken("abc")
    assert server.worked(GOOD, NOW) == Accepted(b"", Identity("alice", Millis(1_000), extensions={"pool": "p"}))


def test_what_a_refused_stranger_sent_is_not_kept() -> None:
    """It may fill a frame, and the stranger has seconds to answer."""
    server = OAuthServer()
    sent = ClientFirst("x" * 400_000).data
    tracemalloc.start()
    try:
        assert isinstance(server.heard(sent, NOW), CheckToken)
        assert isinstance(server.worked(BadToken("too long"), NOW), Token)
        assert tracemalloc.get_traced_memory()[0] < 100_000
    finally:
        tracemalloc.stop()


def test_an_authorization_id_must_be_the_tokens_name() -> None:
    server = OAuthServer()
    server.heard(ClientFirst("abc", "bob").data, NOW)
    rejected = server.worked(GOOD, NOW)
    assert isinstance(rejected, Rejected)
    assert rejected.told is not None
    assert "authorization id (bob)" in rejected.told


@pytest.mark.parametrize("answer", [b"\x01", b"", b"x", ClientFirst("good").data])
def test_after_a_refusal_nothing_helps(answer: bytes) -> None:
    server = OAuthServer()
    server.heard(ClientFirst("abc").data, NOW)
    assert server.worked(BadToken("expired"), NOW) == Token(INVALID_TOKEN.encode())
    assert server.heard(answer, NOW) == Rejected("expired", INVALID_TOKEN)


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (b'{"status":"invalid_token"}', "invalid_token"),
        (b"\xff", "no reason"),
        (b"[]", "no reason"),
        (b'{"status":5}', "no"),
    ],
)
def test_a_client_answers_a_refusal_and_then_gives_up(said: bytes, shown: str) -> None:
    client = OAuthClient(Secret("abc"))
    client.start()
    assert client.heard(said) == Token(b"\x01")
    rejected = client.heard(b"")
    assert isinstance(rejected, Rejected)
    assert shown in rejected.why


def test_a_client_is_done_when_the_server_has_nothing_to_add() -> None:
    assert OAuthClient(Secret("abc")).heard(b"") == Finished()


@pytest.mark.parametrize("extensions", [{"auth": "x"}, {"a1": "x"}, {"": "x"}, {"a": ""}, {"a": "é"}, {"a": "\x01"}])
def test_extensions_that_cannot_be_sent_are_refused(extensions: dict[str, str]) -> None:
    with pytest.raises(Malformed):
        check_extensions(extensions)
    with pytest.raises(Malformed):
        OAuthClient(Secret("abc"), extensions=extensions)


@given(
    st.from_regex(r"[A-Za-z0-9._~+/-]{1,20}={0,2}", fullmatch=True),
    st.dictionaries(
        st.from_regex(r"[A-Za-z]{1,5}", fullmatch=True).filter(lambda key: key != "auth"),
        st.from_regex(r"[!-~ \t\r\n]{1,8}", fullmatch=True),
        max_size=3,
    ),
    st.from_regex(r"[ -~]{0,8}", fullmatch=True),
)
def test_what_a_client_writes_a_server_reads(token: str, extensions: dict[str, str], authzid: str) -> None:
    first = ClientFirst(token, authzid, extensions)
    assert parse_client_first(first.data) == first


@given(st.binary(max_size=60))
def test_no_bytes_break_a_server(data: bytes) -> None:
    assert isinstance(OAuthServer().heard(data, NOW), (Rejected, CheckToken))
