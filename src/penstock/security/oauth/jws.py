"""A signed token taken apart, and which key may have signed it by which algorithm.

The algorithm is named by the token, which nobody has judged yet, so it decides nothing by itself: the key that `kid`
names must be of the kind that the algorithm belongs to. Otherwise a public RSA key could be used as a shared secret, or
`none` need no key at all.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from penstock.model.errors import PenstockError

TOKEN_CHARACTERS_MAX: Final = 64 << 10
"""Longer than any token in use; a frame before login could carry half a megabyte."""
KEYS_MAX: Final = 1_000
"""How many keys of one document are kept."""

_PART: Final = re.compile(r"[A-Za-z0-9_-]*")

# Algorithm → (kind of key, curve). Shared secrets (HS*) and none are not here, and nothing else is accepted.
_KEY_KINDS: Final[Mapping[str, tuple[str, str | None]]] = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), ("RSA", None)),
    "ES256": ("EC", "P-256"),
    "ES384": ("EC", "P-384"),
    "ES512": ("EC", "P-521"),
    "EdDSA": ("OKP", "Ed25519"),
}
ALGORITHMS: Final = tuple(_KEY_KINDS)


class NotAccepted(PenstockError):
    """A token or key set that is not accepted. The words name no part of the token."""


@dataclass(frozen=True, slots=True)
class Jws:
    """A token, not yet judged."""

    algorithm: str
    key_id: str | None
    claims: Mapping[str, Any] = field(repr=False)
    signed: bytes = field(repr=False)
    signature: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Key:
    """One public key of a key set: its id, and its members as the document gives them."""

    key_id: str | None
    kind: str
    curve: str | None
    algorithm: str | None
    members: Mapping[str, Any] = field(repr=False)

    def fits(self, algorithm: str) -> bool:
        """Whether this key may check signatures of `algorithm`."""
        kind, curve = _KEY_KINDS[algorithm]
        return self.kind == kind and self.curve == curve and self.algorithm in (None, algorithm)


class Signatures(Protocol):
    """Who can check a signature. False means that it is wrong; nothing is raised for what a stranger sent."""

    def good(self, algorithm: str, key: Key, signed: bytes, signature: bytes) -> bool: ...


def parse_token(token: str) -> Jws:
    """The three parts of a compact token. NotAccepted when it is none, or not of an accepted algorithm."""
    parts = _parts(token)
    if not all(parts):
        raise NotAccepted("the token does not have three parts")
    header = _object(parts[0], "header")
    if "crit" in header:
        raise NotAccepted("the token's header asks for something that is not known here (crit)")
    algorithm, key_id = header.get("alg"), header.get("kid")
    if not isinstance(algorithm, str) or algorithm not in _KEY_KINDS:
        raise NotAccepted("the token's algorithm is not accepted")
    if key_id is not None and not isinstance(key_id, str):
        raise NotAccepted("the token's key id is no text")
    claims = _object(parts[1], "claims")
    return Jws(algorithm, key_id, claims, f"{parts[0]}.{parts[1]}".encode("ascii"), _decoded(parts[2], "signature"))


def parse_unsigned(token: str) -> Jws:
    """A token of algorithm `none`, whose third part is empty. Nothing about it can be believed."""
    header, claims, signature = _parts(token)
    if signature or _object(header, "header").get("alg") != "none":
        raise NotAccepted("the token is signed, and tokens without a signature are expected here")
    return Jws("none", None, _object(claims, "claims"), b"", b"")


def claims_of(token: str) -> Mapping[str, Any]:
    """What a token says, for whoever carries it: its signature is not looked at."""
    return _object(_parts(token)[1], "claims")


def _parts(token: str) -> list[str]:
    if len(token) > TOKEN_CHARACTERS_MAX:
        raise NotAccepted("the token is too long")
    parts = token.split(".")
    if len(parts) != 3:
        raise NotAccepted("the token does not have three parts")
    return parts


def parse_key_set(document: bytes) -> dict[str | None, list[Key]]:
    """The keys of a JWKS document that can check signatures, by id. Keys of no use here are left out."""
    try:
        keys = json.loads(document)["keys"]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise NotAccepted("this is not a JSON web key set") from None
    if not isinstance(keys, list):
        raise NotAccepted("this is not a JSON web key set")
    found: dict[str | None, list[Key]] = {}
    for members in keys[:KEYS_MAX]:
        key = _key(members)
        if key is not None:
            found.setdefault(key.key_id, []).append(key)
    return found


def _key(members: object) -> Key | None:
    if not isinstance(members, dict) or members.get("use") not in (None, "sig"):
        return None
    texts = {name: members.get(name) for name in ("kty", "crv", "kid", "alg")}
    if not isinstance(texts["kty"], str) or not all(text is None or isinstance(text, str) for text in texts.values()):
        return None
    operations = members.get("key_ops")
    if operations is not None and (not isinstance(operations, list) or "verify" not in operations):
        return None
    curve = None if texts["kty"] == "RSA" else texts["crv"]
    key = Key(texts["kid"], texts["kty"], curve, texts["alg"], members)
    return key if any(key.fits(algorithm) for algorithm in ALGORITHMS) else None


def _object(part: str, what: str) -> dict[str, Any]:
    try:
        value = json.loads(_decoded(part, what), object_pairs_hook=_each_once)
    except (ValueError, RecursionError):
        raise NotAccepted(f"the token's {what} is no JSON") from None
    if not isinstance(value, dict):
        raise NotAccepted(f"the token's {what} is no JSON object")
    return value


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Two claims of one name could be read as one by us and as the other by somebody else."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice")
    return found


def _decoded(part: str, what: str) -> bytes:
    try:
        if _PART.fullmatch(part) is None:
            raise ValueError(part)
        return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except (ValueError, binascii.Error):
        raise NotAccepted(f"the token's {what} is not base64url") from None
