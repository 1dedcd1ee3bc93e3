"""What is found at the end: in the writer's count, the topics, the table, and its audit. Values only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


class Arrival(NamedTuple):
    """One line where it arrived: a row of the table, or a dead letter. Partition and offset are those of the topic."""

    partition: int
    offset: int
    line: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """Lines are numbered from 0, so how many were written says which."""

    written: int
    broken: frozenset[int]
    """Lines that the writer broke on purpose."""
    topic: Mapping[int, tuple[int, int]]
    """Partition → first offset and end."""
    rows: Sequence[Arrival]
    letters: Sequence[Arrival]
    """As the topic has them: a crash may send one twice, so they are counted by where they come from."""
    minutes_in_table: Mapping[str, int]
    minutes_in_topic: Mapping[str, int]
    absent: frozenset[tuple[int, int]] = frozenset()
    """Partition and offset where the topic holds no record: markers of transactions, and what was aborted."""
    audit_clean: bool = True
    audit_words: str = ""
    shipped: Sequence[int] = ()
    """The line of each record that the topic shows to readers of committed ones."""
    sums_clean: bool = True
    sums_words: str = ""


class Landing(NamedTuple):
    """A commit of the table: when, and which offsets of the topic it brought."""

    time_ms: int
    ranges: tuple[tuple[int, int, int], ...]
    """Partition, first offset, end."""
    rows: int


@dataclass(frozen=True, slots=True)
class Timings:
    """What was measured on the way; None what did not happen."""

    failover_s: float | None = None
    """From kill -9 of the node until every partition had a leader that lives."""
    in_sync_s: float | None = None
    """From its return until it had caught up with everything."""
    pipeline_s: float | None = None
    """From kill -9 of the driver until the table grew again."""
    agent_s: float | None = None
    """From kill -9 of the agent until the next one had committed lines."""


@dataclass(frozen=True, slots=True)
class Speed:
    """How fast it was, from what the table and the writer say."""

    seconds: float
    """Of writing."""
    lines_per_s: float
    bytes_per_s: float
    peak_rows_per_s: float
    """Of the table, between two commits: what it does when it has to catch up."""
    fresh_p50_s: float
    fresh_p99_s: float
    commits: int


@dataclass(frozen=True, slots=True)
class Findings:
    """All that the end of the demo tells."""

    evidence: Evidence
    speed: Speed
    timings: Timings = field(default_factory=Timings)
