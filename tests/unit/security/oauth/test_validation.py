"""Tokens judged by keys and claims; PyJWT makes and judges them, too."""

from __future__ import annotations

import base64
import hmac
import json
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.ids import Millis
from penstock.security.oauth.claims import Expected, judge
from penstock.security.oauth.jwks import KeySet, Missing, RefreshPolicy
from penstock.security.oauth.jws import ALGORITHMS, NotAccepted, parse_key_set, parse_token
from penstock.security.oauth.messages import BadToken, GoodToken
from penstock.security.oauth.signatures import CryptographySignatures
from penstock.security.oauth.validation import Validator
from tests.unit.security.oauth.issuing import GOOD, NOW, NOW_S, key_set, private_key, public_members, token


def validator(*keys: dict[str, Any], expected: Expected | None = None) -> Validator:
    known = KeySet(RefreshPolicy())
    known.begin(0.0)
    known.fetched(key_set(*keys), 0.0)
    return Validator(known, expected or Expected(), CryptographySignatures())


def verdict(text: str, *keys: dict[str, Any], expected: Expected | None = None) -> object:
    return validator(*keys, expected=expected).judge_token(text, NOW, 1.0)


def encoded(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_token_of_every_algorithm_is_good_and_with_another_signature_not(algorithm: str) -> None:
    made, members = token(algorithm), public_members(algorithm)
    assert verdict(made, members) == GoodToken("alice", Millis((NOW_S + 600) * 1_000), Millis((NOW_S - 10) * 1_000))
    head, claims, signature = made.split(".")
    other = ("A" if signature[0] != "A" else "B") + signature[1:]
    assert verdict(f"{head}.{claims}.{other}", members) == BadToken("the token's signature is wrong")
    forged = encoded(GOOD | {"sub": "admin"})
    assert verdict(f"{head}.{forged}.{signature}", members) == BadToken("the token's signature is wrong")


@pytest.mark.parametrize("algorithm", ["none", "None", "HS256", "HS512", "", "RS1", "ES256K", 5, None])
def test_cve_2026_33557_nothing_unsigned_or_of_another_algorithm_is_accepted(algorithm: object) -> None:
    for signature in ("", "AA"):
        text = f"{encoded({'alg': algorithm, 'kid': 'k1'})}.{encoded(GOOD)}.{signature}"
        assert isinstance(verdict(text, public_members("RS256")), BadToken)


def test_a_public_key_is_not_taken_for_a_shared_secret() -> None:
    """The attack on validators that let the token choose: HMAC keyed by what everybody may know."""
    pem = private_key("RS256").public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    signed = f"{encoded({'alg': 'HS256', 'kid': 'k1'})}.{encoded(GOOD)}"
    mac = hmac.digest(pem, signed.encode(), "sha256")
    text = f"{signed}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"
    assert isinstance(verdict(text, public_members("RS256")), BadToken)


@pytest.mark.parametrize(
    ("algorithm", "key_of"), [("RS256", "ES256"), ("ES256", "RS256"), ("ES256", "ES384"), ("EdDSA", "ES256")]
)
def test_an_algorithm_is_pinned_to_its_kind_of_key(algorithm: str, key_of: str) -> None:
    told = verdict(token(algorithm), public_members(key_of))
    assert told == BadToken("the token's algorithm does not fit its key")


def test_a_key_that_names_its_algorithm_checks_no_other() -> None:
    assert isinstance(verdict(token("RS256"), public_members("RS256", alg="RS256")), GoodToken)
    told = verdict(token("RS256"), public_members("RS256", alg="PS256"))
    assert told == BadToken("the token's algorithm does not fit its key")


@pytest.mark.parametrize(
    "more", [{"use": "enc"}, {"key_ops": ["sign"]}, {"key_ops": "verify"}, {"kty": "oct"}, {"kid": 5}]
)
def test_keys_that_are_not_for_signatures_are_left_out(more: dict[str, Any]) -> None:
    assert key_set(public_members("RS256") | more) == {}


def test_a_token_without_a_key_id_is_tried_with_every_key_that_fits() -> None:
    keys = [public_members("ES256", "a"), public_members("RS256", "b")]
    assert isinstance(verdict(token("RS256", kid=None), *keys), GoodToken)
    assert isinstance(verdict(token("EdDSA", kid=None), *keys), BadToken)


def test_a_key_that_is_not_known_is_worth_a_fetch_once() -> None:
    judging = validator(public_members("RS256"))
    assert judging.judge_token(token("RS256", kid="new"), NOW, 100_000.0) == Missing(True)
    assert judging.judge_token(token("RS256", kid="new"), NOW, 100_001.0) == BadToken("the token's key is not known")


def test_without_keys_nothing_is_accepted() -> None:
    empty = Validator(KeySet(RefreshPolicy()), Expected(), CryptographySignatures())
    assert empty.judge_token(token("RS256"), NOW, 0.0) == Missing(True)
    assert isinstance(verdict(token("RS256", kid=None)), BadToken)


@pytest.mark.parametrize(
    "change",
    [
        {"n": "AQAB"},
        {"n": ""},
        {"n": 5},
        {"e": None},
        {"n": "é"},
        {"n": base64.urlsafe_b64encode(b"\xff" * 4_000).decode()},
    ],
)
def test_keys_that_are_none_check_nothing(change: dict[str, Any]) -> None:
    assert verdict(token("RS256"), public_members("RS256") | change) == BadToken("the token's signature is wrong")


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "..",
        "a.b",
        "a.b.c",
        "a.b.c.d",
        "e30.e30.",
        "e30..e30",
        "=.=.=",
        "é.é.é",
        "e30.e30.e30",
        "W10.e30.AA",
        "x" * 70_000,
    ],
)
def test_what_is_no_token_is_not_accepted(text: str) -> None:
    assert isinstance(verdict(text, public_members("RS256")), BadToken)


