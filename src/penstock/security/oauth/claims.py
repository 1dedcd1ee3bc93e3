"""What a token claims, and whether that is enough: from whom, for whom, about whom, from when to when.

As Kafka's broker judges: `exp` and `iat` must be there, `nbf` may; clocks may differ by the skew; issuer and audience
count when they are configured; the name is the claim that says who it is; scopes are read and never required.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from penstock.model.ids import Millis
from penstock.security.oauth.jws import NotAccepted
from penstock.security.oauth.messages import GoodToken

_SECONDS_MAX: Final = 1 << 53
"""Beyond this a JSON number is not exact, and no calendar has the year."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What a listener expects of a token; the `sasl.oauthbearer.*` properties of the same names."""

    issuer: str | None = None
    audience: tuple[str, ...] = ()
    clock_skew_seconds: int = 30
    scope_claim_name: str = "scope"
    sub_claim_name: str = "sub"


def judge(claims: Mapping[str, Any], expected: Expected, wall_ms: Millis) -> GoodToken:
    """Whose token it is. NotAccepted says what is wrong with it."""
    expires_s, issued_s = _times(claims, expected, wall_ms / 1_000)
    if expected.issuer is not None and claims.get("iss") != expected.issuer:
        raise NotAccepted("the token is from another issuer")
    _check_audience(claims, expected)
    name = claims.get(expected.sub_claim_name)
    if not isinstance(name, str) or not name.strip():
        raise NotAccepted(f"the token names nobody: its claim {expected.sub_claim_name!r} is no text")
    return GoodToken(
        name.strip(),
        Millis(int(expires_s * 1_000)),
        Millis(int(issued_s * 1_000)),
        _scopes(claims, expected.scope_claim_name),
    )


def _times(claims: Mapping[str, Any], expected: Expected, now_s: float) -> tuple[float, float]:
    expires_s, issued_s, begins_s = (_seconds(claims, name) for name in ("exp", "iat", "nbf"))
    if expires_s is None or issued_s is None:
        raise NotAccepted("the token does not say when it ends or was issued (exp, iat)")
    if now_s - expected.clock_skew_seconds >= expires_s:
        raise NotAccepted("the token has expired")
    if begins_s is not None and now_s + expected.clock_skew_seconds < begins_s:
        raise NotAccepted("the token is not good yet (nbf)")
    if expires_s < issued_s or (begins_s is not None and expires_s < begins_s):
        raise NotAccepted("the token ends before it begins")
    return expires_s, issued_s


def _seconds(claims: Mapping[str, Any], name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= _SECONDS_MAX:
        raise NotAccepted(f"the token's claim {name!r} is no time")
    return int(value)


def _check_audience(claims: Mapping[str, Any], expected: Expected) -> None:
    if not expected.audience:
        return
    audience = claims.get("aud")
    named = [audience] if isinstance(audience, str) else audience
    if not isinstance(named, list) or not any(name in expected.audience for name in named if isinstance(name, str)):
        raise NotAccepted("the token is for another audience")


def _scopes(claims: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = claims.get(name)
    if isinstance(value, str):
        if not value.strip():
            raise NotAccepted("the token has a scope that is no text")
        return tuple(dict.fromkeys(value.split()))
    if not isinstance(value, list):
        return ()
    if not all(isinstance(scope, str) and scope.strip() for scope in value):
        raise NotAccepted("the token has a scope that is no text")
    scopes = tuple(scope.strip() for scope in value)
    if len(set(scopes)) != len(scopes):
        raise NotAccepted("the token names a scope twice")
    return scopes
