"""One login by one mechanism: what its two sides say to the machine that carries their tokens.

An exchange is fed tokens and answers with what to do next. Work that takes long is handed out as a value and its result
is handed back by `worked`, so that the shell can put it on a thread:

| step | server (`ServerExchange`) | client (`ClientExchange`) |
|---|---|---|
| `Token` | send it, wait for the next | send it, wait for the answer |
| `Derive` | run it off the loop, then `worked(result)` | the same |
| `CheckToken` | ask the keys and claims of the listener, then `worked(verdict)` | – |
| `Accepted` | send its token, the login is good | – |
| `Rejected` | answer the failure, then close | hang up |
| `Finished` | – | the server has proved itself, as far as the mechanism can |
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from penstock.model.ids import Millis


@dataclass(frozen=True, slots=True)
class Token:
    """Bytes for the other side. They may hold a password, so they are never printed."""

    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Derive:
    """A password to be salted by PBKDF2: 1 to 16 ms for what Kafka allows, far too long for a loop."""

    hash_name: str
    password: bytes = field(repr=False)
    salt: bytes
    iterations: int

    def run(self) -> bytes:
        return hashlib.pbkdf2_hmac(self.hash_name, self.password, self.salt, self.iterations)


@dataclass(frozen=True, slots=True)
class CheckToken:
    """A bearer token to be judged by the listener's keys, which may have to be fetched first."""

    token: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Identity:
    """Who logged in. `expires_at_ms` is the end of the credential in wall time, None when it has none."""

    name: str
    expires_at_ms: Millis | None = None
    by_delegation_token: bool = False
    extensions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Accepted:
    """The login is good. `token` is the last word of the server, maybe empty."""

    token: bytes = field(repr=False)
    identity: Identity


@dataclass(frozen=True, slots=True)
class Rejected:
    """The login failed. `told` is what the peer may know, None for no more than that; `why` is for our own log.

    `name` is who the peer claimed to be, as far as it got: attacker-chosen text, to be cut and escaped where shown.
    """

    why: str
    told: str | None = None
    name: str = ""


@dataclass(frozen=True, slots=True)
class Finished:
    """The client side is done."""


ServerStep: TypeAlias = Token | Derive | CheckToken | Accepted | Rejected
ClientStep: TypeAlias = Token | Derive | Finished | Rejected


class ServerExchange(Protocol):
    """The server's side of one login. It is used once, and lives at most as long as the login's deadline."""

    def heard(self, token: bytes, wall_ms: Millis) -> ServerStep: ...

    def worked(self, result: object, wall_ms: Millis) -> ServerStep:
        """The result of the `Derive` or `CheckToken` that was handed out last."""


class ClientExchange(Protocol):
    """The client's side of one login."""

    def start(self) -> ClientStep: ...
    def heard(self, token: bytes) -> ClientStep: ...
    def worked(self, result: bytes) -> ClientStep: ...
