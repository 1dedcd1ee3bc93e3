"""The little tuples that consumers give and take: where a group stands, what a lookup found."""

from __future__ import annotations

from typing import Final, NamedTuple

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


class OffsetAndTimestamp(NamedTuple):
    """The first record at or after a time."""

    offset: int
    timestamp: int
    leader_epoch: int = -1
