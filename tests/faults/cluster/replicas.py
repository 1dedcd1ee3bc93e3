"""The files of all replicas side by side, after the nodes have stopped: below the high watermark they are the same."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from itertools import combinations, zip_longest
from pathlib import Path

METADATA = "__cluster_metadata"
_HEADER = struct.Struct(">qiib")
_LAST_OFFSET_DELTA_AT = 23


def stored(directory: Path, *, growing: bool = False) -> Iterator[tuple[int, int, bytes]]:
    """Every batch of a partition in order: its first offset, the offset behind it, its bytes."""
    for segment in sorted(directory.glob("*.log")):
        data = segment.read_bytes()
        at = 0
        while at + 61 <= len(data):
            base, length, _epoch, _magic = _HEADER.unpack_from(data, at)
            if length <= 0 or at + 12 + length > len(data):
                break
            (delta,) = struct.unpack_from(">i", data, at + _LAST_OFFSET_DELTA_AT)
            yield base, base + delta + 1, data[at : at + 12 + length]
            at += 12 + length
        assert growing or at == len(data) or not any(data[at:]), (
            f"{segment} ends inside a batch, at byte {at} of {len(data)}"
        )


def high_watermark(data_dir: Path, topic: str, partition: int) -> int:
    """What a node wrote down when it stopped."""
    path = data_dir / "replication-offset-checkpoint"
    for line in path.read_text().splitlines()[2:] if path.exists() else ():
        name, index, offset = line.rsplit(" ", 2)
        if (name, int(index)) == (topic, partition):
            return int(offset)
    return -1


def assert_identical(data_dirs: Mapping[int, Path], topic: str, partition: int) -> int:
    """Replicas hold the same bytes up to the highest watermark that any of them knows; answers how many records."""
    committed = max(high_watermark(each, topic, partition) for each in data_dirs.values())
    assert committed >= 0, f"nobody has written down how far {topic}-{partition} is committed"
    bases = {node_id: _bases(each / f"{topic}-{partition}") for node_id, each in data_dirs.items()}
    logs = {
        node_id: [batch for batch in stored(each / f"{topic}-{partition}") if batch[0] < committed]
        for node_id, each in data_dirs.items()
    }
    # Retention may have left nothing but the place where the next record goes.
    _assert_same(logs, f"{topic}-{partition}", start=max(min(each) for each in bases.values()))
    for node_id, batches in logs.items():
        end = batches[-1][1] if batches else max(bases[node_id])
        assert end >= committed, f"{topic}-{partition} of node {node_id} ends at {end}, committed are {committed}"
    return committed


def _bases(directory: Path) -> list[int]:
    return [int(path.stem) for path in directory.glob("*.log")]


def assert_agree(stopped: Path, other: Path, topic: str, partition: int) -> None:
    """What a stopped node has committed, another that goes on has too, byte for byte.

    Segments of the other that are being written end inside a batch; retention may take the first of them meanwhile.
    """
    committed = high_watermark(stopped, topic, partition)
    mine = [batch for batch in stored(stopped / f"{topic}-{partition}") if batch[0] < committed]
    theirs = [batch for batch in stored(other / f"{topic}-{partition}", growing=True) if batch[0] < committed]
    _assert_same({0: mine, 1: theirs}, f"{topic}-{partition} of {stopped} and {other}")


def assert_metadata_agree(stopped: Path, other: Path) -> None:
    """Up to where two metadata logs have the same batch in the same place, they are the same."""
    mine, theirs = [*stored(stopped)], [*stored(other, growing=True)]
    places = {(base, _epoch(data)) for base, _end, data in mine}
    end = max((base + 1 for base, _end, data in theirs if (base, _epoch(data)) in places), default=0)
    _assert_same({0: _below(mine, end), 1: _below(theirs, end)}, f"{METADATA} of {stopped} and {other}")


def assert_metadata_identical(data_dirs: Mapping[int, Path], committed: int) -> None:
    """The metadata logs agree below what is committed, and wherever else two of them must.

    Behind it a leader that stopped may have records that nobody fetched, in the place where its successor wrote others:
    it drops them when it follows again. But where two logs have a batch of one epoch at one offset, they are the same
    up to there. Logs may begin behind different snapshots.
    """
    logs = {node_id: [*stored(each / f"{METADATA}-0")] for node_id, each in data_dirs.items()}
    longest = max(batches[-1][1] for batches in logs.values() if batches)
    assert longest >= committed, f"{METADATA} ends at {longest} at most, committed are {committed}"
    for (one, mine), (other, theirs) in combinations(logs.items(), 2):
        places = {(base, _epoch(data)) for base, _end, data in mine}
        agreed = max((base + 1 for base, _end, data in theirs if (base, _epoch(data)) in places), default=0)
        both = min(mine[-1][1] if mine else 0, theirs[-1][1] if theirs else 0)
        end = max(agreed, min(committed, both))
        _assert_same({one: _below(mine, end), other: _below(theirs, end)}, METADATA)


def _below(batches: list[tuple[int, int, bytes]], end: int) -> list[tuple[int, int, bytes]]:
    return [batch for batch in batches if batch[0] < end]


def _epoch(data: bytes) -> int:
    epoch: int = _HEADER.unpack_from(data)[2]
    return epoch


def _assert_same(logs: Mapping[int, list[tuple[int, int, bytes]]], name: str, start: int = 0) -> None:
    (first, expected), *others = logs.items()
    # A replica that was filled later may begin later.
    start = max((start, *(batches[0][0] for batches in logs.values() if batches)))
    mine = [batch for batch in expected if batch[0] >= start]
    for node_id, batches in others:
        for a, b in zip_longest(mine, [batch for batch in batches if batch[0] >= start]):
            assert a == b, f"{name} differs between nodes {first} and {node_id}: {_words(a)} there, {_words(b)} here"


def _words(batch: tuple[int, int, bytes] | None) -> str:
    if batch is None:
        return "nothing"
    base, end, data = batch
    return f"[{base}, {end}) epoch {_epoch(data)} {len(data)} bytes"
