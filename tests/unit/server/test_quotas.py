"""No quotas yet; what happens when there are some is in test_connection."""

from __future__ import annotations

from types import SimpleNamespace

from penstock.server.context import Context
from penstock.server.quotas import UNLIMITED


def test_without_quotas_nobody_pauses() -> None:
    ctx = Context(SimpleNamespace(), 0, 9)  # type: ignore[arg-type]
    assert UNLIMITED.throttle_ms(ctx, 1 << 30, 1 << 30, 1e9) == 0
