"""The server's side of SCRAM.

| state | a token | the result of a derivation |
|---|---|---|
| FIRST | a challenge → FINAL, or `Derive` for a new delegation token → DERIVING; malformed: rejected | – |
| DERIVING | – | the challenge → FINAL |
| FINAL | a good proof → accepted; anything else → rejected | – |

A name that has no credential is challenged like any other, and fails at the second step after the same work: who
probes for names learns nothing. Kafka fails such a name at once.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field
from typing import Final, Protocol

from penstock.model.ids import Millis
from penstock.security.exchange import Accepted, Derive, Identity, Rejected, ServerStep, Token
from penstock.security.scram.keys import ITERATIONS_MIN, Credential, Mechanism, Strangers, credential_of, xor
from penstock.security.scram.messages import (
    Heard,
    Malformed,
    ServerFirst,
    challenge,
    encoded,
    parse_client_final,
    parse_client_first,
)

OTHER_AUTHORIZATION_ID: Final = (
    "Authentication failed: Client requested an authorization id that is different from username"
)


@dataclass(frozen=True, slots=True)
class TokenLogin:
    """What is needed to log in somebody by a delegation token: its HMAC in base64 is the password.

    `salted` is that password salted by `Strangers.salt` of its id, if somebody has kept it since an earlier login.
    """

    owner: str
    expires_at_ms: Millis
    password: str = field(repr=False)
    salted: bytes | None = field(default=None, repr=False)


class Credentials(Protocol):
    """Where keys are looked up: the credentials and delegation tokens of the image."""

    def of_user(self, mechanism: Mechanism, name: str) -> Credential | None: ...
    def of_token(self, mechanism: Mechanism, token_id: str) -> TokenLogin | None: ...


class ScramServer:
    """One login."""

    def __init__(self, mechanism: Mechanism, credentials: Credentials, strangers: Strangers, server_nonce: str) -> None:
        self._mechanism = mechanism
        self._credentials = credentials
        self._strangers = strangers
        self._server_nonce = server_nonce
        self._heard: Heard | None = None
        self._login: TokenLogin | None = None
        self._identity: Identity | None = None  # None for a stranger, whom no proof can help
        self._credential: Credential | None = None
        self._first: ServerFirst | None = None

    def heard(self, token: bytes, wall_ms: Millis) -> ServerStep:
        try:
            return self._begin(token, wall_ms) if self._first is None else self._end(token)
        except Malformed as malformed:
            return Rejected(str(malformed), name=self._name)

    def worked(self, result: object, wall_ms: Millis) -> ServerStep:
        assert isinstance(result, bytes), "a derivation gives bytes"
        assert self._login is not None, "only the login by a token derives a key"
        return self._challenge(self._token_credential(result))

    @property
    def _name(self) -> str:
        return "" if self._heard is None else self._heard.message.name

    def _begin(self, token: bytes, wall_ms: Millis) -> ServerStep:
        self._heard = parse_client_first(token)
        message = self._heard.message
        if message.authzid and message.authzid != message.name:
            return Rejected("another authorization id", told=OTHER_AUTHORIZATION_ID, name=message.name)
        if message.by_token:
            return self._begin_by_token(message.name, wall_ms)
        # Made for everybody: what only strangers cost could be measured by who probes for names.
        nobody = self._strangers.credential(self._mechanism, message.name)
        credential = self._credentials.of_user(self._mechanism, message.name)
        # A credential with too few rounds cannot have come through our own doors; its owner is treated as a stranger.
        if credential is not None and credential.iterations >= ITERATIONS_MIN:
            self._identity = Identity(message.name)
            return self._challenge(credential)
        return self._challenge(nobody)

    def _begin_by_token(self, token_id: str, wall_ms: Millis) -> ServerStep:
        login = self._credentials.of_token(self._mechanism, token_id)
        if login is None or login.expires_at_ms <= wall_ms:
            return self._challenge(self._strangers.credential(self._mechanism, token_id))
        self._login = login
        self._identity = Identity(login.owner, login.expires_at_ms, by_delegation_token=True)
        if login.salted is None:
            salt = self._strangers.salt(self._mechanism, token_id)
            return self._mechanism.derive(login.password, salt, self._strangers.iterations)
        return self._challenge(self._token_credential(login.salted))

    def _token_credential(self, salted: bytes) -> Credential:
        salt = self._strangers.salt(self._mechanism, self._name)
        return credential_of(self._mechanism, salted, salt, self._strangers.iterations)

    def _challenge(self, credential: Credential) -> Token:
        assert self._heard is not None, "a challenge answers a first message"
        self._credential = credential
        nonce = self._heard.message.nonce + self._server_nonce
        self._first = challenge(nonce, credential.salt, credential.iterations)
        return Token(self._first.text.encode())

    def _end(self, token: bytes) -> ServerStep:
        heard, first, credential = self._heard, self._first, self._credential
        assert heard is not None, "a proof follows a first message"
        assert first is not None, "a proof follows a challenge"
        assert credential is not None, "a challenge shows the salt of a credential"
        final = parse_client_final(token)
        # The proof covers nonce and binding as the client wrote them, so they must be compared with what we wrote.
        if final.nonce != first.nonce:
            return Rejected("the nonce is not the one that was given", name=self._name)
        if final.binding != heard.gs2_header.encode():
            return Rejected("the channel binding is not that of the first message", name=self._name)
        signed = f"{heard.bare},{first.text},{final.unproved}".encode()
        if not self._proves(final.proof, signed) or self._identity is None:
            return Rejected("wrong password, or no such user", name=self._name)
        signature = self._mechanism.hmac(credential.server_key, signed)
        return Accepted(f"v={encoded(signature)}".encode(), self._identity)

    def _proves(self, proof: bytes, signed: bytes) -> bool:
        credential, mechanism = self._credential, self._mechanism
        assert credential is not None, "a proof follows a challenge"
        if len(proof) != mechanism.digest_bytes:
            return False
        key = xor(proof, mechanism.hmac(credential.stored_key, signed))
        return hmac.compare_digest(mechanism.digest(key), credential.stored_key)


def derivation_for(mechanism: Mechanism, strangers: Strangers, token_id: str, password: str) -> Derive:
    """The work that `TokenLogin.salted` keeps, for who does it before the first login."""
    return mechanism.derive(password, strangers.salt(mechanism, token_id), strangers.iterations)
