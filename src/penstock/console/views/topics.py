"""The list of topics, one topic, its partitions and who reads it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from penstock.client.admin import TopicInfo
from penstock.console.commands import command
from penstock.console.listings import Sortable, Wanted, cut
from penstock.console.sampler.picture import GROUPS, OFFSETS, STARTS, moving
from penstock.console.views.group_lags import group_lag, waits_s
from penstock.console.views.seeing import Seeing, text_of
from penstock.model.ids import TopicPartition

DRAWN: Final = 30
"""So many points of 10 s are drawn beside each topic."""


@dataclass(frozen=True, slots=True)
class TopicRow:
    """A topic as the list sorts it; what is not known is None."""

    info: TopicInfo
    behind: int
    leaderless: int
    records: int | None
    bytes: int | None
    rate: float | None
    groups: list[str]
    lag: int | None


_SORTS: Final[dict[str, Sortable[TopicRow]]] = {
    "name": lambda row: row.info.name,
    "partitions": lambda row: len(row.info.partitions),
    "replication": lambda row: row.info.replication,
    "behind": lambda row: row.behind,
    "records": lambda row: row.records,
    "bytes": lambda row: row.bytes,
    "rate": lambda row: row.rate,
    "groups": lambda row: len(row.groups),
    "lag": lambda row: row.lag,
}
TOPIC_SORTS: Final = frozenset(_SORTS)
_ONLY: Final[dict[str, Callable[[TopicRow], bool]]] = {
    "under_replicated": lambda row: row.behind > 0,
    "leaderless": lambda row: row.leaderless > 0,
    "empty": lambda row: row.records == 0,
}
ONLY: Final = frozenset(_ONLY)


def topic_list(seeing: Seeing, wanted: Wanted, *, internal: bool, only: str = "") -> dict[str, Any]:
    rows = [
        topic_row(seeing, topic)
        for name, topic in seeing.picture.topics.items()
        if seeing.vision.topic(name) and (internal or not is_internal(topic))
    ]
    total = len(rows)
    if only:
        rows = [row for row in rows if _ONLY[only](row)]
    matching, shown = cut(rows, wanted, lambda row: row.info.name, _SORTS)
    items = [_item(seeing, row) for row in shown]
    return seeing.stamped({"total": total, "matching": matching, "items": items}, OFFSETS, STARTS)


def topic_page(seeing: Seeing, topic: TopicInfo, step_s: int) -> dict[str, Any]:
    return seeing.stamped(
        {
            **_item(seeing, topic_row(seeing, topic)),
            "id": topic.id,
            "configs": topic.configs,
            "history": seeing.drawn("topic", topic.name, step_s, records_in="in"),
            "command": command("topic", "describe", names=[topic.name]),
        },
        OFFSETS,
        STARTS,
    )


def topic_row(seeing: Seeing, topic: TopicInfo) -> TopicRow:
    picture, name = seeing.picture, topic.name
    behind, leaderless = picture.troubled.get(name, (0, 0))
    groups = [group for group in picture.readers.get(name, []) if seeing.vision.group(group)]
    lags = [lag for group in groups if (lag := group_lag(seeing, group, name)) is not None]
    return TopicRow(
        topic,
        behind=behind,
        leaderless=leaderless,
        records=picture.records.get(name),
        bytes=picture.topic_sizes.get(name),
        rate=picture.topic_rates.get(name),
        groups=groups,
        lag=max(lags) if lags else None,
    )


def _item(seeing: Seeing, row: TopicRow) -> dict[str, Any]:
    kept = seeing.picture.settings.get(row.info.name)
    return {
        "name": row.info.name,
        "internal": is_internal(row.info),
        "partitions": len(row.info.partitions),
        "replication": row.info.replication,
        "behind": row.behind,
        "leaderless": row.leaderless,
        "records": text_of(row.records),
        "bytes": text_of(row.bytes),
        "rate": row.rate,
        "spark": seeing.points("topic", row.info.name, "in", wanted=DRAWN),
        "groups": len(row.groups),
        "lag": text_of(row.lag),
        "retention_ms": text_of(kept.retention_ms) if kept else None,
        "compacted": kept.compacted if kept else None,
    }


def is_internal(topic: TopicInfo) -> bool:
    """Kafka's own, and those that Penstock keeps for itself."""
    return topic.internal or topic.name.startswith("__")


def partition_list(seeing: Seeing, topic: TopicInfo) -> dict[str, Any]:
    """`topic` was asked for now; sizes and rates are the sampler's."""
    picture = seeing.picture
    rates = [picture.rates.get(TopicPartition(topic.name, each.partition)) for each in topic.partitions]
    whole = sum(rate for rate in rates if rate is not None)
    partitions = []
    for each, rate in zip(topic.partitions, rates, strict=True):
        item = TopicPartition(topic.name, each.partition)
        move = picture.moves.get(item)
        partitions.append(
            {
                "partition": each.partition,
                "leader": each.leader if each.leader >= 0 else None,
                "leader_epoch": each.leader_epoch,
                "replicas": each.replicas,
                "isr": each.isr,
                "offline": each.offline,
                "start": text_of(each.start if each.start >= 0 else None),
                "end": text_of(each.end if each.end >= 0 else None),
                "last_stable": text_of(each.last_stable if each.last_stable >= 0 else None),
                "bytes": text_of(picture.sizes.get(item)),
                "rate": rate,
                "share": rate / whole if rate is not None and whole else None,
                "moving": moving(move),
            }
        )
    return seeing.stamped(
        {"partitions": partitions, "command": command("topic", "describe", names=[topic.name])}, OFFSETS
    )


def consumers_of(seeing: Seeing, name: str) -> dict[str, Any]:
    """Who reads a topic, and how far each is in it."""
    picture = seeing.picture
    groups = []
    for group in picture.readers.get(name, []):
        if not seeing.vision.group(group):
            continue
        described, listed = picture.described.get(group), picture.groups.get(group)
        owners = {
            index: member
            for member in (described.members if described else [])
            for index in member.assignment.get(name, [])
        }
        positions = picture.committed.get(group, {})
        indexes = sorted({item.partition for item in positions if item.topic == name} | owners.keys())
        partitions = []
        for index in indexes:
            item = TopicPartition(name, index)
            stood = positions.get(item)
            end = stood.end if stood is not None else picture.ends.get(item)
            owner = owners.get(index)
            partitions.append(
                {
                    "partition": index,
                    "committed": text_of(stood.offset if stood is not None else None),
                    "end": text_of(end),
                    "lag": text_of(stood.lag if stood is not None else None),
                    "lag_s": seeing.ends_seen.behind_s(item, stood.offset, end, seeing.now_ms)
                    if stood is not None and end is not None
                    else None,
                    "member": f"{owner.client_id}@{owner.host.lstrip('/')}" if owner else None,
                }
            )
        groups.append(
            {
                "group": group,
                "kind": "pipeline" if group.startswith("spark-") else "group",
                "state": listed.state if listed else None,
                "members": len(described.members) if described else None,
                "lag": text_of(group_lag(seeing, group, name)),
                "lag_s": waits_s(seeing, group, name),
                "partitions": partitions,
            }
        )
    return seeing.stamped({"groups": groups}, GROUPS)
