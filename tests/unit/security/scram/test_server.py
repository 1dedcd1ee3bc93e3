"""What a server of SCRAM refuses, and what it lets nobody learn."""

from __future__ import annotations

import base64
import hmac
from dataclasses import replace

import pytest

from penstock.model.ids import Millis
from penstock.model.secret import Secret
from penstock.security.exchange import Accepted, Derive, Finished, Identity, Rejected, Token
from penstock.security.scram import server as server_module
from penstock.security.scram.client import ScramClient
from penstock.security.scram.keys import SHA_256, SHA_512, Credential, Mechanism, Strangers
from penstock.security.scram.messages import MESSAGE_BYTES_MAX, ServerFirst, parse_server_first
from penstock.security.scram.server import OTHER_AUTHORIZATION_ID, ScramServer, TokenLogin, derivation_for
from tests.unit.security.scram.exchanges import NOW, SERVER_NONCE, STRANGERS, Known, client, heard, run, server


def known_alice() -> Known:
    known = Known()
    known.add(SHA_256, "alice", "secret")
    return known


def challenge(name: str, known: Known, strangers: Strangers = STRANGERS) -> ServerFirst:
    said = client(SHA_256, name, "guess")
    return parse_server_first(
        heard(ScramServer(SHA_256, known, strangers, SERVER_NONCE).heard(heard(said.start()), NOW))
    )


def final_of(known: Known, change: tuple[bytes, bytes], signed_too: bool = False) -> Rejected | Accepted:
    """What the server says of a final message in which something was changed before or after it was signed."""
    said, there = client(SHA_256, "alice", "secret"), server(SHA_256, known)
    token = heard(there.heard(heard(said.start()), NOW))
    work = said.heard(token.replace(*change) if signed_too else token)
    assert isinstance(work, Derive)
    final = heard(said.worked(work.run()))
    step = there.heard(final if signed_too else final.replace(*change), NOW)
    assert isinstance(step, (Accepted, Rejected))
    return step


def test_cve_2024_56128_a_nonce_that_was_not_given_is_refused() -> None:
    """Also one that the client signed: its proof is right, what it proves is another conversation."""
    nonce = SERVER_NONCE.encode()
    why = "the nonce is not the one that was given"
    assert final_of(known_alice(), (nonce, nonce + b"x"), signed_too=True) == Rejected(why, name="alice")
    assert final_of(known_alice(), (nonce, nonce[:-1]), signed_too=True) == Rejected(why, name="alice")


def test_the_clients_half_of_the_nonce_sent_twice_is_refused() -> None:
    """librdkafka before 2.6.1 does so; Kafka 4 refuses it, too."""
    said, there = client(SHA_256, "alice", "secret", "abc"), server(SHA_256, known_alice())
    token = heard(there.heard(heard(said.start()), NOW))
    work = said.heard(token.replace(b"r=abc", b"r=abcabc"))
    assert isinstance(work, Derive)
    assert isinstance(there.heard(heard(said.worked(work.run())), NOW), Rejected)


def test_cve_2024_56128_a_channel_binding_that_was_not_announced_is_refused() -> None:
    for header in (b"y,,", b"p=tls-unique,,", b"n,a=alice,", b"n,", b""):
        step = final_of(known_alice(), (b"c=biws", b"c=" + base64.b64encode(header)))
        assert step == Rejected("the channel binding is not that of the first message", name="alice")


@pytest.mark.parametrize("header", ["y,,", "p=tls-unique,,", "n", "N,,", "n,,,", ""])
def test_cve_2024_56128_only_logins_without_channel_binding_begin(header: str) -> None:
    step = server(SHA_256, known_alice()).heard(f"{header}n=alice,r=abc".encode(), NOW)
    assert isinstance(step, Rejected)


def test_cve_2021_38153_proofs_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[bytes, bytes]] = []
    real = hmac.compare_digest

    def compare(left: bytes, right: bytes) -> bool:
        compared.append((left, right))
        return real(left, right)

    monkeypatch.setattr(server_module.hmac, "compare_digest", compare)
    run(client(SHA_256, "alice", "guess"), server(SHA_256, known_alice()))
    run(client(SHA_256, "nobody", "guess"), server(SHA_256, known_alice()))
    assert [len(left) for left, _ in compared] == [32, 32]


def test_names_that_do_not_exist_are_challenged_like_any_other() -> None:
    known = known_alice()
    known.add(SHA_256, "bob", "secret", STRANGERS.salt(SHA_512, "anything"))
    shown, real = challenge("nobody", known), challenge("bob", known)
    assert shown.iterations == real.iterations
    assert len(shown.salt) == pytest.approx(len(real.salt), abs=2)
    assert shown.salt.isalnum()
    assert shown.salt.islower() or shown.salt.isdigit()
    assert real.salt.isalnum()


def test_a_stranger_sees_the_same_salt_on_every_node_and_another_for_every_name() -> None:
    assert challenge("nobody", Known()) == challenge("nobody", known_alice())
    assert challenge("nobody", Known()).salt != challenge("somebody", Known()).salt
    assert challenge("nobody", Known()).salt != challenge("nobody", Known(), Strangers(b"another cluster")).salt
    assert STRANGERS.salt(SHA_256, "nobody") != STRANGERS.salt(SHA_512, "nobody")