def test_headers_that_must_be_understood_are_not() -> None:
    text = f"{encoded({'alg': 'RS256', 'kid': 'k1', 'crit': ['x']})}.{encoded(GOOD)}.AA"
    with pytest.raises(NotAccepted, match="crit"):
        parse_token(text)


def test_a_claim_that_stands_twice_is_no_claim() -> None:
    twice = base64.urlsafe_b64encode(b'{"sub":"alice","sub":"admin"}').rstrip(b"=").decode()
    with pytest.raises(NotAccepted, match="no JSON"):
        parse_token(f"{encoded({'alg': 'RS256'})}.{twice}.AA")


def test_deep_json_is_no_token() -> None:
    deep = base64.urlsafe_b64encode(b"[" * 30_000).rstrip(b"=").decode()
    with pytest.raises(NotAccepted):
        parse_token(f"{deep}.{encoded(GOOD)}.AA")
    with pytest.raises(NotAccepted):
        parse_key_set(b'{"keys":' + b"[" * 100_000)


@pytest.mark.parametrize("document", [b"", b"[]", b"{}", b'{"keys":5}', b"\xff", b'"x"', b"5"])
def test_what_is_no_key_set_is_refused(document: bytes) -> None:
    with pytest.raises(NotAccepted):
        parse_key_set(document)


