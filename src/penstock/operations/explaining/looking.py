"""Asking an Admin, several times over a span, what tells why a group is behind."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from penstock.client.errors import ClientError
from penstock.model.ids import TopicPartition
from penstock.operations import held_back
from penstock.operations.explaining.sights import GroupFacts, GroupSight, Reader, ReadPartition, Unread

if TYPE_CHECKING:
    from penstock.client.admin import Admin, GroupInfo, OffsetInfo, PartitionInfo

SIGHTS: Final = 5
"""So often a group is looked at in one span: enough to see members come and go."""
RECORDS_MAX: Final = 20
"""The first unread record of so many partitions is fetched, of those with the largest lag."""


async def look(admin: Admin, group_id: str, span_s: float) -> GroupFacts:
    """Takes `span_s` and the time of some twenty requests."""
    sights = [await sight(admin, group_id)]
    for _ in range(1, SIGHTS if span_s > 0 else 1):
        await asyncio.sleep(span_s / (SIGHTS - 1))
        sights.append(await sight(admin, group_id))
    return await facts_of(admin, group_id, sights)


async def sight(admin: Admin, group_id: str) -> GroupSight:
    """One moment. Positions are asked for before ends, so that no lag is ever negative."""
    group, committed = await asyncio.gather(admin.describe_group(group_id), admin.group_offsets(group_id))
    owners = _owners(group)
    wanted = sorted({*committed, *owners})
    ends = (await admin.offsets(dict.fromkeys(wanted, "latest"))).done if wanted else {}
    # The high watermark comes first: what is written between both questions must not look held back.
    stable, starts, placed = await asyncio.gather(
        _offsets(admin, ends, read_committed=True), _offsets(admin, wanted, "earliest"), _placed(admin, wanted)
    )
    readers = {
        each.id: Reader(each.id, each.client_id, each.host, sum(map(len, each.assignment.values())))
        for each in group.members
    }
    partitions = {
        item: _read_partition(
            committed[item].offset if item in committed else None,
            (starts.get(item), ends.get(item), stable.get(item)),
            owners.get(item),
            placed.get(item),
        )
        for item in wanted
    }
    return GroupSight(time.time_ns() // 1_000_000, group.state, group.epoch, readers, partitions)


def _owners(group: GroupInfo) -> dict[TopicPartition, str]:
    return {
        TopicPartition(topic, number): member.id
        for member in group.members
        for topic, numbers in member.assignment.items()
        for number in numbers
    }


async def _offsets(
    admin: Admin, wanted: Iterable[TopicPartition], when: str = "latest", *, read_committed: bool = False
) -> Mapping[TopicPartition, OffsetInfo]:
    chosen: dict[TopicPartition, str | int] = dict.fromkeys(wanted, when)
    return (await admin.offsets(chosen, read_committed=read_committed)).done if chosen else {}


async def _placed(admin: Admin, wanted: Iterable[TopicPartition]) -> dict[TopicPartition, PartitionInfo]:
    names = sorted({item.topic for item in wanted})
    found = (await admin.describe_topics(names, offsets=False, configs=False)).done if names else {}
    return {TopicPartition(name, part.partition): part for name, topic in found.items() for part in topic.partitions}


def _read_partition(
    committed: int | None,
    told: tuple[OffsetInfo | None, OffsetInfo | None, OffsetInfo | None],
    member_id: str | None,
    placed: PartitionInfo | None,
) -> ReadPartition:
    start, end, stable = (-1 if each is None else each.offset for each in told)
    if placed is None:
        return ReadPartition(committed, start, end, stable, member_id)
    return ReadPartition(committed, start, end, stable, member_id, placed.leader, len(placed.isr), len(placed.replicas))


async def facts_of(admin: Admin, group_id: str, sights: list[GroupSight]) -> GroupFacts:
    """What else is worth knowing of a group that was seen."""
    last = sights[-1]
    behind = [item for item, part in last.partitions.items() if part.lag]
    waiting = [item for item in behind if 0 <= last.partitions[item].stable < last.partitions[item].end]
    return GroupFacts(
        group_id,
        sights,
        unread=await _unread(admin, last, behind),
        retention_ms=await _retention(admin, sorted({item.topic for item in behind})),
        open=await admin.open_transactions(waiting[: held_back.HELD_MAX]) if waiting else (),
        byte_rates=await _byte_rates(admin) if behind else {},
    )


async def _unread(admin: Admin, last: GroupSight, behind: list[TopicPartition]) -> dict[TopicPartition, Unread]:
    found = {}
    for item in sorted(behind, key=lambda each: -last.partitions[each].lag)[:RECORDS_MAX]:
        part = last.partitions[item]
        try:
            record = await admin.record_at(item, max(part.committed or 0, part.start, 0))
        except ClientError:
            continue  # who may not read it, or whose leader is away just now, hears the rest
        if record is not None:
            size = len(record.key or b"") + len(record.value or b"")
            found[item] = Unread(record.offset, record.timestamp, record.key, size)
    return found


async def _retention(admin: Admin, topics: list[str]) -> dict[str, int]:
    from penstock.client.admin.configs import ConfigResource

    configs = (await admin.describe_configs([ConfigResource.topic(name) for name in topics])).done if topics else {}
    return {
        resource.name: int(entries["retention.ms"].value or -1)
        for resource, entries in configs.items()
        if "retention.ms" in entries and "delete" in (entries["cleanup.policy"].value or "delete")
    }


async def _byte_rates(admin: Admin) -> dict[str, float]:
    """Limits by client id alone: those of users are nobody's to see but who may list them, and need no name here."""
    try:
        limits = await admin.describe_quotas()
    except ClientError:
        return {}
    return {
        entity.client_id: values["consumer_byte_rate"]
        for entity, values in limits.items()
        if entity.client_id and entity.user is None and "consumer_byte_rate" in values
    }
