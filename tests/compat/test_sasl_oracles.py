"""Kafka's own logins against ours: what one side writes the other reads, and what one refuses the other refuses.

Each test draws its cases from a seed; `PENSTOCK_SEED` draws others, `PENSTOCK_CASES` another number of them.
"""

from __future__ import annotations

import base64
import os
import random
from collections.abc import Iterator
from typing import Any

import pytest

from penstock.model.ids import Millis
from penstock.model.secret import Secret
from penstock.security.exchange import Accepted, Derive, Rejected, Token
from penstock.security.oauth import messages as oauth
from penstock.security.plain import PlainServer, PlainUsers
from penstock.security.references import ENVIRONMENT_CLASS, Provider, Unresolved, resolve
from penstock.security.scram.client import ScramClient
from penstock.security.scram.keys import SHA_256, SHA_512, Credential, Mechanism, Strangers, credential_of, nonce_of
from penstock.security.scram.server import ScramServer, TokenLogin
from tests.compat.oracles.jvm import Conversation

pytestmark = [pytest.mark.compat, pytest.mark.timeout(1_200)]

CASES = int(os.environ.get("PENSTOCK_CASES", "100000"))
SEED = int(os.environ.get("PENSTOCK_SEED", "17"))
AT_ONCE = 1_000

Draw = random.Random
Told = dict[str, Any]
NOW = Millis(1_700_000_000_000)
STRANGERS = Strangers(b"a secret of the cluster")


@pytest.fixture(scope="module")
def kafka() -> Iterator[Conversation]:
    with Conversation("Logins.java") as talking:
        yield talking


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def mutated(draw: Draw, text: str, alphabet: str) -> str:
    """The text, in half of the cases with a few characters taken out, put in, or doubled."""
    characters = list(text)
    for _ in range(draw.choice((0, 0, 1, 2))):
        at = draw.randrange(len(characters) + 1)
        match draw.randrange(3):
            case 0:
                del characters[at : at + draw.randint(1, 2)]
            case 1:
                characters.insert(at, draw.choice(alphabet))
            case _:
                characters[at:at] = characters[at : at + draw.randint(1, 5)]
    return "".join(characters)


# PLAIN

_USERS = {"alice": "secret", "ünï": "pässwörd", "a b": "x\ny", "empty": "", "€": "😀"}


def test_plain_says_of_every_token_what_kafka_says(kafka: Conversation) -> None:
    draw = Draw(SEED)
    server = PlainServer(PlainUsers({name: Secret(password) for name, password in _USERS.items()}))
    for _ in range(0, CASES, AT_ONCE):
        tokens = [_plain_token(draw) for _ in range(AT_ONCE)]
        asked = [{"op": "plain", "users": _USERS, "token": b64(token)} for token in tokens]
        for token, theirs in zip(tokens, kafka.ask(asked), strict=True):
            step = server.heard(token, NOW)
            ours = {"name": step.identity.name} if isinstance(step, Accepted) else {"error": _told(step)}
            assert ours == theirs, token


def _plain_token(draw: Draw) -> bytes:
    name = draw.choice((*_USERS, "nobody", ""))
    password = _USERS.get(name, "x") if draw.random() < 0.7 else draw.choice((*_USERS.values(), "wrong"))
    authzid = draw.choice(("", "", "", name, "alice"))
    return mutated(draw, f"{authzid}\0{name}\0{password}", "\0aé😀 ").encode()


def _told(step: object) -> str | None:
    assert isinstance(step, Rejected)
    return step.told


# OAUTHBEARER

_OAUTH_HEADERS = ["n,", "n,,", ",", "a=alice,", "a=a=2Cb,", "\x01"]
_OAUTH_PIECES = [*_OAUTH_HEADERS, "auth=Bearer abc", "auth=bearer  a.b_c-d==", "auth=", "Basic x", "x=1", "Yz=a b"]


def test_first_messages_of_oauthbearer_are_read_as_kafka_reads_them(kafka: Conversation) -> None:
    draw = Draw(SEED)
    for _ in range(0, CASES, AT_ONCE):
        tokens = [_oauth_token(draw) for _ in range(AT_ONCE)]
        asked = [{"op": "oauth", "token": b64(token)} for token in tokens]
        for token, theirs in zip(tokens, kafka.ask(asked), strict=True):
            assert _our_first(token) == (None if "error" in theirs else theirs), token


def _oauth_token(draw: Draw) -> bytes:
    if draw.random() < 0.1:
        text = "".join(draw.choices(_OAUTH_PIECES, k=draw.randrange(8)))
    else:
        pairs = [
            draw.choice(("auth=Bearer abc", "auth=BEARER  a.b~+/c==", "x=1", "Yz=a b\t", "auth=x")) for _ in range(3)
        ]
        header = draw.choice(("n,,", "n,,", "n,a=alice,", "n,a=a=3Db,", "y,,"))
        text = "\x01".join((header, *pairs[: draw.randrange(4)], "", ""))
    return mutated(draw, text, "\x01,=a é\x02~1\n").encode()


