"""Signatures checked by `cryptography`. Import it only where a listener takes bearer tokens: it costs some 60 ms."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from penstock.security.oauth.jws import Key

RSA_BITS_MIN: Final = 2_048
RSA_BITS_MAX: Final = 8_192
"""A key of a million bits would keep a core busy for the length of a login."""

_HASHES: Final[Mapping[str, hashes.HashAlgorithm]] = {
    "256": hashes.SHA256(),
    "384": hashes.SHA384(),
    "512": hashes.SHA512(),
}
_CURVES: Final[Mapping[str, ec.EllipticCurve]] = {
    "P-256": ec.SECP256R1(),
    "P-384": ec.SECP384R1(),
    "P-521": ec.SECP521R1(),
}


class CryptographySignatures:
    """The `Signatures` of a node that has the library."""

    def good(self, algorithm: str, key: Key, signed: bytes, signature: bytes) -> bool:
        try:
            _verify(algorithm, key.members, signed, signature)
        except (InvalidSignature, ValueError, KeyError, TypeError):
            return False
        return True


def _verify(algorithm: str, members: Mapping[str, Any], signed: bytes, signature: bytes) -> None:
    if algorithm == "EdDSA":
        ed25519.Ed25519PublicKey.from_public_bytes(_bytes(members["x"])).verify(signature, signed)
        return
    digest = _HASHES[algorithm[2:]]
    if algorithm.startswith("ES"):
        _verify_ec(members, digest, signed, signature)
    else:
        _rsa_key(members).verify(signature, signed, _padding(algorithm, digest), digest)


def _verify_ec(members: Mapping[str, Any], digest: hashes.HashAlgorithm, signed: bytes, signature: bytes) -> None:
    curve = _CURVES[members["crv"]]
    size = (curve.key_size + 7) // 8
    if len(signature) != 2 * size:
        raise ValueError("a signature is two numbers of the curve's size")
    r, s = (int.from_bytes(half, "big") for half in (signature[:size], signature[size:]))
    key = ec.EllipticCurvePublicNumbers(_number(members["x"]), _number(members["y"]), curve).public_key()
    key.verify(encode_dss_signature(r, s), signed, ec.ECDSA(digest))


def _rsa_key(members: Mapping[str, Any]) -> rsa.RSAPublicKey:
    modulus = _number(members["n"])
    if not RSA_BITS_MIN <= modulus.bit_length() <= RSA_BITS_MAX:
        raise ValueError(f"an RSA key has from {RSA_BITS_MIN} to {RSA_BITS_MAX} bits")
    return rsa.RSAPublicNumbers(_number(members["e"]), modulus).public_key()


def _padding(algorithm: str, digest: hashes.HashAlgorithm) -> padding.AsymmetricPadding:
    if algorithm.startswith("RS"):
        return padding.PKCS1v15()
    return padding.PSS(mgf=padding.MGF1(digest), salt_length=digest.digest_size)


def _number(text: str) -> int:
    return int.from_bytes(_bytes(text), "big")


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
