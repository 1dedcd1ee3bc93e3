"""SCRAM as a whole: vectors, both sides against each other and against another library."""

from __future__ import annotations

import base64

import pytest
import scramp
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.model.secret import Secret
from penstock.security.exchange import Accepted, Derive, Finished, Identity, Rejected, Token
from penstock.security.scram.client import ScramClient
from penstock.security.scram.keys import BY_NAME, SHA_256, SHA_512, Mechanism, credential_of, nonce_of, salt_of
from penstock.security.scram.server import ScramServer
from tests.properties import examples
from tests.unit.security.scram.exchanges import NOW, STRANGERS, Known, client, heard, run, server

BOTH = pytest.mark.parametrize("mechanism", [SHA_256, SHA_512], ids=lambda mechanism: mechanism.name)

# RFC 7677, section 3.
RFC_SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
RFC_SERVER_NONCE = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"


def rfc_server() -> ScramServer:
    known = Known()
    known.add(SHA_256, "user", "pencil", RFC_SALT)
    return server(SHA_256, known, RFC_SERVER_NONCE)


def test_the_exchange_of_rfc_7677() -> None:
    said = ScramClient(SHA_256, "user", Secret("pencil"), "rOprNGfwEbeRWgbNEkqO")
    there = rfc_server()
    first = heard(said.start())
    assert first == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    challenge = heard(there.heard(first, NOW))
    nonce = b"rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    assert challenge == b"r=" + nonce + b",s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    work = said.heard(challenge)
    assert isinstance(work, Derive)
    final = heard(said.worked(work.run()))
    assert final == b"c=biws,r=" + nonce + b",p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    accepted = there.heard(final, NOW)
    assert accepted == Accepted(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=", Identity("user"))
    assert said.heard(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=") == Finished()


@BOTH
@pytest.mark.parametrize("name", ["alice", "a,b=c", "ünï", "=2C", "=3D,", "x" * 2_000])
def test_both_sides_agree_on_any_name(mechanism: Mechanism, name: str) -> None:
    known = Known()
    known.add(mechanism, name, "pässword")
    assert run(client(mechanism, name, "pässword"), server(mechanism, known))[1] == Finished()
    verdict, _ = run(client(mechanism, name, "password"), server(mechanism, known))
    assert verdict == Rejected("wrong password, or no such user", name=name)


@BOTH
def test_a_credential_of_the_other_mechanism_does_not_count(mechanism: Mechanism) -> None:
    known = Known()
    known.add(SHA_512 if mechanism is SHA_256 else SHA_256, "alice", "secret")
    assert isinstance(run(client(mechanism, "alice", "secret"), server(mechanism, known))[0], Rejected)


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=30)


@settings(max_examples=examples(20))
@given(name=NAMES, password=st.text(max_size=20))
def test_who_has_the_password_gets_in_and_nobody_else(name: str, password: str) -> None:
    known = Known()
    known.add(SHA_256, name, password)
    assert run(client(SHA_256, name, password), server(SHA_256, known))[1] == Finished()
    assert isinstance(run(client(SHA_256, name, password + "x"), server(SHA_256, known))[0], Rejected)


@given(token=st.binary(max_size=200), final=st.binary(max_size=200))
def test_no_bytes_break_a_server_or_get_in(token: bytes, final: bytes) -> None:
    known = Known()
    known.users["SCRAM-SHA-256", "alice"] = credential_of(SHA_256, bytes(32), b"salt", 4_096)
    there = server(SHA_256, known)
    step = there.heard(token, NOW)
    assert isinstance(step, (Token, Rejected))
    if isinstance(step, Token):
        assert isinstance(there.heard(final, NOW), Rejected)


_BINDINGS = ["n,", "y,", "p=tls-unique,", "a=alice,", ",", "m=x,"]
_FIRST_PIECES = st.sampled_from(
    [*_BINDINGS, "n=alice", "n=", "r=abc", ",r=abc", ",tokenauth=true", ",x=", "=2C", "=2c", "\0", "é"]
)


@given(st.lists(_FIRST_PIECES, max_size=8).map("".join))
def test_mutated_first_messages_are_answered_or_rejected(text: str) -> None:
    step = server(SHA_256, Known()).heard(text.encode(), NOW)
    assert isinstance(step, (Token, Rejected))


@given(st.data())
def test_a_final_message_with_any_byte_changed_is_rejected(data: st.DataObject) -> None:
    said, there = client(SHA_256, "user", "pencil"), rfc_server()
    work = said.heard(heard(there.heard(heard(said.start()), NOW)))
    assert isinstance(work, Derive)
    final = bytearray(heard(said.worked(_RFC_SALTED)))
    at = data.draw(st.integers(0, len(final) - 1))
    final[at] ^= data.draw(st.integers(1, 255))
    step = there.heard(bytes(final), NOW)
    # The last character of base64 before its padding has bits that mean nothing.
    if at != len(final) - 2:
        assert isinstance(step, Rejected)


_RFC_SALTED = SHA_256.derive("pencil", RFC_SALT, 4_096).run()


@BOTH
@given(random=st.binary(min_size=17, max_size=40))
def test_nonces_and_salts_can_stand_in_messages(mechanism: Mechanism, random: bytes) -> None:
    known = Known()
    known.users[mechanism.name, "user"] = credential_of(mechanism, b"salted", salt_of(random), 4_096)
    said = client(mechanism, "user", "x", nonce_of(random))
    assert isinstance(
        said.heard(heard(server(mechanism, known, nonce_of(random)).heard(heard(said.start()), NOW))), Derive
    )


@BOTH
def test_scramp_logs_in_here(mechanism: Mechanism) -> None:
    """Another library's client against our server."""
    known = Known()
    known.add(mechanism, "alice", "secret", b"0123456789abcdef")
    theirs = scramp.ScramClient([mechanism.name], "alice", "secret")
    ours = server(mechanism, known)
    theirs.set_server_first(heard(ours.heard(theirs.get_client_first().encode(), NOW)).decode())
    accepted = ours.heard(theirs.get_client_final().encode(), NOW)
    assert isinstance(accepted, Accepted)
    theirs.set_server_final(accepted.token.decode())


@BOTH
def test_we_log_in_at_scramp(mechanism: Mechanism) -> None:
    """Our client against another library's server."""
    theirs = scramp.ScramMechanism(mechanism.name)
    stored = theirs.make_auth_info("secret", iteration_count=4_096)
    there = theirs.make_server(lambda name: stored)
    ours = client(mechanism, "alice", "secret")
    there.set_client_first(heard(ours.start()).decode())
    work = ours.heard(there.get_server_first().encode())
    assert isinstance(work, Derive)
    there.set_client_final(heard(ours.worked(work.run())).decode())
    assert ours.heard(there.get_server_final().encode()) == Finished()


@settings(max_examples=examples(20))
@given(
    name=st.text(st.characters(codec="ascii", exclude_categories=("Cc",)), min_size=1, max_size=20),
    password=st.text(st.characters(codec="ascii", exclude_categories=("Cc",)), min_size=1, max_size=20),
    number=st.integers(1 << 100, 1 << 140),
)
def test_scramp_makes_the_same_keys(name: str, password: str, number: int) -> None:
    salt = salt_of(number.to_bytes(18, "big"))
    _, stored, there, rounds = scramp.ScramMechanism("SCRAM-SHA-512").make_auth_info(password, 4_096, salt)
    ours = credential_of(SHA_512, SHA_512.derive(password, salt, 4_096).run(), salt, 4_096)
    assert (stored, there, rounds) == (ours.stored_key, ours.server_key, ours.iterations)


def test_the_names_are_those_of_kafka() -> None:
    assert {name: mechanism.type for name, mechanism in BY_NAME.items()} == {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}


def test_nothing_that_prints_shows_a_secret() -> None:
    known = Known()
    known.add(SHA_256, "alice", "swordfish", b"saltsalt")
    shown = repr([known, SHA_256.derive("swordfish", b"", 1), Token(b"swordfish"), STRANGERS])
    assert not any(secret in shown for secret in ("swordfish", "saltsalt", "a secret of"))
