"""A token judged by keys and claims: the answer to `exchange.CheckToken`.

Two steps, because the second takes long enough for a thread. `find` takes a token apart and looks its keys up; when
they are `Missing` and worth waiting for, the shell waits for the fetch (within the login's deadline) and calls again.
`check` touches nothing that changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from penstock.model.ids import Millis
from penstock.security.oauth.claims import Expected, judge
from penstock.security.oauth.jwks import KeySet, Missing
from penstock.security.oauth.jws import Jws, Key, NotAccepted, Signatures, parse_token, parse_unsigned
from penstock.security.oauth.messages import BadToken, Verdict

TRIED_KEYS_MAX: Final = 16
"""A token without a key id is tried with every key that fits, but strangers shall not buy much work."""


@dataclass(frozen=True, slots=True)
class Signed:
    """A token and the keys that may have signed it; none of either is judged yet."""

    jws: Jws
    keys: Sequence[Key]


class Judge(Protocol):
    """Whoever says which tokens are good."""

    def find(self, token: str, now: float) -> Signed | Missing | BadToken: ...
    def check(self, signed: Signed, wall_ms: Millis) -> Verdict: ...


class Validator:
    """Judges the tokens of one listener."""

    def __init__(self, keys: KeySet, expected: Expected, signatures: Signatures) -> None:
        self.keys = keys
        self._expected = expected
        self._signatures = signatures

    def judge_token(self, token: str, wall_ms: Millis, now: float) -> Verdict | Missing:
        """The verdict; Missing when a fetch of keys that is due may decide it."""
        found = self.find(token, now)
        return self.check(found, wall_ms) if isinstance(found, Signed) else found

    def find(self, token: str, now: float) -> Signed | Missing | BadToken:
        try:
            jws = parse_token(token)
        except NotAccepted as refused:
            return BadToken(str(refused))
        keys = self.keys.find(jws.key_id, now)
        if isinstance(keys, Missing):
            return keys if keys.worth_waiting else BadToken("the token's key is not known")
        return Signed(jws, keys)

    def check(self, signed: Signed, wall_ms: Millis) -> Verdict:
        try:
            self._check_signature(signed.jws, signed.keys)
            return judge(signed.jws.claims, self._expected, wall_ms)
        except NotAccepted as refused:
            return BadToken(str(refused))

    def _check_signature(self, jws: Jws, keys: Sequence[Key]) -> None:
        fitting = [key for key in keys if key.fits(jws.algorithm)]
        if not fitting:
            raise NotAccepted("the token's algorithm does not fit its key")
        good = self._signatures.good
        if not any(good(jws.algorithm, key, jws.signed, jws.signature) for key in fitting[:TRIED_KEYS_MAX]):
            raise NotAccepted("the token's signature is wrong")


class Unsecured:
    """Believes tokens that nobody signed: anybody is whoever they say. For trying things out, where asked for by name.

    Signed tokens are refused: whoever sends one expects that somebody looks at its signature.
    """

    def __init__(self, expected: Expected) -> None:
        self._expected = expected

    def find(self, token: str, now: float) -> Signed | BadToken:
        try:
            return Signed(parse_unsigned(token), ())
        except NotAccepted as refused:
            return BadToken(str(refused))

    def check(self, signed: Signed, wall_ms: Millis) -> Verdict:
        try:
            return judge(signed.jws.claims, self._expected, wall_ms)
        except NotAccepted as refused:
            return BadToken(str(refused))
