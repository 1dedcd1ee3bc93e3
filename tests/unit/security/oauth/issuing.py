"""Tokens and keys of an identity provider in a test, made by PyJWT."""

from __future__ import annotations

import functools
import json
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from penstock.model.ids import Millis
from penstock.security.oauth.jws import Key, parse_key_set

NOW_S = 1_700_000_000
NOW = Millis(NOW_S * 1_000)
GOOD: dict[str, Any] = {"sub": "alice", "iat": NOW_S - 10, "exp": NOW_S + 600, "iss": "https://idp", "aud": ["kafka"]}


@functools.cache
def private_key(algorithm: str) -> Any:
    match algorithm:
        case "ES256":
            return ec.generate_private_key(ec.SECP256R1())
        case "ES384":
            return ec.generate_private_key(ec.SECP384R1())
        case "ES512":
            return ec.generate_private_key(ec.SECP521R1())
        case "EdDSA":
            return ed25519.Ed25519PrivateKey.generate()
    return rsa.generate_private_key(65_537, 2_048)


def public_members(algorithm: str, kid: str | None = "k1", **more: Any) -> dict[str, Any]:
    public = private_key(algorithm).public_key()
    maker: Any = OKPAlgorithm if algorithm == "EdDSA" else ECAlgorithm if algorithm[0] == "E" else RSAAlgorithm
    members = json.loads(maker.to_jwk(public))
    return members | ({} if kid is None else {"kid": kid}) | more


def key_set(*keys: dict[str, Any]) -> dict[str | None, list[Key]]:
    return parse_key_set(json.dumps({"keys": keys}).encode())


def token(algorithm: str, claims: dict[str, Any] | None = None, kid: str | None = "k1", **header: Any) -> str:
    headers = header | ({} if kid is None else {"kid": kid})
    return jwt.encode(GOOD if claims is None else claims, private_key(algorithm), algorithm, headers)
