"""Plans for the positions of a group: from where to where, before anything happens."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.client.errors import ClientError
from penstock.model.errors import GROUP_ID_NOT_FOUND, PenstockError
from penstock.model.ids import TopicPartition
from penstock.model.units import count
from penstock.operations.records.offsets import BadOffset, parse_point, place

if TYPE_CHECKING:
    from penstock.client.admin import Admin

Chosen = dict[str, list[int]]
"""Topics with the partitions that are meant; an empty list means all."""


class BadChoice(PenstockError):
    """What was asked for cannot be understood; `option` is what the command line calls the part that is wrong."""

    def __init__(self, option: str, words: str) -> None:
        super().__init__(words)
        self.option = option


@dataclass(frozen=True, slots=True)
class Reposition:
    """One position: where it is (None: nowhere) and where it goes (None: it is forgotten)."""

    topic: str
    partition: int
    was: int | None
    to: int | None

    @property
    def where(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


def parse_topics(given: tuple[str, ...]) -> Chosen:
    """`clicks` and `clicks:0,3`."""
    chosen: Chosen = {}
    for text in given:
        topic, colon, numbers = text.partition(":")
        parts = numbers.split(",") if colon else []
        if not topic or not all(part.isdigit() for part in parts):
            raise BadChoice("--topic", f"{text!r} is neither TOPIC nor TOPIC:0,1")
        chosen.setdefault(topic, []).extend(map(int, parts))
    return chosen


def parse_file(text: str) -> dict[TopicPartition, int]:
    """Lines of topic, partition and offset; empty ones and those that begin with # are passed over."""
    offsets: dict[TopicPartition, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) != 3 or not (words[1].isdigit() and words[2].isdigit()):
            raise BadChoice("--to-file", f"line {number} is not TOPIC PARTITION OFFSET: {line!r}")
        offsets[TopicPartition(words[0], int(words[1]))] = int(words[2])
    return offsets


async def plan_point(admin: Admin, group: str, text: str, chosen: Chosen) -> list[Reposition]:
    """To the same place in every partition: of the topics that were chosen, else of those with a position."""
    try:
        point = parse_point(text, time.time_ns() // 1_000_000)
    except BadOffset as wrong:
        raise BadChoice("--to", str(wrong)) from None
    positions = await _positions(admin, group, must_exist=not chosen)
    wanted = await _partitions(admin, chosen) if chosen else list(positions)
    starts = (await admin.offsets(dict.fromkeys(wanted, "earliest"))).checked()
    ends = (await admin.offsets(dict.fromkeys(wanted, "latest"))).checked()
    at_time = (await admin.offsets(dict.fromkeys(wanted, point.number))).checked() if point.kind == "time" else {}
    moves = []
    for item in sorted(wanted):
        times = {point.number: at_time[item].offset} if item in at_time else {}
        to = min(place(point, starts[item].offset, ends[item].offset, times), ends[item].offset)
        moves.append(Reposition(*item, positions.get(item), to))
    return moves


async def plan_group(admin: Admin, group: str, other: str, chosen: Chosen) -> list[Reposition]:
    return await plan_offsets(admin, group, await _positions(admin, other, must_exist=True), chosen)


async def plan_offsets(
    admin: Admin, group: str, offsets: Mapping[TopicPartition, int], chosen: Chosen
) -> list[Reposition]:
    positions = await _positions(admin, group, must_exist=False)
    return [
        Reposition(*item, positions.get(item), to)
        for item, to in sorted(offsets.items())
        if not chosen or _in(item, chosen)
    ]


async def plan_forgetting(admin: Admin, group: str, chosen: Chosen) -> list[Reposition]:
    positions = await _positions(admin, group, must_exist=True)
    return [Reposition(*item, was, None) for item, was in sorted(positions.items()) if _in(item, chosen)]


async def carry_out(admin: Admin, group: str, moves: list[Reposition]) -> None:
    """Refuses groups with members in words of our own: brokers call it an unknown member."""
    try:
        info = await admin.describe_group(group)
    except ClientError as failure:
        if failure.error is not GROUP_ID_NOT_FOUND:
            raise
    else:
        if info.members:
            raise PenstockError(
                f"group {group!r} has {count('member', len(info.members))}; it is moved when it has none"
            )
    if moves:
        offsets = {move.where: move.to for move in moves if move.to is not None}
        (await admin.alter_group_offsets(group, offsets)).checked()


async def _positions(admin: Admin, group: str, *, must_exist: bool) -> dict[TopicPartition, int]:
    """What a group has committed. A group that is not there has nothing, which may be a mistake."""
    if must_exist:
        await admin.describe_group(group)
    return {item: found.offset for item, found in (await admin.group_offsets(group)).items()}


async def _partitions(admin: Admin, chosen: Chosen) -> list[TopicPartition]:
    described = await admin.describe_topics(list(chosen), offsets=False, configs=False)
    everything = [
        TopicPartition(name, partition.partition)
        for name, found in described.checked().items()
        for partition in found.partitions
    ]
    named = {TopicPartition(name, number) for name, numbers in chosen.items() for number in numbers}
    # What does not exist is kept, so that it is named when its offsets are asked for.
    return sorted({item for item in everything if not chosen[item.topic]} | named)


def _in(item: TopicPartition, chosen: Chosen) -> bool:
    return item.topic in chosen and (not chosen[item.topic] or item.partition in chosen[item.topic])
