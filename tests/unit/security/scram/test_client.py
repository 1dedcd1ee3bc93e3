"""A client of SCRAM trusts no server."""

from __future__ import annotations

import base64

import pytest

from penstock.security.exchange import Derive, Rejected
from penstock.security.scram.client import CLIENT_ITERATIONS_MAX
from penstock.security.scram.keys import SHA_256
from tests.unit.security.scram.exchanges import NOW, Known, client, heard, server


def challenged(text: str) -> object:
    said = client(SHA_256, "alice", "secret", "abc")
    said.start()
    return said.heard(text.encode())


@pytest.mark.parametrize("iterations", [0, 1, 4_095, CLIENT_ITERATIONS_MAX + 1, 9_999_999_999])
def test_cve_2026_10143_a_server_cannot_ask_for_any_number_of_rounds(iterations: int) -> None:
    step = challenged(f"r=abcdef,s=c2FsdA==,i={iterations}")
    assert isinstance(step, Rejected)
    assert "rounds" in step.why


def test_rounds_that_do_not_fit_a_number_are_no_message() -> None:
    assert isinstance(challenged(f"r=abcdef,s=c2FsdA==,i={'9' * 5_000}"), Rejected)


@pytest.mark.parametrize("iterations", [4_096, CLIENT_ITERATIONS_MAX])
def test_bearable_rounds_are_handed_out_not_done(iterations: int) -> None:
    assert challenged(f"r=abcdef,s=c2FsdA==,i={iterations}") == Derive("sha256", b"secret", b"salt", iterations)


@pytest.mark.parametrize("nonce", ["abc", "ab", "xabc", "ABCdef"])
def test_a_nonce_must_continue_ours(nonce: str) -> None:
    assert challenged(f"r={nonce},s=c2FsdA==,i=4096") == Rejected(
        "the server's nonce does not continue ours", name="alice"
    )


@pytest.mark.parametrize(
    "final",
    [
        b"v=" + base64.b64encode(bytes(32)),
        b"v=",
        b"v=" + base64.b64encode(bytes(64)),
        b"e=invalid-proof",
        b"",
        b"v",
        b"r=abc",
    ],
)
def test_without_the_right_signature_a_server_has_proved_nothing(final: bytes) -> None:
    known = Known()
    known.add(SHA_256, "alice", "secret")
    said, there = client(SHA_256, "alice", "secret"), server(SHA_256, known)
    work = said.heard(heard(there.heard(heard(said.start()), NOW)))
    assert isinstance(work, Derive)
    said.worked(work.run())
    assert isinstance(said.heard(final), Rejected)


def test_a_server_cannot_conclude_before_the_proof() -> None:
    said = client(SHA_256, "alice", "secret", "abc")
    assert isinstance(said.heard(b"r=abcdef,s=c2FsdA==,i=4096"), Derive)
    assert isinstance(said.heard(b"v=" + base64.b64encode(bytes(32))), Rejected)


def test_a_challenge_is_signed_as_it_came() -> None:
    """A server may add extensions; what it signs has them."""
    said = client(SHA_256, "alice", "secret", "abc")
    plain = client(SHA_256, "alice", "secret", "abc")
    for each, text in ((said, b"r=abcdef,s=c2FsdA==,i=4096,x=1"), (plain, b"r=abcdef,s=c2FsdA==,i=4096")):
        each.heard(text)
    assert heard(said.worked(bytes(32))) != heard(plain.worked(bytes(32)))
