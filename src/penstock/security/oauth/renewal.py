"""When a client asks for its next access token: some time before the one it has ends. By Kafka's rules.

At a share of the token's life, with some jitter, so that clients that began together ask apart; not within `min_ms`
after it was obtained, and not later than `buffer_ms` before it ends. Where a token's life is too short for both, the
share alone decides.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.model.errors import PenstockError
from penstock.model.secret import Secret
from penstock.security.oauth.jws import NotAccepted, claims_of


class NoToken(PenstockError):
    """No access token can be had. `again`: asking once more may help. Names no part of a token or secret."""

    def __init__(self, why: str, *, again: bool = False) -> None:
        super().__init__(why)
        self.again = again


@dataclass(frozen=True, slots=True)
class RenewalPolicy:
    """The `sasl.login.refresh.*` and `sasl.login.retry.*` properties."""

    window_factor: float = 0.8
    window_jitter: float = 0.05
    min_ms: int = 60_000
    buffer_ms: int = 300_000
    backoff_ms: int = 100
    backoff_max_ms: int = 10_000

    def renew_at_ms(self, begins_ms: float, ends_ms: float, now_ms: float, share: float) -> float:
        """`share` is a random number from 0 to 1."""
        at_ms = begins_ms + (ends_ms - begins_ms) * (self.window_factor + self.window_jitter * share)
        if self.min_ms + self.buffer_ms > ends_ms - now_ms:
            return at_ms
        return max(now_ms + self.min_ms, min(at_ms, ends_ms - self.buffer_ms))

    def wait_ms(self, failures: int) -> float:
        """How long to wait before asking again, after so many failures in a row."""
        return min(self.backoff_ms << min(failures, 20), self.backoff_max_ms)


@dataclass(frozen=True, slots=True)
class AccessToken:
    """A token that we have, and from when to when it is good by its own word, in wall time.

    A token that does not say when it ends is asked for anew at every login.
    """

    token: Secret
    begins_ms: float
    ends_ms: float | None = None


def access_token(text: str, now_ms: float, lifetime_s: float | None = None) -> AccessToken:
    """`lifetime_s` is what the endpoint says about a token that cannot be read. NoToken when it cannot be sent."""
    token = text.strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise NoToken("what was given for an access token is none")
    try:
        claims = claims_of(token)
    except NotAccepted:
        ends_ms = None if lifetime_s is None else now_ms + lifetime_s * 1_000
        return AccessToken(Secret(token), now_ms, ends_ms)
    ends_s, begins_s = (_seconds(claims.get(name)) for name in ("exp", "iat"))
    return AccessToken(
        Secret(token), now_ms if begins_s is None else begins_s * 1_000, None if ends_s is None else ends_s * 1_000
    )


def _seconds(value: object) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
