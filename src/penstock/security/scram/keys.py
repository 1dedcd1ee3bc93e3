"""What is stored of a password, how it is made, and what strangers are shown instead."""

from __future__ import annotations

import base64
import hashlib
import hmac
from dataclasses import dataclass, field
from typing import Final

from penstock.security.exchange import Derive

ITERATIONS_MIN: Final = 4_096
ITERATIONS_MAX: Final = 16_384
"""What a stored credential may have; more would only make logins slow."""
ITERATIONS_DEFAULT: Final = 4_096
RANDOM_BYTES: Final = 17
"""How many random bytes `salt_of` wants: 136 bits, of which 130 count, as many as Kafka takes."""

_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_BITS: Final = 130


@dataclass(frozen=True, slots=True)
class Mechanism:
    """One of the two. `type` is its number in requests and records."""

    name: str
    type: int
    hash_name: str
    digest_bytes: int

    def digest(self, data: bytes) -> bytes:
        return hashlib.new(self.hash_name, data).digest()

    def hmac(self, key: bytes, data: bytes) -> bytes:
        return hmac.digest(key, data, self.hash_name)

    def derive(self, password: str, salt: bytes, iterations: int) -> Derive:
        """The work that makes a salted password. Passwords are not prepared (SASLprep), because Kafka does not."""
        return Derive(self.hash_name, password.encode("utf-8", "surrogatepass"), salt, iterations)


SHA_256: Final = Mechanism("SCRAM-SHA-256", 1, "sha256", 32)
SHA_512: Final = Mechanism("SCRAM-SHA-512", 2, "sha512", 64)
BY_NAME: Final = {mechanism.name: mechanism for mechanism in (SHA_256, SHA_512)}
BY_TYPE: Final = {mechanism.type: mechanism for mechanism in (SHA_256, SHA_512)}


@dataclass(frozen=True, slots=True)
class Credential:
    """What a server keeps of one user's password: enough to check a proof, not enough to make one."""

    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int


def client_key(mechanism: Mechanism, salted_password: bytes) -> bytes:
    return mechanism.hmac(salted_password, b"Client Key")


def server_key(mechanism: Mechanism, salted_password: bytes) -> bytes:
    return mechanism.hmac(salted_password, b"Server Key")


def credential_of(mechanism: Mechanism, salted_password: bytes, salt: bytes, iterations: int) -> Credential:
    """What to keep of a password that `Mechanism.derive` has salted."""
    stored_key = mechanism.digest(client_key(mechanism, salted_password))
    return Credential(salt, stored_key, server_key(mechanism, salted_password), iterations)


def xor(left: bytes, right: bytes) -> bytes:
    assert len(left) == len(right), "keys and signatures of one mechanism are equally long"
    return (int.from_bytes(left, "big") ^ int.from_bytes(right, "big")).to_bytes(len(left), "big")


def salt_of(random: bytes) -> bytes:
    """A salt that looks like those that Kafka's tools make: 130 bits as digits to base 36."""
    assert len(random) >= RANDOM_BYTES, "a salt wants 130 random bits"
    number = int.from_bytes(random[:RANDOM_BYTES], "big") >> (RANDOM_BYTES * 8 - _BITS)
    digits = []
    while number:
        number, digit = divmod(number, 36)
        digits.append(_DIGITS[digit])
    return "".join(reversed(digits)).encode("ascii") or b"0"


def nonce_of(random: bytes) -> str:
    """A nonce of printable characters without a comma."""
    assert len(random) >= RANDOM_BYTES, "a nonce wants 130 random bits"
    return base64.urlsafe_b64encode(random).rstrip(b"=").decode("ascii")


@dataclass(frozen=True, slots=True)
class Strangers:
    """What names without a credential are shown, so that nobody learns which names exist.

    It must be the same on every node and at every time, and nobody outside may compute it: hence a secret of the
    cluster. A user whose password was salted with another number of rounds than `iterations` can be told from a
    stranger; that is what the default is for.
    """

    secret: bytes = field(repr=False)
    iterations: int = ITERATIONS_DEFAULT

    def salt(self, mechanism: Mechanism, name: str) -> bytes:
        return salt_of(self._drawn(b"salt", mechanism, name))

    def credential(self, mechanism: Mechanism, name: str) -> Credential:
        """Keys that no password has: finding one would be finding a preimage."""
        key = self._drawn(b"key", mechanism, name)[: mechanism.digest_bytes]
        return Credential(self.salt(mechanism, name), key, key, self.iterations)

    def _drawn(self, use: bytes, mechanism: Mechanism, name: str) -> bytes:
        text = b"\0".join((use, mechanism.name.encode("ascii"), name.encode("utf-8", "surrogatepass")))
        return hmac.digest(self.secret, text, "sha512")
