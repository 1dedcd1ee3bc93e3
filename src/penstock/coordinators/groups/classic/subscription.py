"""Reads which topics the members of a classic group of consumers subscribe to."""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct, error

_VERSION_AND_COUNT = Struct(">hi")
_LENGTH = Struct(">h")


def topics_of(metadata: bytes) -> list[str]:
    """The topics in a consumer's metadata, whose versions all begin alike; ValueError when it is something else."""
    try:
        version, count = _VERSION_AND_COUNT.unpack_from(metadata, 0)
        position = _VERSION_AND_COUNT.size
        if version < 0 or count < 0 or count > len(metadata):
            raise ValueError("not a consumer's subscription")
        topics = []
        for _ in range(count):
            (length,) = _LENGTH.unpack_from(metadata, position)
            position += _LENGTH.size
            name = metadata[position : position + length]
            if length < 0 or len(name) != length:
                raise ValueError("a topic name is cut off")
            topics.append(name.decode("utf-8"))
            position += length
    except error as broken:
        raise ValueError("not a consumer's subscription") from broken
    return topics


def subscribed_topics(metadata: Iterable[bytes]) -> frozenset[str] | None:
    """The topics of all members together; None when a member's metadata cannot be read."""
    topics: set[str] = set()
    try:
        for each in metadata:
            topics.update(topics_of(each))
    except ValueError:
        return None
    return frozenset(topics)
