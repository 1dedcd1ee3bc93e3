"""PLAIN (RFC 4616): name and password as they are, so only for listeners with TLS.

The token is `[authzid] NUL name NUL password` in UTF-8. Users and passwords are the options `user_<name>` of the login
module (`jaas/`). One step: accepted with an empty token, or rejected in Kafka's words.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from typing import Final

from penstock.model.ids import Millis
from penstock.model.secret import Secret
from penstock.security.exchange import Accepted, ClientStep, Finished, Identity, Rejected, ServerStep, Token

MECHANISM: Final = "PLAIN"
_PARTS: Final = 3
_FAILED: Final = "Authentication failed: "
WRONG: Final = _FAILED + "Invalid username or password"
NO_NAME: Final = _FAILED + "username not specified"
NO_PASSWORD: Final = _FAILED + "password not specified"
OTHER_AUTHORIZATION_ID: Final = _FAILED + "Client requested an authorization id that is different from username"


class PlainUsers:
    """Who may log in with which password. Keeps digests: what is compared has one length whatever the passwords are."""

    def __init__(self, passwords: Mapping[str, Secret]) -> None:
        self._digests = {name: _digest(password.reveal()) for name, password in passwords.items()}

    def accepts(self, name: str, password: str) -> bool:
        """Takes as long for a name that does not exist."""
        expected = self._digests.get(name)
        same = hmac.compare_digest(_digest(password), expected or bytes(hashlib.sha256().digest_size))
        return same and expected is not None


class PlainServer:
    """One login."""

    def __init__(self, users: PlainUsers) -> None:
        self._users = users

    def heard(self, token: bytes, wall_ms: Millis) -> ServerStep:
        # What is no UTF-8 is nobody's name or password; Java puts replacement characters there and finds the same.
        parts = token.decode("utf-8", "replace").split("\0", _PARTS)
        if len(parts) != _PARTS:
            told = f"Invalid SASL/PLAIN response: expected {_PARTS} tokens, got {len(parts)}"
            return Rejected("malformed token", told)
        authzid, name, password = parts
        objection = self._objection(authzid, name, password)
        if objection is not None:
            return Rejected(objection, objection, name)
        return Accepted(b"", Identity(name))

    def worked(self, result: object, wall_ms: Millis) -> ServerStep:
        raise AssertionError("PLAIN hands out no work")

    def _objection(self, authzid: str, name: str, password: str) -> str | None:
        if not name:
            return NO_NAME
        if not password:
            return NO_PASSWORD
        if not self._users.accepts(name, password):
            return WRONG
        # Only who has the password learns that the authorization id was the trouble.
        return OTHER_AUTHORIZATION_ID if authzid and authzid != name else None


class PlainClient:
    """One login. A server proves nothing in PLAIN: TLS has to."""

    def __init__(self, name: str, password: Secret, *, authzid: str = "") -> None:
        for text in (authzid, name, password.reveal()):
            if "\0" in text:
                raise ValueError("a name or password of PLAIN cannot have the character NUL")
        self._name, self._password, self._authzid = name, password, authzid

    def start(self) -> ClientStep:
        return Token("\0".join((self._authzid, self._name, self._password.reveal())).encode())

    def heard(self, token: bytes) -> ClientStep:
        if token:
            return Rejected("the server sent a challenge, which PLAIN does not have", name=self._name)
        return Finished()

    def worked(self, result: bytes) -> ClientStep:
        raise AssertionError("PLAIN hands out no work")


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
