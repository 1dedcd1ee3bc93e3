"""The first page: in one sentence whether all is well, and if not, why and what to try."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from penstock.console.sampler.happened import Logged
from penstock.console.sampler.keeping import Keeper
from penstock.console.sampler.picture import HEALTH, METADATA, OFFSETS
from penstock.console.views.brokers import broker_rows
from penstock.console.views.groups import worst_lags
from penstock.console.views.seeing import Seeing
from penstock.console.views.topics import is_internal
from penstock.operations import health
from penstock.operations.health import Reason

ITEMS_SHOWN: Final = 20
_ABOUT_PARTITIONS: Final = ("leaderless", "under_min_isr", "under_replicated", "damaged", "late_transactions")
LAGS_SHOWN: Final = 8
EVENTS_SHOWN: Final = 20


def overview(seeing: Seeing, events: Sequence[Logged], keeper: Keeper | None = None) -> dict[str, Any]:
    picture, vision, whole = seeing.picture, seeing.vision, seeing.whole
    reasons = [visible(seeing, reason) for reason in picture.reasons] if vision.cluster else []
    rows = broker_rows(seeing) if vision.cluster else []
    seen = {name: topic for name, topic in picture.topics.items() if vision.topic(name)}
    rates = [rate for name, rate in picture.topic_rates.items() if vision.topic(name)]
    consumed = seeing.points("cluster", "", "out", wanted=2) if whole else []
    return seeing.stamped(
        {
            "cluster": {
                "id": picture.cluster.cluster_id,
                "controller": picture.cluster.controller if picture.cluster.controller >= 0 else None,
                "brokers": len(rows) if vision.cluster else len(picture.cluster.brokers),
                "alive": len(picture.alive()),
                "topics": sum(not is_internal(topic) for topic in seen.values()),
                "internal": sum(is_internal(topic) for topic in seen.values()),
                "partitions": sum(len(topic.partitions) for topic in seen.values()),
                "groups": sum(vision.group(name) for name in picture.groups),
                "bytes": str(sum(size for name, size in picture.topic_sizes.items() if vision.topic(name)))
                if vision.cluster
                else None,
            },
            "healthy": healthy(seeing),
            "sentence": sentence(seeing, reasons),
            "reasons": [_reason(each) for each in reasons],
            "rates": {
                "records_in": sum(rates) if picture.rates else None,
                "records_out": next((point for point in reversed(consumed) if point is not None), None),
                "bytes_in": sum(rate for name, rate in picture.byte_rates.items() if vision.topic(name))
                if picture.byte_rates and vision.cluster
                else None,
            },
            "history": seeing.drawn("cluster", "", 10, records_in="in", records_out="out") if whole else None,
            "kept": _kept(keeper) if vision.cluster else None,
            "brokers": rows,
            "lags": worst_lags(seeing, LAGS_SHOWN),
            "events": [event_item(each) for each in events if vision.occurrence(each.what)][:EVENTS_SHOWN],
            "command": "penstock cluster health",
        },
        METADATA,
        OFFSETS,
    )


def healthy(seeing: Seeing) -> bool | None:
    """None for who may not see it, and until it was looked at. A cluster out of reach is not healthy for anybody."""
    if seeing.outage is not None:
        return False
    return not seeing.picture.reasons if HEALTH in seeing.picture.at_ms and seeing.vision.cluster else None


def _kept(keeper: Keeper | None) -> dict[str, str]:
    """Whether the past outlives this console, and if not, why."""
    if keeper is None:
        return {"state": "off", "why": "it was started with --no-history"}
    return {"state": keeper.state, "why": keeper.why}


def sentence(seeing: Seeing, reasons: Sequence[Reason]) -> str:
    if seeing.outage is not None:
        why = f": {seeing.outage.message}" if seeing.told_all else ""
        return f"The cluster cannot be reached{why}."
    if not seeing.vision.cluster:
        return "Whether the cluster is well is told to those who may describe it."
    if HEALTH not in seeing.picture.at_ms:
        return "The cluster is being looked at."
    if reasons:
        more = f", and {len(reasons) - 1} more reason{'s' * (len(reasons) > 2)}" if len(reasons) > 1 else ""
        return f"Unhealthy: {health.sentence(reasons[0])}{more}"
    alive = len(seeing.picture.alive())
    return f"Healthy: {alive} broker{'s' * (alive != 1)}, every partition has its leader and all its replicas."


def visible(seeing: Seeing, reason: Reason) -> Reason:
    """A reason without the partitions of topics that this person does not see. Its other items name no topics."""
    if reason.kind not in _ABOUT_PARTITIONS or seeing.vision.topics is None:
        return reason
    return replace(reason, items=[item for item in reason.items if seeing.vision.topic(_topic_of(item))])


def _topic_of(item: str) -> str:
    """`orders-3 from offset 12 …` is about orders: names of topics have no blanks."""
    return item.split(" ", 1)[0].rpartition("-")[0]


def _reason(reason: Reason) -> dict[str, Any]:
    return {
        "kind": reason.kind,
        "what": reason.what,
        "items": reason.items[:ITEMS_SHOWN],
        "more": max(len(reason.items) - ITEMS_SHOWN, 0),
        "attempt": reason.attempt,
    }


def event_item(entry: Logged) -> dict[str, Any]:
    what = entry.what
    return {
        "id": entry.id,
        "at_ms": entry.at_ms,
        "kind": what.kind,
        "level": what.level,
        "text": what.text,
        "params": what.params,
    }
