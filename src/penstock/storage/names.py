"""How files and directories of a log are called."""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple

from penstock.model.ids import METADATA_TOPIC, TopicPartition

LOG = ".log"
OFFSET_INDEX = ".index"
TIME_INDEX = ".timeindex"
TRANSACTION_INDEX = ".txnindex"
SNAPSHOT = ".snapshot"
SEGMENT_SUFFIXES = (LOG, OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX)

DELETED = ".deleted"
CLEANED = ".cleaned"
SWAP = ".swap"

LEADER_EPOCHS = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"

# Longest name a directory may have on the file systems people use.
NAME_BYTES_MAX = 255
_DIGITS = 20
# Every ending that a file of a segment can have, with its two parts. A table: a start looks at 50,000 names.
_ENDINGS = {
    kind + mark: (kind, mark) for kind in (*SEGMENT_SUFFIXES, SNAPSHOT) for mark in ("", DELETED, CLEANED, SWAP)
}
_MARKED_DIRECTORY = re.compile(r"^(.+)-(\d+)\.([^.]+)-(delete|future|stray)$")
_DIRECTORY = re.compile(r"^(.+)-(\d+)$")


def segment_file(base: int, suffix: str) -> str:
    """`00000000000000000042.log`."""
    return f"{base:020d}{suffix}"


class SegmentFile(NamedTuple):
    """A parsed file name: offset, kind (`.log` …) and mark (`.swap` … or empty)."""

    base: int
    kind: str
    mark: str


def parse_segment_file(name: str) -> SegmentFile | None:
    """None for every file that is not part of a segment; such files are left alone."""
    ending = _ENDINGS.get(name[_DIGITS:])
    if ending is None or not (name[:_DIGITS].isascii() and name[:_DIGITS].isdigit()):
        return None
    return SegmentFile(int(name[:_DIGITS]), *ending)


class Kind(Enum):
    """What a partition directory is for."""

    LIVE = ""
    DELETE = "delete"
    FUTURE = "future"
    STRAY = "stray"


def partition_directory(name: TopicPartition, kind: Kind = Kind.LIVE, unique: str = "") -> str:
    """`orders-3`, or with a mark `orders-3.<32 hex digits>-delete`; a long topic name is cut to fit."""
    if kind is Kind.LIVE:
        return str(name)
    suffix = f"-{name.partition}.{unique}-{kind.value}"
    if kind is Kind.FUTURE:
        return f"{name.topic}{suffix}"
    return f"{name.topic[: NAME_BYTES_MAX - len(suffix)]}{suffix}"


def parse_partition_directory(directory: str) -> tuple[TopicPartition, Kind] | None:
    """What a directory name says; None when it is no partition of ours (the metadata log belongs to the quorum)."""
    match = _MARKED_DIRECTORY.match(directory)
    if match:
        return TopicPartition(match[1], int(match[2])), Kind(match[4])
    match = _DIRECTORY.match(directory)
    if match is None or match[1] == METADATA_TOPIC:
        return None
    return TopicPartition(match[1], int(match[2])), Kind.LIVE