EXPECTED = Expected("https://idp", ("kafka", "other"), 30)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, ""),
        ({"exp": NOW_S - 29, "iat": NOW_S - 100}, ""),
        ({"exp": NOW_S - 30, "iat": NOW_S - 100}, "expired"),
        ({"exp": None}, "exp, iat"),
        ({"iat": None}, "exp, iat"),
        ({"iat": NOW_S + 300}, ""),
        ({"iat": NOW_S + 601}, "ends before it begins"),
        ({"nbf": NOW_S + 30}, ""),
        ({"nbf": NOW_S + 31}, "not good yet"),
        ({"exp": True}, "no time"),
        ({"exp": str(NOW_S + 600)}, "no time"),
        ({"exp": -5}, "no time"),
        ({"exp": 1e300}, "no time"),
        ({"exp": float("nan")}, "no time"),
        ({"exp": NOW_S + 600.9}, ""),
        ({"iss": "https://evil"}, "another issuer"),
        ({"iss": None}, "another issuer"),
        ({"iss": ["https://idp"]}, "another issuer"),
        ({"aud": "kafka"}, ""),
        ({"aud": ["x", "other", 5]}, ""),
        ({"aud": ["x"]}, "another audience"),
        ({"aud": []}, "another audience"),
        ({"aud": None}, "another audience"),
        ({"aud": {"kafka": 1}}, "another audience"),
        ({"sub": ""}, "names nobody"),
        ({"sub": " \t"}, "names nobody"),
        ({"sub": None}, "names nobody"),
        ({"sub": 5}, "names nobody"),
        ({"scope": "a b a"}, ""),
        ({"scope": ["a", "b"]}, ""),
        ({"scope": ["a", " a"]}, "twice"),
        ({"scope": ["a", ""]}, "no text"),
        ({"scope": ["a", 5]}, "no text"),
        ({"scope": ""}, "no text"),
        ({"scope": " "}, "no text"),
        ({"scope": 5}, ""),
    ],
)
def test_claims_are_judged_as_kafka_judges_them(change: dict[str, Any], words: str) -> None:
    claims = {name: value for name, value in (GOOD | change).items() if value is not None}
    if not words:
        assert judge(claims, EXPECTED, NOW).name == "alice"
        return
    with pytest.raises(NotAccepted, match=words):
        judge(claims, EXPECTED, NOW)


def test_without_expectations_issuer_and_audience_may_be_anything() -> None:
    assert judge({"sub": "alice", "iat": 1, "exp": NOW_S + 1}, Expected(), NOW).name == "alice"


def test_name_and_scope_come_from_the_claims_that_were_configured() -> None:
    expected = Expected(sub_claim_name="client", scope_claim_name="scp")
    found = judge(GOOD | {"client": " c ", "scp": "a b"}, expected, NOW)
    assert (found.name, found.scopes) == ("c", ("a", "b"))


def test_no_verdict_repeats_the_token() -> None:
    made = token("RS256", GOOD | {"sub": ["swordfish"]})
    told = verdict(made, public_members("RS256"))
    assert "swordfish" not in str(told)
    assert "swordfish" not in repr(parse_token(made))


@given(st.data())
def test_no_token_with_a_changed_character_is_good(data: st.DataObject) -> None:
    text = list(_MADE)
    at = data.draw(st.integers(0, len(text) - 1))
    text[at] = data.draw(st.sampled_from("ABCxyz019-_.=!é"))
    told = _JUDGING.judge_token("".join(text), NOW, 1.0)
    same = "".join(text) == _MADE or (at == len(text) - 1 and isinstance(told, GoodToken))
    assert same or isinstance(told, (BadToken, Missing))


_MADE = token("ES256")
_JUDGING = validator(public_members("ES256"))


@given(
    claims=st.fixed_dictionaries(
        {"sub": st.just("alice"), "iat": st.just(NOW_S)},
        optional={
            "exp": st.sampled_from([NOW_S - 1_000, NOW_S + 1_000]),
            "nbf": st.sampled_from([NOW_S - 100, NOW_S + 500]),
            "iss": st.sampled_from(["https://idp", "x"]),
            "aud": st.sampled_from(["kafka", "x", ["x", "kafka"], []]),
        },
    )
)
def test_pyjwt_accepts_the_same_claims(claims: dict[str, Any]) -> None:
    made = token("ES256", claims)
    ours = verdict(made, public_members("ES256"), expected=Expected("https://idp", ("kafka",), 30))
    options: Any = {
        "require": ["exp", "iat", "sub", "iss", "aud"],
        "verify_exp": False,
        "verify_nbf": False,
        "verify_iat": False,
    }
    try:
        jwt.decode(made, private_key("ES256").public_key(), ["ES256"], options, audience="kafka", issuer="https://idp")
        theirs = claims["exp"] > NOW_S and claims.get("nbf", 0) <= NOW_S
    except jwt.InvalidTokenError:
        theirs = False
    assert isinstance(ours, GoodToken) == theirs
