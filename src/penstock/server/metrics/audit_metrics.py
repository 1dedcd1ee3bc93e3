"""What the audit stream tells of itself. Nothing where there is none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from penstock.server.metrics.page import Sample
from penstock.transport.prometheus import COUNTER

if TYPE_CHECKING:
    from penstock.server.auditing.outlet import Outlet
    from penstock.server.auditing.stream import Audit


def audit_samples(streams: Sequence[Audit], to_topic: Sequence[Outlet]) -> Iterator[Sample]:
    """Over both sides of a node. The topic has an outlet on each, the one that writes it being the last."""
    if not streams:
        return
    for kind in streams[0].events:
        told = sum(each.events[kind] for each in streams)
        yield Sample("penstock_audit_events_total", {"type": kind.value}, told, COUNTER, "Audit events, by type")
    for reason in streams[0].drops:
        lost = sum(each.drops[reason] for each in streams)
        words = "Audit events that are not in the file, by the bound that they met"
        yield Sample("penstock_audit_drops_total", {"reason": reason}, lost, COUNTER, words)
    if not to_topic:
        return
    words = "Audit events that this node has written to the topic __penstock_audit"
    yield Sample("penstock_audit_topic_records_total", {}, to_topic[-1].delivered, COUNTER, words)
    for reason in to_topic[0].drops:
        lost = sum(each.drops[reason] for each in to_topic)
        words = "Audit events that are not in the topic __penstock_audit, by the bound that they met"
        yield Sample("penstock_audit_topic_drops_total", {"reason": reason}, lost, COUNTER, words)
