"""What is seen of everything at one moment; watchers write it, views draw it. Values and a little arithmetic."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

UP, STARTING, KILLED = "up", "starting", "killed"

_RATE_OVER_S: Final = 4.0
_REMEMBERED: Final = 2_000
"""Moments of the writer's count: at two a second, more than a quarter of an hour."""


class Event(NamedTuple):
    """Something that happened. `kind` is step, crash or good."""

    at_s: float
    words: str
    kind: str


class PartitionSight(NamedTuple):
    partition: int
    leader: int
    in_sync: tuple[int, ...]
    replicas: tuple[int, ...]
    end: int


class Rate:
    """How fast a number that only rises has risen lately."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, float]] = deque()

    def saw(self, at_s: float, value: float) -> None:
        if self._seen and value < self._seen[-1][1]:
            self._seen.clear()  # whoever counts has begun anew
        self._seen.append((at_s, value))
        while len(self._seen) > 2 and at_s - self._seen[0][0] > _RATE_OVER_S:
            self._seen.popleft()

    @property
    def per_s(self) -> float:
        if len(self._seen) < 2:
            return 0.0
        (from_s, low), (to_s, high) = self._seen[0], self._seen[-1]
        return (high - low) / max(0.001, to_s - from_s)


@dataclass(slots=True)
class LogSight:
    lines: int = 0
    bytes: int = 0
    broken: int = 0
    rotations: int = 0
    clock: str = ""
    """What the log's own clock shows."""
    rate: Rate = field(default_factory=Rate)
    moments: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))
    """When (in ms) how many lines were there."""

    def had_ms(self, lines: int) -> int | None:
        """When there were so many lines for the first time, as far as is remembered."""
        return next((at_ms for at_ms, count in self.moments if count >= lines), None)


@dataclass(slots=True)
class AgentSight:
    state: str = STARTING
    sent: int = 0
    """Committed, by this agent and those that were killed before it."""
    pid: int = 0
    before: int = 0
    """What those had sent that were killed, as far as it was seen."""
    behind_bytes: int = 0
    files: int = 0
    rate: Rate = field(default_factory=Rate)


@dataclass(slots=True)
class PipelineSight:
    state: str = STARTING
    restarts: int = 0
    driver_pid: int = 0
    error: str = ""
    summed: dict[int, int] = field(default_factory=dict)
    """Partition → the offset up to which the sums of the minutes have it."""


@dataclass(slots=True)
class TableSight:
    rows: int = 0
    dead: int = 0
    version: int = -1
    commits: int = 0
    last_commit_ms: int = 0
    stands: dict[int, int] = field(default_factory=dict)
    """Partition → the offset up to which the table has it."""
    rate: Rate = field(default_factory=Rate)


@dataclass(slots=True)
class Sight:
    """Everything. `now` says in a few words what is happening."""

    now: str = "three nodes start"
    elapsed_s: float = 0.0
    now_ms: int = 0
    bootstrap: str = ""
    nodes: dict[int, str] = field(default_factory=dict)
    partitions: list[PartitionSight] = field(default_factory=list)
    log: LogSight = field(default_factory=LogSight)
    agent: AgentSight = field(default_factory=AgentSight)
    pipeline: PipelineSight = field(default_factory=PipelineSight)
    table: TableSight = field(default_factory=TableSight)
    events: list[Event] = field(default_factory=list)

    @property
    def records(self) -> int:
        """In the topic."""
        return sum(each.end for each in self.partitions if each.end > 0)

    @property
    def behind_records(self) -> int:
        """In the topic and not in the table yet."""
        return sum(max(0, each.end - self.table.stands.get(each.partition, 0)) for each in self.partitions)

    @property
    def behind_sums(self) -> int:
        """In the topic and not in the sums yet."""
        return sum(max(0, each.end - self.pipeline.summed.get(each.partition, 0)) for each in self.partitions)

    @property
    def stale_s(self) -> float | None:
        """How old the newest line is that the table has with all before it; None before it has any."""
        there = self.table.rows + self.table.dead
        if not there:
            return None
        if there >= self.log.lines:
            return 0.0
        at_ms = self.log.had_ms(there)
        return None if at_ms is None else max(0.0, (self.now_ms - at_ms) / 1000)

    def leads(self, node: int) -> list[int]:
        return [each.partition for each in self.partitions if each.leader == node]

    @property
    def all_in_sync(self) -> bool:
        return bool(self.partitions) and all(set(each.in_sync) == set(each.replicas) for each in self.partitions)

    def led_by_others(self, node: int, partitions: Iterable[int]) -> bool:
        """Whether partitions that a node led have another leader."""
        wanted = set(partitions)
        return all(each.leader not in (-1, node) for each in self.partitions if each.partition in wanted)
