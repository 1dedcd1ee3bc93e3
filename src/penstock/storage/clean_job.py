"""What a cleaning pass is told and what it tells, as plain data: both cross a process boundary as JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from penstock.storage.transaction_index import AbortedTransaction


class SegmentFacts(NamedTuple):
    """A sealed segment: the offset it begins at and the bytes of its log."""

    base: int
    size: int


class LastOfProducer(NamedTuple):
    """What must survive of an active producer: its last data batch, or with -1 the last marker of its epoch."""

    producer_id: int
    last_offset: int
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanJob:
    """One pass over one log.

    `segments` are all sealed segments that begin below `clean_end`, in order. Keys are gathered from `first_dirty` on;
    nothing at or above `clean_end` is looked into, because it is unstable, too young or about to be appended to.
    `aborted` are the aborted transactions that touch those segments, wherever their markers lie.
    """

    segments: list[SegmentFacts]
    first_dirty: int
    clean_end: int
    now_ms: int
    delete_retention_ms: int
    segment_bytes: int
    segment_index_bytes: int
    index_interval_bytes: int
    dedupe_buffer_bytes: int = 128 << 20
    load_factor: float = 0.9
    producers: list[LastOfProducer] = field(default_factory=list)
    aborted: list[AbortedTransaction] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> CleanJob:
        fields = dict(data)
        fields["segments"] = [SegmentFacts(*segment) for segment in data["segments"]]
        fields["producers"] = [LastOfProducer(*producer) for producer in data["producers"]]
        fields["aborted"] = [AbortedTransaction(*aborted) for aborted in data["aborted"]]
        return cls(**fields)


@dataclass(frozen=True, slots=True)
class CleanedSegment:
    """One new segment, under names that end in `.cleaned`, and the old ones that it takes the place of."""

    base: int
    size: int
    replaces: list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanResult:
    """`first_dirty` is where the next pass begins; below it every key has been seen.

    `full` says that the map had no room for all keys, so that another pass is worth it at once.
    """

    segments: list[CleanedSegment]
    first_dirty: int
    full: bool
    keys: int
    bytes_before: int
    bytes_after: int
    records_before: int
    records_after: int
    keyless_dropped: int

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> CleanResult:
        fields = dict(data)
        fields["segments"] = [CleanedSegment(**segment) for segment in data["segments"]]
        return cls(**fields)
