"""The SASL texts of OAUTHBEARER and both sides of the exchange.

Client first: `n,[a=authzid],` 0x01 `auth=Bearer <token>` 0x01 [`key=value` 0x01]* 0x01.
A token that is refused is answered by `{"status":"invalid_token"}` as if it were a challenge; the client answers 0x01,
and only then the login fails, with that JSON as its words.

| server state | a token | the verdict |
|---|---|---|
| FIRST | well formed → `CheckToken` → CHECKING; else rejected | – |
| CHECKING | – | good → accepted with an empty token; else the JSON → REFUSED |
| REFUSED | 0x01 or anything else → rejected, told the JSON | – |
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from penstock.model.errors import PenstockError
from penstock.model.ids import Millis
from penstock.model.secret import Secret
from penstock.security.exchange import (
    Accepted,
    CheckToken,
    ClientStep,
    Finished,
    Identity,
    Rejected,
    ServerStep,
    Token,
)

MECHANISM: Final = "OAUTHBEARER"
INVALID_TOKEN: Final = '{"status":"invalid_token"}'
_SEPARATOR: Final = "\x01"

_SASLNAME: Final = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_PAIRS: Final = r"(?:[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01)*"
_CLIENT_FIRST: Final = re.compile(rf"n,(?:a=(?P<authzid>{_SASLNAME}))?,\x01(?P<pairs>{_PAIRS})\x01")
_AUTH: Final = re.compile(r"(?P<scheme>\w+) +(?P<token>[-_~+/.a-zA-Z0-9]+=*)", re.ASCII)
_EXTENSION_NAME: Final = re.compile(r"[A-Za-z]+")
_EXTENSION_VALUE: Final = re.compile(r"[\x21-\x7e \t\r\n]+")


class Malformed(PenstockError):
    """Bytes that are not the message that was expected, or extensions that cannot be sent."""


@dataclass(frozen=True, slots=True)
class ClientFirst:
    token: str = field(repr=False)
    authzid: str = ""
    extensions: Mapping[str, str] = field(default_factory=dict)

    @property
    def data(self) -> bytes:
        header = f"n,a={self.authzid.replace('=', '=3D').replace(',', '=2C')}," if self.authzid else "n,,"
        pairs = [f"auth=Bearer {self.token}", *(f"{key}={value}" for key, value in self.extensions.items())]
        return _SEPARATOR.join((header, *pairs, "", "")).encode("ascii")


def parse_client_first(data: bytes) -> ClientFirst:
    found = _CLIENT_FIRST.fullmatch(data.decode("utf-8", "replace"))
    if found is None:
        raise Malformed("this is not the first message of an OAUTHBEARER client")
    pairs = dict(pair.split("=", 1) for pair in found["pairs"].split(_SEPARATOR)[:-1])
    auth = pairs.pop("auth", None)
    if auth is None:
        raise Malformed("the first message has no 'auth'")
    parts = _AUTH.fullmatch(auth)
    if parts is None or parts["scheme"].lower() != "bearer":
        raise Malformed("'auth' is not a bearer token")
    authzid = (found["authzid"] or "").replace("=2C", ",").replace("=3D", "=")
    return ClientFirst(parts["token"], authzid, pairs)


def check_extensions(extensions: Mapping[str, str]) -> None:
    """Malformed when something cannot be sent as an extension."""
    for key, value in extensions.items():
        if _EXTENSION_NAME.fullmatch(key) is None or key == "auth":
            raise Malformed(f"{key!r} cannot be the name of an extension: letters only, and not 'auth'")
        if _EXTENSION_VALUE.fullmatch(value) is None:
            raise Malformed(f"the value of extension {key!r} must be printable ASCII")


@dataclass(frozen=True, slots=True)
class GoodToken:
    """Whose token it is, and until when it is good."""

    name: str
    expires_at_ms: Millis
    issued_at_ms: Millis | None = None
    scopes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BadToken:
    """Why a token is not accepted: for our own log, the peer hears `invalid_token` and no more."""

    why: str


Verdict: TypeAlias = GoodToken | BadToken


class OAuthServer:
    """One login."""

    def __init__(self) -> None:
        self._first: ClientFirst | None = None
        self._refused: str | None = None

    def heard(self, token: bytes, wall_ms: Millis) -> ServerStep:
        if self._refused is not None:
            return Rejected(self._refused, INVALID_TOKEN)
        try:
            self._first = parse_client_first(token)
        except Malformed as malformed:
            return Rejected(str(malformed))
        return CheckToken(self._first.token)

    def worked(self, result: object, wall_ms: Millis) -> ServerStep:
        # Who was refused may take its time to say that it heard so; what it sent is not kept meanwhile.
        first, self._first = self._first, None
        assert first is not None, "a verdict follows a token"
        match result:
            case GoodToken() if first.authzid and first.authzid != result.name:
                told = (
                    f"Authentication failed: Client requested an authorization id ({first.authzid}) "
                    f"that is different from the token's principal name ({result.name})"
                )
                return Rejected("another authorization id", told, result.name)
            case GoodToken():
                return Accepted(b"", Identity(result.name, result.expires_at_ms, extensions=first.extensions))
            case BadToken():
                self._refused = result.why
                return Token(INVALID_TOKEN.encode())
        raise AssertionError("a verdict is good or bad")


class OAuthClient:
    """One login. As in PLAIN the server proves nothing: TLS has to."""

    def __init__(self, token: Secret, *, authzid: str = "", extensions: Mapping[str, str] | None = None) -> None:
        check_extensions(extensions or {})
        self._token, self._authzid, self._extensions = token, authzid, dict(extensions or {})
        self._refusal = ""

    def start(self) -> ClientStep:
        return Token(ClientFirst(self._token.reveal(), self._authzid, self._extensions).data)

    def heard(self, token: bytes) -> ClientStep:
        if self._refusal:
            return Rejected(self._refusal)
        if not token:
            return Finished()
        self._refusal = f"the broker refused the access token: {_status(token)}"
        return Token(b"\x01")

    def worked(self, result: bytes) -> ClientStep:
        raise AssertionError("OAUTHBEARER hands out no work to clients")


def _status(data: bytes) -> str:
    """The status in a refusal; a server may write what it likes, so it is cut and shown as text."""
    try:
        told = json.loads(data)
    except ValueError:
        told = None
    status = told.get("status") if isinstance(told, dict) else None
    return status[:100] if isinstance(status, str) else "no reason given"
