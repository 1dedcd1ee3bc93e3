"""What commands about partitions are given: topics and partitions by name, lists of brokers, rates."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import click

from penstock.model.ids import TopicPartition

if TYPE_CHECKING:
    from penstock.client.admin import PartitionInfo, TopicInfo

_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*(|B|KB|MB|GB)(?:/s)?", re.IGNORECASE)
_UNITS = {"": 1, "B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}


def rate(_context: click.Context, _parameter: click.Parameter, text: str | None) -> int | None:
    """Bytes a second, as 50MB or 1048576."""
    if text is None:
        return None
    found = _RATE.fullmatch(text.strip())
    bytes_per_s = int(float(found[1]) * _UNITS[found[2].upper()]) if found else 0
    if bytes_per_s < 1:
        raise click.BadParameter(f"{text!r} is no rate; one looks like 50MB (a second)")
    return bytes_per_s


def brokers(_context: click.Context, _parameter: click.Parameter, text: str | None) -> tuple[int, ...] | None:
    """Ids of brokers, separated by commas; none of them twice."""
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() for part in parts):
        raise click.BadParameter(f"{text!r} is no list of brokers; one looks like 1,2,3")
    nodes = tuple(map(int, parts))
    if len(set(nodes)) < len(nodes):
        raise click.BadParameter(f"{text!r} names a broker twice")
    return nodes


def parse_choices(given: Sequence[str]) -> list[tuple[str, int | None]]:
    """`orders` or `orders:3`, each as a topic and perhaps one of its partitions."""
    choices: list[tuple[str, int | None]] = []
    for text in given:
        topic, colon, partition = text.partition(":")
        if not topic or (colon and not partition.isdecimal()):
            raise click.BadParameter(
                f"{text!r} is neither a topic nor TOPIC:PARTITION", param_hint="TOPIC[:PARTITION]..."
            )
        choices.append((topic, int(partition) if colon else None))
    return choices


def chosen(
    topics: Iterable[TopicInfo], choices: Sequence[tuple[str, int | None]]
) -> dict[TopicPartition, PartitionInfo]:
    """The partitions that were named, in their order; all of them if none was. UnknownTopic for what is not there."""
    from penstock.client.errors import UnknownTopic
    from penstock.model.closest import did_you_mean

    by_topic: Mapping[str, Mapping[int, PartitionInfo]] = {
        topic.name: {partition.partition: partition for partition in topic.partitions} for topic in topics
    }
    found: dict[TopicPartition, PartitionInfo] = {}
    for topic, index in choices or [(name, None) for name in by_topic]:
        partitions = by_topic.get(topic)
        if partitions is None:
            raise UnknownTopic(f"topic {topic!r} does not exist{did_you_mean(topic, by_topic)}")
        if index is not None and index not in partitions:
            raise UnknownTopic(f"partition {index} of topic {topic!r} does not exist")
        for number in partitions if index is None else (index,):
            found[TopicPartition(topic, number)] = partitions[number]
    return found


def node_list(nodes: Iterable[int]) -> str:
    return ",".join(map(str, nodes)) or "-"


def counted(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
