"""The list of groups, and one group: members, positions, lag in records and seconds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from penstock.client.admin import GroupInfo, GroupListing
from penstock.client.admin.group_offsets import PartitionLag
from penstock.console.commands import command
from penstock.console.listings import Sortable, Wanted, cut
from penstock.console.sampler.lags import drain_s, summed, trend
from penstock.console.sampler.picture import GROUPS, LOOKED_INTO
from penstock.console.views.group_lags import group_lag, longest_s, waits_s
from penstock.console.views.seeing import Seeing, text_of
from penstock.model.ids import TopicPartition

DRAWN: Final = 30


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A group as the list sorts it."""

    listing: GroupListing
    members: int | None
    topics: list[str]
    lag: int | None
    lag_s: float | None


_SORTS: Final[dict[str, Sortable[GroupRow]]] = {
    "name": lambda row: row.listing.id,
    "state": lambda row: row.listing.state,
    "members": lambda row: row.members,
    "lag": lambda row: row.lag,
    "lag_s": lambda row: row.lag_s,
}
GROUP_SORTS: Final = frozenset(_SORTS)


def group_list(seeing: Seeing, wanted: Wanted, state: str = "") -> dict[str, Any]:
    rows = [group_row(seeing, listing) for name, listing in seeing.picture.groups.items() if seeing.vision.group(name)]
    total = len(rows)
    if state:
        rows = [row for row in rows if row.listing.state.lower() == state.lower()]
    matching, shown = cut(rows, wanted, lambda row: row.listing.id, _SORTS)
    return seeing.stamped(
        {
            "total": total,
            "matching": matching,
            "unseen": sum(_unseen(seeing, row.listing) is not None for row in rows),
            "items": [item_of(seeing, row) for row in shown],
        },
        GROUPS,
    )


def worst_lags(seeing: Seeing, most: int) -> list[dict[str, Any]]:
    """The groups that are furthest behind, for the overview."""
    known = [
        (lag, name) for name in seeing.picture.lags if seeing.vision.group(name) and (lag := group_lag(seeing, name))
    ]
    return [
        {"group": name, "lag": str(lag), "lag_s": waits_s(seeing, name), "trend": trend(_lags(seeing, name))}
        for lag, name in sorted(known, key=lambda each: (-each[0], each[1]))[:most]
    ]


def group_row(seeing: Seeing, listing: GroupListing) -> GroupRow:
    picture, name = seeing.picture, listing.id
    described = picture.described.get(name)
    lag = picture.lags.get(name)
    topics = set(lag.topics) if lag is not None else set()
    topics |= {topic for member in (described.members if described else []) for topic in member.assignment}
    return GroupRow(
        listing,
        len(described.members) if described else None,
        sorted(topic for topic in topics if seeing.vision.topic(topic)),
        group_lag(seeing, name),
        waits_s(seeing, name),
    )


def item_of(seeing: Seeing, row: GroupRow) -> dict[str, Any]:
    points = _lags(seeing, row.listing.id)
    return {
        "group": row.listing.id,
        "type": row.listing.type,
        "protocol": row.listing.protocol_type,
        "state": row.listing.state,
        "members": row.members,
        "topics": row.topics,
        "lag": text_of(row.lag),
        "lag_s": row.lag_s,
        "trend": trend(points),
        "spark": points,
        "as_of_ms": _as_of_ms(seeing, row.listing.id),
        "unseen": _unseen(seeing, row.listing),
    }


def _as_of_ms(seeing: Seeing, name: str) -> int | None:
    """When its positions were asked for: of very many groups not all are looked at each time."""
    lag = seeing.picture.lags.get(name)
    return lag.at_ms if lag is not None else None


def _unseen(seeing: Seeing, listing: GroupListing) -> str | None:
    """Why nothing, or only something old, is known of a group; None where all is well."""
    picture = seeing.picture
    if listing.id in picture.unseen:
        return picture.unseen[listing.id]
    if listing.type not in LOOKED_INTO:
        return f"{listing.type} groups are listed only"
    return None if listing.id in picture.lags else "it has not been looked at yet"


def group_page(
    seeing: Seeing, group: GroupInfo, lags: list[PartitionLag], step_s: int, undo: list[dict[str, Any]]
) -> dict[str, Any]:
    """`group` and `lags` were asked for now, as the person who looks."""
    listing = GroupListing(group.id, group.protocol_type, group.state, group.type, group.coordinator)
    seen = [lag for lag in lags if seeing.vision.topic(lag.topic)]
    item = item_of(seeing, group_row(seeing, listing))
    read = [lag for lag in seen if lag.committed is not None]
    partitions = [_partition(seeing, group.id, lag) for lag in seen]
    return seeing.stamped(
        {
            **item,
            "member_count": len(group.members),
            "topics": sorted({lag.topic for lag in seen}),
            "lag": text_of(summed([lag.lag for lag in read])),
            "lag_s": longest_s([each["lag_s"] for each in partitions if each["committed"] is not None]),
            "coordinator": group.coordinator,
            "assignor": group.assignor,
            "epoch": group.epoch if group.epoch >= 0 else None,
            "members": [
                {
                    "id": member.id,
                    "instance": member.instance_id,
                    "client": member.client_id,
                    "host": member.host,
                    "assignment": _visible(seeing, member.assignment),
                    "target": None if member.target is None else _visible(seeing, member.target),
                }
                for member in group.members
            ],
            "partitions": partitions,
            "undo": undo,
            "history": seeing.drawn("group", group.id, step_s, lag="lag", consumed="consumed")
            if seeing.whole_group(group.id)
            else None,
            "command": command("group", "describe", names=[group.id]),
        },
        GROUPS,
    )


def _visible(seeing: Seeing, assignment: dict[str, list[int]]) -> dict[str, list[int]]:
    return {topic: partitions for topic, partitions in assignment.items() if seeing.vision.topic(topic)}


def _partition(seeing: Seeing, group: str, lag: PartitionLag) -> dict[str, Any]:
    item = TopicPartition(lag.topic, lag.partition)
    rate_in, stood = seeing.picture.rates.get(item), seeing.picture.committed.get(group, {}).get(item)
    rate_out = stood.rate if stood is not None else None
    wait = None
    if lag.committed is not None and lag.end >= 0:
        wait = seeing.ends_seen.behind_s(item, lag.committed, lag.end, seeing.now_ms)
    return {
        "topic": lag.topic,
        "partition": lag.partition,
        "committed": text_of(lag.committed),
        "start": text_of(lag.start if lag.start >= 0 else None),
        "end": text_of(lag.end if lag.end >= 0 else None),
        "lag": text_of(lag.lag),
        "lag_s": wait,
        "member": lag.member_id,
        "client": lag.client_id,
        "host": lag.host,
        "rate_in": rate_in,
        "rate_out": rate_out,
        "drain_s": drain_s(lag.lag, rate_in, rate_out),
    }


def _lags(seeing: Seeing, name: str) -> list[float | None]:
    return seeing.points("group", name, "lag", wanted=DRAWN) if seeing.whole_group(name) else []
