"""What the admin port tells of itself: logins that failed. Nothing where none is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from penstock.server.metrics.page import Sample
from penstock.transport.prometheus import COUNTER

if TYPE_CHECKING:
    from penstock.server.metrics.admin_guard import AdminGuard


def admin_samples(guard: AdminGuard) -> Iterator[Sample]:
    for mechanism, failed in guard.failed.items():
        words = "Logins on the admin port that failed"
        yield Sample("penstock_admin_failed_logins_total", {"mechanism": mechanism}, failed, COUNTER, words)
