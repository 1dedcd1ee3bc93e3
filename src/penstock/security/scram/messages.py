"""The four texts of SCRAM, read and written.

Client first:  `n,[a=authzid],[m=…,]n=<name>,r=<nonce>[,ext=value]*`
Server first:  `[m=…,]r=<client's nonce><server's nonce>,s=<salt>,i=<iterations>[,ext=value]*`
Client final:  `c=<GS2 header>,r=<the same nonce>[,ext=value]*,p=<proof>`
Server final:  `v=<signature>` or `e=<error>`, each `[,ext=value]*`

As Kafka reads them, so `m=` and unknown extensions are ignored, with one step further: names may be any UTF-8, which
RFC 5802 allows and Kafka's ASCII patterns do not.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from penstock.model.errors import PenstockError

MESSAGE_BYTES_MAX: Final = 8_192
"""Of one message; real ones have a few hundred. A server keeps several copies of a stranger's until its login is over,
so what a frame may have is too much by far."""

_SASLNAME: Final = r"(?:[^\x00=,]|=2C|=3D)+"
_NONCE: Final = r"[\x21-\x2b\x2d-\x7e]+"
_VALUE: Final = r"[\x01-\x2b\x2d-\x7f]+"
_BASE64: Final = r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{2}==)?"
_EXTENSIONS: Final = rf"(?:,[A-Za-z]+={_VALUE})*"

_CLIENT_FIRST: Final = re.compile(
    rf"(?P<gs2>n,(?:a=(?P<authzid>{_SASLNAME}))?,)"
    rf"(?P<bare>(?:m={_VALUE},)?n=(?P<name>{_SASLNAME}),r=(?P<nonce>{_NONCE})(?P<extensions>{_EXTENSIONS}))"
)
_SERVER_FIRST: Final = re.compile(
    rf"(?:m={_VALUE},)?r=(?P<nonce>{_NONCE}),s=(?P<salt>{_BASE64}),i=(?P<iterations>[0-9]{{1,10}}){_EXTENSIONS}"
)
_CLIENT_FINAL: Final = re.compile(
    rf"(?P<unproved>c=(?P<binding>{_BASE64}),r=(?P<nonce>{_NONCE}){_EXTENSIONS}),p=(?P<proof>{_BASE64})"
)
_SERVER_FINAL: Final = re.compile(
    rf"(?:e=(?P<error>[\x01-\x2b\x2d-\x3c\x3e-\x7f]+)|v=(?P<signature>{_BASE64})){_EXTENSIONS}"
)


class Malformed(PenstockError):
    """Bytes that are not the message that was expected. The bytes themselves are not told: they may hold secrets."""


@dataclass(frozen=True, slots=True)
class ClientFirst:
    name: str
    nonce: str
    authzid: str = ""
    extensions: Mapping[str, str] = field(default_factory=dict)

    @property
    def gs2_header(self) -> str:
        return f"n,a={escaped(self.authzid)}," if self.authzid else "n,,"

    @property
    def bare(self) -> str:
        extensions = "".join(f",{key}={value}" for key, value in self.extensions.items())
        return f"n={escaped(self.name)},r={self.nonce}{extensions}"

    @property
    def by_token(self) -> bool:
        """The name is the id of a delegation token."""
        return self.extensions.get("tokenauth", "").lower() == "true"


@dataclass(frozen=True, slots=True)
class Heard:
    """A client's first message as it was sent: signatures are made over its text, not over how we would write it."""

    message: ClientFirst
    gs2_header: str
    bare: str


@dataclass(frozen=True, slots=True)
class ServerFirst:
    nonce: str
    salt: bytes = field(repr=False)
    iterations: int
    text: str = field(repr=False)
    """As it was sent, which is what both sides sign."""


@dataclass(frozen=True, slots=True)
class ClientFinal:
    binding: bytes
    nonce: str
    proof: bytes = field(repr=False)
    unproved: str = field(repr=False)
    """The message without its proof, which is what the proof is made over."""


@dataclass(frozen=True, slots=True)
class ServerFinal:
    signature: bytes = field(default=b"", repr=False)
    error: str | None = None


def parse_client_first(data: bytes) -> Heard:
    found = _matched(_CLIENT_FIRST, data, "first message of a SCRAM client")
    extensions = dict(pair.split("=", 1) for pair in found["extensions"].split(",")[1:])
    authzid = unescaped(found["authzid"]) if found["authzid"] else ""
    message = ClientFirst(unescaped(found["name"]), found["nonce"], authzid, extensions)
    return Heard(message, found["gs2"], found["bare"])


def parse_server_first(data: bytes) -> ServerFirst:
    found = _matched(_SERVER_FIRST, data, "first message of a SCRAM server")
    return ServerFirst(found["nonce"], base64.b64decode(found["salt"]), int(found["iterations"]), found[0])


def parse_client_final(data: bytes) -> ClientFinal:
    found = _matched(_CLIENT_FINAL, data, "final message of a SCRAM client")
    binding, proof = base64.b64decode(found["binding"]), base64.b64decode(found["proof"])
    return ClientFinal(binding, found["nonce"], proof, found["unproved"])


def parse_server_final(data: bytes) -> ServerFinal:
    found = _matched(_SERVER_FINAL, data, "final message of a SCRAM server")
    if found["error"] is not None:
        return ServerFinal(error=found["error"])
    return ServerFinal(base64.b64decode(found["signature"]))


def challenge(nonce: str, salt: bytes, iterations: int) -> ServerFirst:
    return ServerFirst(nonce, salt, iterations, f"r={nonce},s={encoded(salt)},i={iterations}")


def unproved_text(gs2_header: str, nonce: str) -> str:
    """A client's final message without its proof. Without channel binding the header is all there is to bind to."""
    return f"c={encoded(gs2_header.encode())},r={nonce}"


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def escaped(name: str) -> str:
    return name.replace("=", "=3D").replace(",", "=2C")


def unescaped(saslname: str) -> str:
    """The name that a saslname means; the patterns let no other `=` through."""
    return saslname.replace("=2C", ",").replace("=3D", "=")


def _matched(pattern: re.Pattern[str], data: bytes, what: str) -> re.Match[str]:
    if len(data) > MESSAGE_BYTES_MAX:
        raise Malformed(f"the {what} has more than {MESSAGE_BYTES_MAX} bytes")
    try:
        found = pattern.fullmatch(data.decode("utf-8"))
    except UnicodeDecodeError:
        found = None
    if found is None:
        raise Malformed(f"this is not the {what}")
    return found
