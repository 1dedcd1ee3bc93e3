"""Logins over HTTP, as the admin port asks for them: a name with a password (RFC 7617), or a bearer token (RFC 6750).

Every comparison takes as long as any other: what is compared are digests, and a wrong name does not spare the password.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from dataclasses import dataclass
from hashlib import sha256
from hmac import compare_digest
from typing import Final

from penstock.model.errors import PenstockError
from penstock.model.secret import Secret

BASIC: Final = "basic"
BEARER: Final = "bearer"
_REALM: Final = 'realm="penstock"'


class BadHttpLogin(PenstockError):
    """The settings name half a login."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """Somebody who tried to log in: how, as whom (chosen by a stranger), and why not, if not."""

    mechanism: str
    name: str
    failure: str = ""

    @property
    def known(self) -> bool:
        return not self.failure


class HttpLogins:
    """What opens a port; either of both, if both are set."""

    __slots__ = ("_basic", "_token")

    def __init__(self, username: str = "", password: Secret | None = None, token: Secret | None = None) -> None:
        """Raises BadHttpLogin for a name without a password, a password without a name, and what is empty."""
        if bool(username) != (password is not None):
            raise BadHttpLogin("a user name and a password are set together, or neither")
        if ":" in username:
            raise BadHttpLogin("a user name has no colon: it ends there")
        for secret, what in ((password, "password"), (token, "token")):
            if secret is not None and not secret.reveal():
                raise BadHttpLogin(f"the {what} is empty")
        self._basic = None if password is None else (_digest(username.encode()), _digest(password.reveal().encode()))
        self._token = None if token is None else _digest(token.reveal().encode())

    @property
    def asked_for(self) -> bool:
        return self._basic is not None or self._token is not None

    def challenges(self) -> tuple[str, ...]:
        """The values of WWW-Authenticate."""
        basic = (f'Basic {_REALM}, charset="UTF-8"',) if self._basic is not None else ()
        return basic + ((f"Bearer {_REALM}",) if self._token is not None else ())

    def judge(self, authorization: str) -> Attempt:
        """By the header of that name."""
        scheme, _, credentials = authorization.strip().partition(" ")
        match scheme.lower():
            case "basic" if self._basic is not None:
                return self._judge_basic(credentials.strip())
            case "bearer" if self._token is not None:
                given = _digest(credentials.strip().encode("latin-1", "replace"))
                return Attempt(BEARER, "", "" if compare_digest(given, self._token) else "wrong token")
        return Attempt(scheme.lower()[:16], "", "this way to log in is not offered")

    def _judge_basic(self, credentials: str) -> Attempt:
        assert self._basic is not None, "it is offered"
        try:
            decoded = b64decode(credentials, validate=True)
        except (binascii.Error, ValueError):
            return Attempt(BASIC, "", "the credentials are not base64")
        name, colon, password = decoded.partition(b":")
        shown = name.decode("utf-8", "replace")
        right = compare_digest(_digest(name), self._basic[0]) & compare_digest(_digest(password), self._basic[1])
        return Attempt(BASIC, shown, "" if right and colon else "wrong user name or password")


def _digest(content: bytes) -> bytes:
    return sha256(content).digest()