def _our_first(token: bytes) -> Told | None:
    try:
        first = oauth.parse_client_first(token)
    except oauth.Malformed:
        return None
    # Kafka keeps an authorization id as it was sent; we compare what it means with the name.
    authzid = first.authzid.replace("=", "=3D").replace(",", "=2C")
    return {"token": first.token, "authzid": authzid, "extensions": dict(first.extensions)}


# References


_REFERENCE_PIECES = ["${", "}", ":", "p", "q", "$", "{", "x", "/", "\n", "${p:"]


class _Echo:
    """Answers to every key as the provider of the Java file does."""

    def file(self, path: str) -> str:
        raise AssertionError(path)

    def environment(self, name: str) -> str | None:
        return f"<|{name}>"


def test_references_are_found_where_kafka_finds_them(kafka: Conversation) -> None:
    """With a path our kinds of providers read files, so here it is only compared which texts are references."""
    draw = Draw(SEED)
    for _ in range(0, CASES, AT_ONCE):
        values = ["".join(draw.choices(_REFERENCE_PIECES, k=draw.randrange(9))) for _ in range(AT_ONCE)]
        for value, theirs in zip(values, kafka.ask([{"op": "references", "value": v} for v in values]), strict=True):
            try:
                ours = resolve({"a": value}, {"p": Provider(ENVIRONMENT_CLASS)}, _Echo())["a"]
            except Unresolved:
                # A variable has no path; Kafka's echo was asked for one.
                assert "<" in theirs["value"], value
                assert "|" in theirs["value"], value
            else:
                assert ours == theirs["value"], value


# SCRAM

_PASSWORDS = {"alice": "secret", "a,b=c": "x", "bob": "pässwörd"}
_ROUNDS = {"alice": 4_096, "a,b=c": 8_192, "bob": 16_384}


class _Known:
    """Users and tokens that both sides know. Passwords are salted once."""

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism
        self.salted = {
            name: mechanism.derive(password, f"salt of {name}".encode(), _ROUNDS[name]).run()
            for name, password in _PASSWORDS.items()
        }
        self.users = {
            name: credential_of(mechanism, salted, f"salt of {name}".encode(), _ROUNDS[name])
            for name, salted in self.salted.items()
        }
        self.token_salt = STRANGERS.salt(mechanism, "id-1")
        self.token_salted = mechanism.derive("aG1hYw==", self.token_salt, 4_096).run()

    def of_user(self, mechanism: Mechanism, name: str) -> Credential | None:
        return self.users.get(name)

    def of_token(self, mechanism: Mechanism, token_id: str) -> TokenLogin | None:
        return TokenLogin("owner", Millis(NOW + 1), "aG1hYw==", self.token_salted) if token_id == "id-1" else None

    def told(self) -> list[Told]:
        token = credential_of(self.mechanism, self.token_salted, self.token_salt, 4_096)
        return [_credential(name, credential, False) for name, credential in self.users.items()] + [
            _credential("id-1", token, True)
        ]


def _credential(name: str, credential: Credential, by_token: bool) -> Told:
    keys = {"salt": b64(credential.salt), "stored": b64(credential.stored_key), "server": b64(credential.server_key)}
    return {"op": "credential", "name": name, "by_token": by_token, "iterations": credential.iterations, **keys}