def test_strangers_and_wrong_passwords_fail_at_the_same_step_with_the_same_words() -> None:
    wrong, _ = run(client(SHA_256, "alice", "guess"), server(SHA_256, known_alice()))
    nobody, _ = run(client(SHA_256, "nobody", "guess"), server(SHA_256, known_alice()))
    assert isinstance(wrong, Rejected)
    assert nobody == replace(wrong, name="nobody")
    assert wrong.told is None


def test_a_challenge_costs_the_same_whether_the_name_exists_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys for strangers take 20 of 30 microseconds: enough to be seen from outside, if only strangers cost them."""
    made: list[str] = []
    real = Strangers.credential

    def credential(self: Strangers, mechanism: Mechanism, name: str) -> Credential:
        made.append(name)
        return real(self, mechanism, name)

    monkeypatch.setattr(Strangers, "credential", credential)
    challenge("alice", known_alice())
    challenge("nobody", known_alice())
    assert made == ["alice", "nobody"]


def test_a_proof_of_the_keys_that_strangers_are_shown_is_refused() -> None:
    """Even who knew the cluster's secret could not log in as somebody who does not exist."""
    there = server(SHA_256, Known())
    there.heard(b"n,,n=nobody,r=abc", NOW)
    there._proves = lambda proof, signed: True  # type: ignore[method-assign]
    final = f"c=biws,r=abc{SERVER_NONCE},p={base64.b64encode(bytes(32)).decode()}"
    assert isinstance(there.heard(final.encode(), NOW), Rejected)


def test_a_credential_with_too_few_rounds_is_nobodys() -> None:
    known = Known()
    known.add(SHA_256, "weak", "secret", iterations=4_095)
    assert challenge("weak", known).iterations == 4_096
    assert isinstance(run(client(SHA_256, "weak", "secret"), server(SHA_256, known))[0], Rejected)


@pytest.mark.parametrize(("name", "authzid"), [("alice", "alice"), ("a,b", "a,b")])
def test_an_authorization_id_may_be_the_name(name: str, authzid: str) -> None:
    known = Known()
    known.add(SHA_256, name, "secret")
    said = ScramClient(SHA_256, name, Secret("secret"), "abc", authzid=authzid)
    assert run(said, server(SHA_256, known))[1] == Finished()


def test_no_authorization_id_may_be_another_name_whether_the_name_exists_or_not() -> None:
    for name in ("alice", "nobody"):
        said = ScramClient(SHA_256, name, Secret("secret"), "abc", authzid="admin")
        step = server(SHA_256, known_alice()).heard(heard(said.start()), NOW)
        assert isinstance(step, Rejected)
        assert step.told == OTHER_AUTHORIZATION_ID


@pytest.mark.parametrize("long", ["n,,n={},r=abc", "n,,n=alice,r={}", "n,,n=alice,r=abc,x={}", "n,,m={},n=alice,r=abc"])
def test_a_stranger_cannot_have_long_texts_kept(long: str) -> None:
    beside = len(long.format(""))
    fits, too_long = (long.format("x" * (MESSAGE_BYTES_MAX - beside + over)).encode() for over in (0, 1))
    assert isinstance(server(SHA_256, known_alice()).heard(fits, NOW), Token)
    assert isinstance(server(SHA_256, known_alice()).heard(too_long, NOW), Rejected)


def test_extensions_that_nobody_knows_are_ignored() -> None:
    assert isinstance(server(SHA_256, known_alice()).heard(b"n,,n=alice,r=abc,x=1,tokenauth=false", NOW), Token)


def token_login(expires_at_ms: int = NOW + 1, salted: bytes | None = None) -> Known:
    return Known(tokens={"id-1": TokenLogin("alice", Millis(expires_at_ms), "aG1hYw==", salted)})


def token_client(password: str = "aG1hYw==") -> ScramClient:
    return ScramClient(SHA_512, "id-1", Secret(password), "abc", token=True)


def test_a_delegation_token_logs_its_owner_in() -> None:
    verdict, ended = run(token_client(), server(SHA_512, token_login()))
    assert isinstance(verdict, Accepted)
    assert verdict.identity == Identity("alice", Millis(NOW + 1), by_delegation_token=True)
    assert ended == Finished()
    assert isinstance(run(token_client("other"), server(SHA_512, token_login()))[0], Rejected)


def test_what_was_derived_for_a_token_is_not_derived_again() -> None:
    salted = derivation_for(SHA_512, STRANGERS, "id-1", "aG1hYw==").run()
    there = server(SHA_512, token_login(salted=salted))
    assert isinstance(there.heard(heard(token_client().start()), NOW), Token)
    assert run(token_client(), server(SHA_512, token_login(salted=salted)))[1] == Finished()


def test_a_token_that_has_ended_is_a_stranger() -> None:
    ended = run(token_client(), server(SHA_512, token_login(NOW)))[0]
    unknown = run(token_client(), server(SHA_512, Known()))[0]
    assert ended == unknown
    assert isinstance(ended, Rejected)


def test_a_user_of_a_tokens_name_is_somebody_else() -> None:
    known = Known()
    known.add(SHA_512, "id-1", "aG1hYw==")
    assert isinstance(run(token_client(), server(SHA_512, known))[0], Rejected)
