"""Where a read begins: newest, oldest, an offset, a time, the position of a group, or where another one ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from penstock.client.admin import Admin
from penstock.console.digits import whole
from penstock.console.failures import Declined, bad_request
from penstock.model.ids import TopicPartition
from penstock.operations.records.offsets import BadOffset, parse_point

KINDS: Final = ("newest", "oldest", "offset", "time", "group")


@dataclass(frozen=True, slots=True)
class LogEnds:
    """What each partition holds: offsets [start, end)."""

    starts: dict[int, int]
    ends: dict[int, int]


async def ends_of(admin: Admin, topic: str, partitions: list[int] | None, *, committed: bool) -> LogEnds:
    """The ends of partitions, of all for None. What cannot be asked, because its leader is away, is left out."""
    if partitions is None:
        described = await admin.describe_topic(topic, offsets=False, configs=False)
        partitions = [each.partition for each in described.partitions]
    items = [TopicPartition(topic, partition) for partition in partitions]
    starts = await admin.offsets(dict.fromkeys(items, "earliest"))
    ends = await admin.offsets(dict.fromkeys(items, "latest"), read_committed=committed)
    if items and not ends.done:
        ends.checked()
    known = [item for item in items if item in starts.done and item in ends.done]
    return LogEnds(
        {item.partition: starts.done[item].offset for item in known},
        {item.partition: ends.done[item].offset for item in known},
    )


async def ends_of_one(admin: Admin, topic: str, partition: int) -> tuple[int, int]:
    """What one partition holds: offsets [start, end). Declined when its leader is away."""
    known = await ends_of(admin, topic, [partition], committed=False)
    if partition not in known.ends:
        message = f"partition {partition} of {topic!r} has no leader that answers"
        raise Declined(503, "unreachable", message, "look at `penstock doctor`", retry_after_s=5)
    return known.starts[partition], known.ends[partition]


async def positions_of(admin: Admin, topic: str, text: str, ends: LogEnds, now_ms: int) -> dict[int, int]:
    """The offset to read from in each partition, within what it holds."""
    kind, _, rest = text.partition(":")
    match kind:
        case "oldest":
            found: Mapping[int, int] = ends.starts
        case "newest":
            found = ends.ends
        case "offset":
            offset = whole(rest)
            if offset is None:
                raise bad_request(f"from: {rest[:100]!r} is no offset")
            found = dict.fromkeys(ends.ends, offset)
        case "time":
            found = await _at_time(admin, topic, time_of(rest, now_ms), ends)
        case "group":
            committed = await admin.group_offsets(rest, [TopicPartition(topic, each) for each in ends.ends])
            found = {item.partition: position.offset for item, position in committed.items()}
        case _:
            raise bad_request(
                f"from: {text[:100]!r} is none of {', '.join(KINDS)}", "as in offset:42, time:-15m or group:app"
            )
    return {
        partition: min(max(found.get(partition, ends.ends[partition]), ends.starts[partition]), ends.ends[partition])
        for partition in ends.ends
    }


def time_of(text: str, now_ms: int) -> int:
    """A moment in ms: as `consume -o @…` takes it."""
    try:
        point = parse_point(f"@{text}", now_ms)
    except BadOffset as wrong:
        raise bad_request(str(wrong)) from None
    return point.number


async def _at_time(admin: Admin, topic: str, time_ms: int, ends: LogEnds) -> dict[int, int]:
    found = await admin.offsets({TopicPartition(topic, each): time_ms for each in ends.ends})
    return {item.partition: info.offset for item, info in found.done.items() if info.offset >= 0}
