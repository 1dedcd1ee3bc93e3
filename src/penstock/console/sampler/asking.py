"""Asks an Admin for the parts of a picture. Each function gives the picture back with its part anew."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Final

from penstock.client.admin import Admin, CommittedOffset, ConfigResource, GroupListing
from penstock.client.admin.group_offsets import READS_COMMITTED
from penstock.client.admin.session import unsupported
from penstock.client.errors import ClientError
from penstock.console.sampler.lags import EndsSeen, group_lag, stand
from penstock.console.sampler.picture import (
    GROUPS,
    HEALTH,
    LOG_DIRS,
    LOOKED_INTO,
    METADATA,
    OFFSETS,
    SETTINGS,
    STARTS,
    KeptFor,
    Picture,
    items_of,
)
from penstock.model.errors import GROUP_ID_NOT_FOUND
from penstock.model.ids import TopicPartition
from penstock.operations import health, held_back

GROUPS_MAX: Final = 2_000
"""Of so many groups members and positions are looked at each time, of the others the next time; of all the states."""
WHY_MAX: Final = 300
Offsets = Mapping[TopicPartition, CommittedOffset]
_KEPT: Final = ("retention.ms", "cleanup.policy", "min.insync.replicas")


async def first_look(admin: Admin) -> Picture:
    """The least that a page can be made of."""
    cluster = await admin.describe_cluster()
    topics = await admin.watched_topics()
    return Picture(cluster, topics, items_of(topics), at_ms={METADATA: _now_ms()})


async def _metadata(admin: Admin, seen: Picture, _: EndsSeen) -> Picture:
    cluster = await admin.describe_cluster()
    topics = await admin.watched_topics()
    moves = await admin.list_partition_reassignments()
    try:
        quorum = await admin.describe_quorum() if cluster.controller >= 0 else None
    except ClientError as failure:
        if not unsupported(failure):
            raise
        quorum = None
    found = replace(seen, cluster=cluster, moves=moves, quorum=quorum)
    if topics is seen.topics:
        return found
    return _without_made_anew(replace(found, topics=topics, items=items_of(topics, seen)), seen)


def _without_made_anew(found: Picture, seen: Picture) -> Picture:
    """A topic that was deleted and made again has logs of its own: what the earlier ones held is not its."""
    known = seen.topics
    anew = {name for name, topic in found.topics.items() if name in known and known[name].id != topic.id}
    if not anew:
        return found

    def left(numbers: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        return {item: number for item, number in numbers.items() if item.topic not in anew}

    return replace(found, starts=left(found.starts), ends=left(found.ends))


async def _offsets(admin: Admin, seen: Picture, ends_seen: EndsSeen) -> Picture:
    found = await _with_ends(admin, seen)
    _remember_ends(found, ends_seen)
    return found


async def _with_ends(admin: Admin, seen: Picture) -> Picture:
    ends = await admin.ends_of_led(seen.led_alive())
    now_ms = _now_ms()
    return replace(
        seen,
        ends=ends,
        rates=_rates(seen, ends, now_ms),
        at_ms={**seen.at_ms, OFFSETS: now_ms},
        failed=_fewer(seen, OFFSETS),
    )


def _remember_ends(seen: Picture, ends_seen: EndsSeen) -> None:
    read = dict.fromkeys(item for standings in seen.committed.values() for item in standings)
    ends_seen.put(seen.at_ms[OFFSETS], seen.ends, read)


def _rates(seen: Picture, ends: dict[TopicPartition, int], now_ms: int) -> dict[TopicPartition, float]:
    """Records a second that came since the last look. A log that was made anew begins anew."""
    before_ms = seen.at_ms.get(OFFSETS)
    if before_ms is None or now_ms <= before_ms:
        return {}
    seconds = (now_ms - before_ms) / 1_000
    return {item: max(end - seen.ends[item], 0) / seconds for item, end in ends.items() if item in seen.ends}


async def _starts(admin: Admin, seen: Picture, _: EndsSeen) -> Picture:
    return replace(seen, starts=await admin.ends_of_led(seen.led_alive(), "earliest"))


async def _groups(admin: Admin, seen: Picture, ends_seen: EndsSeen) -> Picture:
    """Positions first, then ends: between the two logs grow, and a position is never beyond an end it has not seen."""
    listed = {group.id: group for group in await admin.groups()}
    able = sorted(name for name, group in listed.items() if group.type in LOOKED_INTO)
    chosen = round_of(able, seen.groups_until)
    described = await admin.describe_groups(chosen)
    asked_ms = _now_ms()
    positions = await admin.positions_of_groups(chosen)
    found = await _with_ends(admin, seen)
    stable = await _stable_ends(admin, positions.done)
    committed = {name: known for name, known in seen.committed.items() if name in listed}
    for name, offsets in positions.done.items():
        earlier = seen.lags.get(name)
        committed[name] = stand(
            {item: position.offset for item, position in offsets.items()},
            _ends_of(offsets, found.ends, stable),
            seen.committed.get(name, {}),
            (asked_ms - earlier.at_ms) / 1_000 if earlier else 0.0,
        )
    found = replace(
        found,
        groups=listed,
        described={name: info for name, info in seen.described.items() if name in listed} | described.done,
        committed=committed,
        unseen=_unseen(seen, listed, chosen, described.failed | positions.failed),
        groups_until=chosen[-1] if chosen else "",
    )
    _remember_ends(found, ends_seen)
    lags = {name: known for name, known in seen.lags.items() if name in listed}
    lags |= {name: group_lag(committed[name], ends_seen, asked_ms) for name in positions.done}
    return replace(found, lags=lags)


async def _stable_ends(admin: Admin, positions: Mapping[str, Offsets]) -> dict[TopicPartition, int]:
    """Where readers of committed records end, of partitions whose readers say with their commits that they are such."""
    wanted = {item for offsets in positions.values() for item, at in offsets.items() if at.metadata == READS_COMMITTED}
    if not wanted:
        return {}
    found = await admin.offsets(dict.fromkeys(sorted(wanted), "latest"), read_committed=True)
    return {item: info.offset for item, info in found.done.items()}


def _ends_of(
    offsets: Offsets, ends: Mapping[TopicPartition, int], stable: Mapping[TopicPartition, int]
) -> Mapping[TopicPartition, int]:
    committed = [item for item, at in offsets.items() if at.metadata == READS_COMMITTED]
    if not committed:
        return ends
    return {
        **{item: ends[item] for item in offsets if item in ends},
        **{item: stable[item] for item in committed if item in stable},
    }


def _unseen(
    seen: Picture, listed: Mapping[str, GroupListing], asked: list[str], failed: Mapping[str, ClientError]
) -> dict[str, str]:
    """Why groups were not looked at, this time or when it was their turn. One that has gone meanwhile is no failure."""
    now = set(asked)
    found = {name: why for name, why in seen.unseen.items() if name in listed and name not in now}
    for name, why in failed.items():
        if why.error is not GROUP_ID_NOT_FOUND:
            found[name] = str(why)[:WHY_MAX]
    return found


def round_of(names: list[str], until: str, most: int = GROUPS_MAX) -> list[str]:
    """The next of very many sorted names, those behind the last of the round before, and from the beginning again."""
    if len(names) <= most:
        return names
    at = bisect_right(names, until) % len(names)
    return [*names[at : at + most], *names[: max(at + most - len(names), 0)]]


async def _log_dirs(admin: Admin, seen: Picture, _: EndsSeen) -> Picture:
    alive = seen.alive()
    told = await admin.describe_log_dirs(alive)
    found = replace(seen, log_dirs={node: dirs for node, dirs in told.done.items() if node in alive})
    before_ms = seen.at_ms.get(LOG_DIRS)
    seconds = (_now_ms() - before_ms) / 1_000 if before_ms is not None else 0.0
    return replace(found, byte_rates=_byte_rates(seen, found, seconds) if seconds > 0 else {})


def _byte_rates(before: Picture, after: Picture, seconds: float) -> dict[str, float]:
    """By how much the leaders' logs grew. One that became smaller, because old segments went, tells nothing: there
    records that came count with the mean size of those that are there."""
    rates: dict[str, float] = {}
    earlier = before.sizes
    for item, size in after.sizes.items():
        was = earlier.get(item, 0)
        if size >= was:
            rate = (size - was) / seconds
        else:
            held = after.ends.get(item, 0) - after.starts.get(item, 0)
            rate = after.rates.get(item, 0.0) * size / held if held > 0 else 0.0
        rates[item.topic] = rates.get(item.topic, 0.0) + rate
    return rates


async def _settings(admin: Admin, seen: Picture, _: EndsSeen) -> Picture:
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


async def _health(admin: Admin, seen: Picture, _: EndsSeen) -> Picture:
    """The same judgement as that of `penstock cluster health`, from what was seen already."""
    topics = list(seen.topics.values())
    alive = seen.alive()
    suspects = health.suspects(topics, alive)
    damage = await admin.find_damage(suspects) if suspects else []
    # Ends are known, and were asked for before: what is written in between holds nothing back.
    stable = await admin.ends_of_led(seen.led_alive(), read_committed=True)
    held = [item for item, end in seen.ends.items() if stable.get(item, end) < end][: held_back.HELD_MAX]
    held_by = await admin.open_transactions(held) if held else []
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


LOOKS: Final[dict[str, Callable[[Admin, Picture, EndsSeen], Awaitable[Picture]]]] = {
    METADATA: _metadata,
    GROUPS: _groups,
    OFFSETS: _offsets,
    STARTS: _starts,
    LOG_DIRS: _log_dirs,
    SETTINGS: _settings,
    HEALTH: _health,
}
TAKES_ALONG: Final = {GROUPS: (OFFSETS,)}
"""Parts that a look at another one brings too."""


async def look(admin: Admin, seen: Picture, part: str, ends_seen: EndsSeen) -> Picture:
    """A picture with one part anew and its time told. What can be derived of it is derived already."""
    found = await LOOKS[part](admin, seen, ends_seen)
    found = replace(found, at_ms={**found.at_ms, part: _now_ms()}, failed=_fewer(found, part))
    found.carry(seen)
    return found


def without(seen: Picture, part: str, why: str) -> Picture:
    """A picture of which one part could not be had, and why."""
    found = replace(seen, failed={**seen.failed, part: why[:WHY_MAX]})
    found.carry(seen)
    return found


def _fewer(seen: Picture, part: str) -> dict[str, str]:
    return {name: why for name, why in seen.failed.items() if name != part}


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
