"""The little tuples that consumers give and take: where a group stands, what a lookup found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from penstock.model.ids import TopicPartition

EARLIEST: Final = -2
LATEST: Final = -1
"""Timestamps with a meaning of their own in ListOffsets."""

READ_UNCOMMITTED: Final = 0
READ_COMMITTED: Final = 1


class OffsetAndMetadata(NamedTuple):
    """A committed offset: the next record to read, words of the application, and the epoch of the last record read."""

    offset: int
    metadata: str = ""
    leader_epoch: int = -1


class GroupMetadata(NamedTuple):
    """A consumer's place in its group: brokers refuse the offsets of one whose place others have taken.

    With the group's name alone nothing is checked: for partitions that were assigned by hand. Where the broker assigns,
    `generation` is the member epoch.
    """

    group_id: str
    generation: int = -1
    member_id: str = ""
    instance_id: str | None = None


class OffsetAndTimestamp(NamedTuple):
    """The first record at or after a time."""

    offset: int
    timestamp: int
    leader_epoch: int = -1


def as_committed(
    offsets: Mapping[tuple[str, int], OffsetAndMetadata | int],
) -> dict[TopicPartition, OffsetAndMetadata]:
    """Offsets as callers give them: with words and epochs, or as plain numbers."""
    return {
        TopicPartition(*tp): OffsetAndMetadata(given) if isinstance(given, int) else given
        for tp, given in offsets.items()
    }