@pytest.mark.parametrize("mechanism", [SHA_256, SHA_512], ids=lambda mechanism: mechanism.name)
def test_scram_servers_say_the_same(kafka: Conversation, mechanism: Mechanism) -> None:
    """Kafka's server and ours hear the same texts, with the same nonce.

    They differ where we meant to: a name that nobody knows is challenged, and a channel binding that was not announced
    is refused although its proof is right, and what is signed is what was heard.
    """
    draw, known, accepted = Draw(SEED), _Known(mechanism), 0
    kafka.ask(known.told())
    for _ in range(0, CASES // 2, AT_ONCE):
        firsts = [_scram_first(draw) for _ in range(AT_ONCE)]
        asked = [
            {"op": "server-first", "mechanism": mechanism.name, "id": at, "token": b64(first.encode())}
            for at, first in enumerate(firsts)
        ]
        going = []
        for at, (first, theirs) in enumerate(zip(firsts, kafka.ask(asked), strict=True)):
            if (challenged := _challenged(known, first, theirs)) is not None:
                going.append((at, *challenged))
        finals = [_scram_final(draw, known, first, challenge) for _, first, _, challenge in going]
        asked = [
            {"op": "server-final", "id": at, "token": b64(final)} for (at, *_), final in zip(going, finals, strict=True)
        ]
        for (_, first, server, _), final, theirs in zip(going, finals, kafka.ask(asked), strict=True):
            step = server.heard(final, NOW)
            if isinstance(step, Accepted):
                same = theirs == {"token": b64(step.token), "name": step.identity.name}
                assert same or _rewritten(first, final), (first, final, theirs)
                accepted += 1
            else:
                assert "error" in theirs or b"c=biws" not in final or _rewritten(first, final), (first, final)
    assert accepted > CASES // 10


def _rewritten(first: str, final: bytes) -> bool:
    """Kafka signs not what it heard but how it would write it: no `m=`, other order of extensions or none."""
    return len(first.split(",")) > 5 or ",m=" in first or len(final.split(b",")) > 3


def _scram_first(draw: Draw) -> str:
    name = draw.choice((*_PASSWORDS, "alice", "id-1", "nobody"))
    escaped = name.replace("=", "=3D").replace(",", "=2C")
    authzid = draw.choice(("", "", "", "", f"a={'alice' if name == 'alice' else 'bob'}"))
    extensions = ",tokenauth=true" if name == "id-1" or draw.random() < 0.05 else draw.choice(("", "", ",x=1"))
    text = f"n,{authzid},n={escaped},r={nonce_of(draw.randbytes(18))}{extensions}"
    return mutated(draw, text, ",=nr am\x01\x00é2C") if draw.random() < 0.4 else text


def _challenged(known: _Known, first: str, theirs: Told) -> tuple[str, ScramServer, bytes] | None:
    """Our server in the state that Kafka's is in; None when the login has ended for one of the two."""
    trial = ScramServer(known.mechanism, known, STRANGERS, "x").heard(first.encode(), NOW)
    if "error" in theirs:
        hidden = "Invalid user credentials" in theirs["error"] or "Invalid tokenId" in theirs["error"]
        # Names beyond ASCII are ours alone, and an escaped authorization id means what it says.
        assert hidden or isinstance(trial, Rejected) or not first.isascii() or "a=" in first, (first, theirs)
        return None
    assert isinstance(trial, Token), (first, theirs)
    challenge = base64.b64decode(theirs["token"])
    client_nonce = trial.data.split(b",")[0][2:-1]
    server_nonce = challenge.split(b",")[0][2 + len(client_nonce) :].decode()
    server = ScramServer(known.mechanism, known, STRANGERS, server_nonce)
    step = server.heard(first.encode(), NOW)
    assert isinstance(step, Token)
    assert step.data == challenge
    return first, server, challenge


def _scram_final(draw: Draw, known: _Known, first: str, challenge: bytes) -> bytes:
    """A final message by our own client, right in most cases."""
    bare = first.split(",", 2)[2]
    name = bare.split(",")[0][2:].replace("=2C", ",").replace("=3D", "=")
    by_token = "tokenauth=true" in bare
    client = ScramClient(known.mechanism, name, Secret("-"), bare.split(",r=")[1].split(",")[0], token=by_token)
    if first.startswith("n,a="):
        client = ScramClient(known.mechanism, name, Secret("-"), bare.split(",r=")[1].split(",")[0], authzid=name)
    object.__setattr__(client._message, "extensions", dict(pair.split("=", 1) for pair in bare.split(",")[2:]))
    if not isinstance(client.heard(challenge), Derive):
        return b"c=biws"
    salted = known.token_salted if by_token else known.salted.get(name, b"nobody's")
    step = client.worked(salted if draw.random() < 0.8 else b"wrong")
    assert isinstance(step, Token)
    if draw.random() < 0.7:
        return step.data
    return mutated(draw, step.data.decode(), ",=cpr+/Ab9").encode()


@pytest.mark.parametrize("mechanism", [SHA_256, SHA_512], ids=lambda mechanism: mechanism.name)
def test_kafkas_scram_client_logs_in_here(kafka: Conversation, mechanism: Mechanism) -> None:
    """Few cases: here Java salts every password anew."""
    draw, known = Draw(SEED), _Known(mechanism)
    for _ in range(max(1, CASES // 50_000)):
        drawn = [draw.choice((*_PASSWORDS, "id-1", "nobody")) for _ in range(100)]
        passwords = [
            {**_PASSWORDS, "id-1": "aG1hYw=="}.get(name, "x") + draw.choice(("", "", "", "y")) for name in drawn
        ]
        asked = [
            {
                "op": "client-first",
                "mechanism": mechanism.name,
                "id": at,
                "name": name,
                "password": password,
                "by_token": name == "id-1",
            }
            for at, (name, password) in enumerate(zip(drawn, passwords, strict=True))
        ]
        servers = [ScramServer(mechanism, known, STRANGERS, nonce_of(draw.randbytes(18))) for _ in drawn]
        challenges = [
            _data(server.heard(_token(told), NOW)) for server, told in zip(servers, kafka.ask(asked), strict=True)
        ]
        asked = [
            {"op": "client-challenge", "id": at, "token": b64(challenge)} for at, challenge in enumerate(challenges)
        ]
        steps = [server.heard(_token(told), NOW) for server, told in zip(servers, kafka.ask(asked), strict=True)]
        finals = []
        for at, (name, password, step) in enumerate(zip(drawn, passwords, steps, strict=True)):
            right = password == {**_PASSWORDS, "id-1": "aG1hYw=="}.get(name)
            assert isinstance(step, Accepted) == right, (name, step)
            if isinstance(step, Accepted):
                finals.append({"op": "client-final", "id": at, "token": b64(step.token)})
        assert all(told == {"complete": True} for told in kafka.ask(finals))


def _token(told: Told) -> bytes:
    assert "token" in told, told
    return base64.b64decode(told["token"])


def _data(step: object) -> bytes:
    assert isinstance(step, Token), step
    return step.data
