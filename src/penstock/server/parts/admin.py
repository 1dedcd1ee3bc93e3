"""What the admin port asks of those who come, by its settings: TLS, a login, both, or nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from penstock.model.errors import PenstockError
from penstock.model.secret import Secret
from penstock.server.reception.entrance import BadListeners
from penstock.server.securing import ADMIN, ADMIN_PROTOCOL

if TYPE_CHECKING:
    from penstock.model.config import BrokerSettings
    from penstock.model.ports import Clock
    from penstock.security.http_login import Attempt, HttpLogins
    from penstock.server.logs import Sparing
    from penstock.server.metrics.admin_guard import AdminGuard
    from penstock.server.reception.tls_door import TlsDoor

LISTENER: Final = "penstock.admin.listener"
STRANGERS_MAX: Final = 64
"""Handshakes under way; this port serves a few scrapers and probes."""
_NAME_SHOWN_MAX: Final = 64

LoginFailed = Callable[[str, str, str | None, str, str, str], None]
"""Told the address, the listener, the client id, the mechanism, the name and the reason: `AuditDoor.login_failed`."""


def admin_tls(settings: BrokerSettings) -> TlsDoor | None:
    """None for a port without TLS, or no port. `BadListeners` when it cannot be served."""
    if settings.text(ADMIN_PROTOCOL) != "SSL" or not settings.text(LISTENER):
        return None
    if ADMIN in {each.name for each in settings.listeners}:
        raise BadListeners(f"listeners has the name {ADMIN}, which is that of the port of {LISTENER}")
    from penstock.server.reception.tls_door import TlsDoor

    try:
        return TlsDoor(settings, ADMIN)
    except PenstockError as bad:
        raise BadListeners(f"{LISTENER} ({ADMIN_PROTOCOL}=SSL): {bad}") from None


def admin_logins(settings: BrokerSettings) -> HttpLogins | None:
    """None where no login is set. `BadListeners` when half of one is."""
    username = settings.text("penstock.admin.username")
    password, token = (settings[f"penstock.admin.{name}"] for name in ("password", "bearer.token"))
    if not username and password is None and token is None:
        return None
    from penstock.security.http_login import HttpLogins

    assert password is None or isinstance(password, Secret), "a password"
    assert token is None or isinstance(token, Secret), "a password"
    try:
        return HttpLogins(username, password, token)
    except PenstockError as bad:
        raise BadListeners(f"penstock.admin.username, .password and .bearer.token: {bad}") from None


def guard_of(
    logins: HttpLogins, delay_ms: int, clock: Clock, sparing: Sparing, login_failed: LoginFailed | None
) -> AdminGuard:
    """`delay_ms` is that of a first failure."""
    from penstock.security.failures import FailureDelays
    from penstock.server.metrics.admin_guard import DELAY_MS_MAX, AdminGuard

    def failed(host: str, attempt: Attempt) -> None:
        name = attempt.name[:_NAME_SHOWN_MAX]
        sparing.warning(
            f"admin login {host}", "a login of %r from %s on the admin port by %s failed: %s",
            name, host, attempt.mechanism, attempt.failure,
        )  # fmt: skip
        if login_failed is not None:
            login_failed(host, ADMIN, None, attempt.mechanism, name, attempt.failure)

    delays = FailureDelays(min(delay_ms, DELAY_MS_MAX), DELAY_MS_MAX)
    return AdminGuard(logins, delays, clock.monotonic_ms, failed)
