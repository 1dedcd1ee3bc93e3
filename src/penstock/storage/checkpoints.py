"""Text checkpoints: a version, a count, then one entry a line. Written beside the old one and renamed over it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from penstock.model.errors import Corrupt
from penstock.model.ids import Epoch, Offset, TopicPartition
from penstock.model.ports import Files

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"
OFFSET_CHECKPOINTS = (RECOVERY_POINTS, LOG_STARTS, HIGH_WATERMARKS, CLEANER_OFFSETS)

_VERSION = 0


class EpochStart(NamedTuple):
    """The first offset that a leader epoch may have written."""

    epoch: Epoch
    start: Offset


class OffsetCheckpoint:
    """`topic partition offset` lines: one offset for each partition of a log directory."""

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self.path = path

    def read(self) -> dict[TopicPartition, Offset]:
        """What was written last; empty when there is no file yet. Corrupt when the file makes no sense."""
        offsets = {}
        for topic, partition, offset in _read_lines(self._files, self.path, 3):
            offsets[TopicPartition(topic, _number(self.path, partition))] = Offset(_number(self.path, offset))
        return offsets

    def write(self, offsets: Mapping[TopicPartition, int]) -> None:
        self._files.write_atomic(self.path, self.text(offsets))

    @staticmethod
    def text(offsets: Mapping[TopicPartition, int]) -> bytes:
        return checkpoint_text([f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()])


class LeaderEpochCheckpoint:
    """`epoch start-offset` lines: who led the partition from where on."""

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self.path = path

    def read(self) -> list[EpochStart]:
        lines = _read_lines(self._files, self.path, 2)
        return [EpochStart(Epoch(_number(self.path, e)), Offset(_number(self.path, s))) for e, s in lines]

    def write(self, entries: Sequence[EpochStart]) -> None:
        self._files.write_atomic(self.path, self.text(entries))

    @staticmethod
    def text(entries: Sequence[EpochStart]) -> bytes:
        return checkpoint_text([f"{entry.epoch} {entry.start}" for entry in entries])


def checkpoint_text(lines: Sequence[str]) -> bytes:
    """The bytes of a checkpoint file with these entries."""
    return "".join(f"{line}\n" for line in (str(_VERSION), str(len(lines)), *lines)).encode()


def _read_lines(files: Files, path: str, fields: int) -> list[list[str]]:
    try:
        text = files.read(path).decode()
    except FileNotFoundError:
        return []
    except UnicodeDecodeError as broken:
        raise Corrupt(path, broken.start, "a checkpoint is text") from broken
    lines = text.splitlines()
    if not lines:
        # Created and never written: a broker that just started does this.
        return []
    if lines[0].strip() != str(_VERSION):
        raise Corrupt(path, 0, f"version {lines[0]!r} of this checkpoint is unknown; expected {_VERSION}")
    if len(lines) < 2 or _number(path, lines[1]) != len(lines) - 2:
        raise Corrupt(path, 0, f"the checkpoint announces {lines[1:2]} entries and has {max(0, len(lines) - 2)}")
    entries = [line.split() for line in lines[2:]]
    for entry in entries:
        if len(entry) != fields:
            raise Corrupt(path, 0, f"entry {' '.join(entry)!r} has {len(entry)} fields; expected {fields}")
    return entries


def _number(path: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise Corrupt(path, 0, f"{text!r} is not a number") from None
