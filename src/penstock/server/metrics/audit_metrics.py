"""What the audit stream tells of itself. Nothing where there is none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from penstock.server.metrics.page import Sample
from penstock.transport.prometheus import COUNTER

if TYPE_CHECKING:
    from penstock.server.auditing.stream import Audit


def audit_samples(*streams: Audit) -> Iterator[Sample]:
    """Over both sides of a node."""
    if not streams:
        return
    for kind in streams[0].events:
        told = sum(each.events[kind] for each in streams)
        yield Sample("penstock_audit_events_total", {"type": kind.value}, told, COUNTER, "Audit events, by type")
    for reason in streams[0].drops:
        lost = sum(each.drops[reason] for each in streams)
        words = "Audit events that are not in the file, by the bound that they met"
        yield Sample("penstock_audit_drops_total", {"reason": reason}, lost, COUNTER, words)
