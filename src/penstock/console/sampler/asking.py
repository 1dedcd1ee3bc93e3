"""Asks an Admin for the parts of a picture. Each function gives the picture back with its part anew."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final

from penstock.client.admin import Admin, ConfigResource
from penstock.client.admin.session import unsupported
from penstock.client.errors import ClientError
from penstock.console.sampler.picture import (
    GROUPS,
    HEALTH,
    LOG_DIRS,
    METADATA,
    OFFSETS,
    SETTINGS,
    KeptFor,
    Picture,
)
from penstock.model.ids import TopicPartition
from penstock.operations import health, held_back

GROUPS_MAX: Final = 2_000
"""Of so many groups members and positions are looked at; of all of them the states."""
_KEPT: Final = ("retention.ms", "cleanup.policy", "min.insync.replicas")


async def first_look(admin: Admin) -> Picture:
    """The least that a page can be made of."""
    cluster = await admin.describe_cluster()
    topics = await admin.topics(internal=True)
    return Picture(cluster, {topic.name: topic for topic in topics})


async def _metadata(admin: Admin, seen: Picture) -> Picture:
    cluster = await admin.describe_cluster()
    topics = {topic.name: topic for topic in await admin.topics(internal=True)}
    moves = await admin.list_partition_reassignments()
    try:
        quorum = await admin.describe_quorum() if cluster.controller >= 0 else None
    except ClientError as failure:
        if not unsupported(failure):
            raise
        quorum = None
    # The same topics are the same value, so that what is derived of them is not made again.
    return replace(
        seen, cluster=cluster, topics=seen.topics if topics == seen.topics else topics, moves=moves, quorum=quorum
    )


async def _offsets(admin: Admin, seen: Picture) -> Picture:
    led = health.led_by(list(seen.topics.values()), seen.alive())
    starts = (await admin.offsets(dict.fromkeys(led, "earliest"))).done
    ends = (await admin.offsets(dict.fromkeys(led, "latest"))).done
    now_ends = {item: info.offset for item, info in ends.items()}
    return replace(
        seen,
        starts={item: info.offset for item, info in starts.items()},
        ends=now_ends,
        rates=_rates(seen, now_ends, _now_ms()),
    )


def _rates(seen: Picture, ends: dict[TopicPartition, int], now_ms: int) -> dict[TopicPartition, float]:
    """Records a second that came since the last look. A log that was made anew begins anew."""
    before_ms = seen.at_ms.get(OFFSETS)
    if before_ms is None or now_ms <= before_ms:
        return {}
    seconds = (now_ms - before_ms) / 1_000
    return {item: max(end - seen.ends[item], 0) / seconds for item, end in ends.items() if item in seen.ends}


async def _groups(admin: Admin, seen: Picture) -> Picture:
    listed = {group.id: group for group in await admin.groups()}
    chosen = [name for name, group in listed.items() if group.type in ("", "classic", "consumer")][:GROUPS_MAX]
    described = await admin.describe_groups(chosen)
    positions = await admin.positions_of_groups(chosen)
    return replace(seen, groups=listed, described=described.done, committed=positions.done)


async def _log_dirs(admin: Admin, seen: Picture) -> Picture:
    found = await admin.describe_log_dirs(seen.alive())
    return replace(seen, log_dirs={node: dirs for node, dirs in found.done.items() if node in seen.alive()})


async def _settings(admin: Admin, seen: Picture) -> Picture:
    found = await admin.describe_configs([ConfigResource.topic(name) for name in seen.topics], names=_KEPT)
    kept = {}
    for resource, entries in found.done.items():
        values = {name: entry.value for name, entry in entries.items()}
        kept[resource.name] = KeptFor(
            int(retention) if (retention := values.get("retention.ms")) else None,
            "compact" in (values.get("cleanup.policy") or ""),
            int(values.get("min.insync.replicas") or 1),
        )
    return replace(seen, settings=kept)


async def _health(admin: Admin, seen: Picture) -> Picture:
    """The same judgement as that of `penstock cluster health`, from what was seen already."""
    topics = list(seen.topics.values())
    alive = seen.alive()
    suspects = health.suspects(topics, alive)
    damage = await admin.find_damage(suspects) if suspects else []
    held_by = await held_back.holding_back(admin, health.led_by(topics, alive))
    found = health.reasons(
        seen.cluster,
        topics,
        {name: kept.min_isr for name, kept in seen.settings.items()},
        seen.log_dirs,
        seen.quorum,
        silent=alive - seen.log_dirs.keys() if seen.log_dirs else (),
        damage=damage,
        held_by=held_by,
        now_ms=_now_ms(),
    )
    return replace(seen, reasons=tuple(found))


LOOKS: Final[dict[str, Callable[[Admin, Picture], Awaitable[Picture]]]] = {
    METADATA: _metadata,
    OFFSETS: _offsets,
    GROUPS: _groups,
    LOG_DIRS: _log_dirs,
    SETTINGS: _settings,
    HEALTH: _health,
}


async def look(admin: Admin, seen: Picture, part: str) -> Picture:
    """A picture with one part anew and its time told."""
    found = await LOOKS[part](admin, seen)
    failed = {name: why for name, why in seen.failed.items() if name != part}
    return replace(found, at_ms={**seen.at_ms, part: _now_ms()}, failed=failed)


def without(seen: Picture, part: str, why: str) -> Picture:
    """A picture of which one part could not be had, and why."""
    return replace(seen, failed={**seen.failed, part: why})


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
