"""The client's side of SCRAM.

| state | a token | the result of the derivation |
|---|---|---|
| FIRST sent | a challenge with our nonce and a bearable number of rounds → `Derive`; else rejected | – |
| DERIVING | – | the proof |
| FINAL sent | the server's signature → finished; a wrong one, or `e=` → rejected | – |

A client trusts a server no more than the reverse: rounds are bounded (a hostile server could keep a process busy for
minutes), the nonce must continue ours, and without the right `v=` the server has proved nothing.
"""

from __future__ import annotations

import hmac
from typing import Final

from penstock.model.secret import Secret
from penstock.security.exchange import ClientStep, Finished, Rejected, Token
from penstock.security.scram.keys import ITERATIONS_MIN, Mechanism, client_key, server_key, xor
from penstock.security.scram.messages import (
    ClientFirst,
    Malformed,
    ServerFirst,
    encoded,
    parse_server_final,
    parse_server_first,
    unproved_text,
)

CLIENT_ITERATIONS_MAX: Final = 1_000_000
"""About half a second of one core; a server that asks for more has something else in mind than a login."""


class ScramClient:
    """One login of `name`, or of the delegation token of that id."""

    def __init__(
        self, mechanism: Mechanism, name: str, password: Secret, nonce: str, *, authzid: str = "", token: bool = False
    ) -> None:
        self._mechanism = mechanism
        self._password = password
        self._message = ClientFirst(name, nonce, authzid, {"tokenauth": "true"} if token else {})
        self._first: ServerFirst | None = None
        self._signature: bytes | None = None

    def start(self) -> ClientStep:
        return Token((self._message.gs2_header + self._message.bare).encode("utf-8", "surrogatepass"))

    def heard(self, token: bytes) -> ClientStep:
        try:
            return self._challenged(token) if self._first is None else self._concluded(token)
        except Malformed as malformed:
            return Rejected(str(malformed), name=self._message.name)

    def worked(self, result: bytes) -> ClientStep:
        first, mechanism = self._first, self._mechanism
        assert first is not None, "a key is derived after a challenge"
        unproved = unproved_text(self._message.gs2_header, first.nonce)
        signed = f"{self._message.bare},{first.text},{unproved}".encode("utf-8", "surrogatepass")
        key = client_key(mechanism, result)
        proof = xor(key, mechanism.hmac(mechanism.digest(key), signed))
        self._signature = mechanism.hmac(server_key(mechanism, result), signed)
        return Token(f"{unproved},p={encoded(proof)}".encode())

    def _challenged(self, token: bytes) -> ClientStep:
        first = parse_server_first(token)
        if not first.nonce.startswith(self._message.nonce) or first.nonce == self._message.nonce:
            return self._rejected("the server's nonce does not continue ours")
        if not ITERATIONS_MIN <= first.iterations <= CLIENT_ITERATIONS_MAX:
            bounds = f"from {ITERATIONS_MIN} to {CLIENT_ITERATIONS_MAX}"
            return self._rejected(f"the server asks for {first.iterations} rounds; this client does {bounds}")
        self._first = first
        return self._mechanism.derive(self._password.reveal(), first.salt, first.iterations)

    def _concluded(self, token: bytes) -> ClientStep:
        final = parse_server_final(token)
        if self._signature is None:
            return self._rejected("the server concluded a login that was not proved yet")
        if final.error is not None:
            return self._rejected(f"the server refused the login: {final.error}")
        if not hmac.compare_digest(final.signature, self._signature):
            return self._rejected("the server does not know this user's keys: its signature is wrong")
        return Finished()

    def _rejected(self, why: str) -> Rejected:
        return Rejected(why, name=self._message.name)
