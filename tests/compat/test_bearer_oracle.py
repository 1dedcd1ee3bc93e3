"""Kafka's broker judges drawn bearer tokens, and so do we: keys, algorithms and claims."""

from __future__ import annotations

import base64
import json
import os
import random
import time
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from penstock.model.ids import Millis
from penstock.security.oauth.claims import Expected
from penstock.security.oauth.jwks import KeySet, RefreshPolicy
from penstock.security.oauth.messages import GoodToken
from penstock.security.oauth.signatures import CryptographySignatures
from penstock.security.oauth.validation import Validator
from tests.compat.oracles.jvm import answers
from tests.unit.security.oauth.issuing import key_set, private_key, public_members

pytestmark = [pytest.mark.compat, pytest.mark.timeout(1_200)]

CASES = int(os.environ.get("PENSTOCK_CASES", "100000"))
SEED = int(os.environ.get("PENSTOCK_SEED", "17"))
GONE = object()

Draw = random.Random


def test_kafka_accepts_the_same_tokens(tmp_path: Path) -> None:
    """Times are far from their bounds: Java asks its own clock, and the machine may be slow."""
    draw, now_s = Draw(SEED), int(time.time())
    keys = [public_members("ES256", "k1"), public_members("RS256", "k2")]
    document = tmp_path / "jwks.json"
    document.write_text(json.dumps({"keys": keys}))
    tokens = [_token(draw, now_s) for _ in range(CASES)]
    first = {"jwks": document.as_uri(), "file": str(document)}
    _, *theirs = answers("BearerTokens.java", [first, *({"token": token} for token in tokens)])
    judging = _validator(keys)
    differing, accepted = [], 0
    for token, said in zip(tokens, theirs, strict=True):
        ours = judging.judge_token(token, Millis(now_s * 1_000), 1.0)
        told = {"name": ours.name, "expires": ours.expires_at_ms} if isinstance(ours, GoodToken) else None
        accepted += told is not None
        if told != (None if "error" in said else said):
            parts = [base64.urlsafe_b64decode(part + "==") for part in token.split(".")[:2]]
            differing.append(f"{parts!r}\n    Kafka: {said!r}\n    ours:  {ours!r}")
    assert not differing, f"{len(differing)} of {CASES} differ\n" + "\n".join(differing[:10])
    assert accepted > CASES // 20


def _validator(keys: list[dict[str, Any]]) -> Validator:
    known = KeySet(RefreshPolicy())
    known.begin(0.0)
    known.fetched(key_set(*keys), 0.0)
    return Validator(known, Expected("https://idp", ("kafka", "other"), 30), CryptographySignatures())


def _token(draw: Draw, now_s: int) -> str:
    def one_of(usual: Any, *others: Any) -> Any:
        return usual if draw.random() < 0.8 else draw.choice(others)

    header = {"alg": one_of("ES256", "none", "HS256", "RS256", "ES384"), "kid": one_of("k1", "k2", "k3", GONE)}
    claims = {
        "exp": one_of(now_s + 5_000, now_s - 5_000, now_s + 90_000, str(now_s + 5_000), -1, GONE, now_s + 5_000.7),
        "iat": one_of(now_s - 6_000, now_s + 4_000, now_s + 6_000, GONE, "x"),
        "nbf": one_of(GONE, now_s - 5_000, now_s + 4_000, now_s + 5_500, "x"),
        "iss": one_of("https://idp", "https://evil", GONE, ""),
        "aud": one_of("kafka", ["other", "x"], ["x"], [], GONE, ["kafka"]),
        "sub": one_of("alice", "", "  ", 5, GONE, ["alice"], " bob "),
        "scope": one_of(GONE, "a b", ["a", "b"], ["a", "a"], ["a", ""], ["a", " a"], ""),
        "extra": one_of(GONE, {"deep": [1, None]}),
    }
    parts = [_encoded({key: value for key, value in each.items() if value is not GONE}) for each in (header, claims)]
    signed = ".".join(parts).encode()
    der = private_key("ES256").sign(signed, ec.ECDSA(hashes.SHA256()))
    signature = b"".join(number.to_bytes(32, "big") for number in decode_dss_signature(der))
    if draw.random() < 0.05:
        signature = signature[:-1] + bytes([signature[-1] ^ 1])
    return f"{'.'.join(parts)}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"


def _encoded(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()
