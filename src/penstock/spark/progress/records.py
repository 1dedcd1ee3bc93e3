"""What is published about a query, a pipeline, and what is wanted of one. Pure: JSON in, values out, and back.

Fields that a later version added are passed over; those that an earlier one did not have take their defaults.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from typing import Any, Final, Self

from penstock.model.ids import TopicPartition
from penstock.spark.offsets import StreamOffset

ERROR_CHARS_MAX: Final = 4_000
"""Spark's messages bring whole plans along."""

RUNNING: Final = "running"
STOPPED: Final = "stopped"
FAILED: Final = "failed"
SILENT: Final = "silent"
"""Says it runs, but has not been heard of for several heartbeats."""

STOP: Final = "stop"
RUN: Final = "run"


@dataclass(frozen=True, slots=True)
class PartitionProgress:
    """How far a query is in a partition: `offset` is the next to read, `end` that of the log, -1 if unknown.

    `committed` says that only committed records are read: then `end` is the last stable offset.
    """

    topic: str
    partition: int
    offset: int
    end: int = -1
    committed: bool = False

    @property
    def lag(self) -> int:
        """Records behind; 0 when the end is not known."""
        return max(0, self.end - self.offset) if self.end >= 0 else 0


@dataclass(frozen=True, slots=True)
class ExpectationCount:
    """How many rows of a source, a step or a sink (`place`) were held against a rule, and how many broke it."""

    place: str
    name: str
    rows: int
    broken: int


@dataclass(frozen=True, slots=True)
class ProgressRecord:
    """One query after one of its batches. `owner` is the pipeline, or the Spark application."""

    owner: str
    query: str
    query_id: str
    run_id: str
    batch_id: int
    at_ms: int
    rows: int = 0
    input_rows_per_s: float = 0.0
    processed_rows_per_s: float = 0.0
    batch_ms: int = 0
    durations_ms: Mapping[str, int] = field(default_factory=dict)
    watermark: str = ""
    state_rows: int = 0
    state_bytes: int = 0
    late_rows: int = 0
    """Dropped because they came after the watermark: in this batch, and since the query began where it is published."""
    sink: str = ""
    output_rows: int = -1
    partitions: tuple[PartitionProgress, ...] = ()
    active: bool = True
    error: str = ""
    expectations: tuple[ExpectationCount, ...] = ()
    """Of this batch, and since the query began where it is published."""

    @property
    def key(self) -> str:
        return progress_key(self.owner, self.query)

    @property
    def lag(self) -> int:
        return sum(partition.lag for partition in self.partitions)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of_json(cls, given: Mapping[str, Any]) -> Self:
        known = _known(cls, given)
        known["partitions"] = tuple(
            PartitionProgress(**_known(PartitionProgress, item)) for item in given.get("partitions", ())
        )
        known["expectations"] = expectations_of_json(given)
        return cls(**known)


@dataclass(frozen=True, slots=True)
class PipelineRecord:
    """A pipeline in its own words, said again with every heartbeat."""

    name: str
    state: str
    host: str
    pid: int
    started_ms: int
    at_ms: int
    master: str = ""
    digest: str = ""
    heartbeat_ms: int = 10_000
    bootstrap: str = ""
    file: str = ""
    error: str = ""
    restarts: int = 0
    fresh_within_s: Mapping[str, float] = field(default_factory=dict)
    """What is promised of queries, by their names."""

    @property
    def key(self) -> str:
        return f"pipeline/{self.name}"

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of_json(cls, given: Mapping[str, Any]) -> Self:
        return cls(**_known(cls, given))


EXPECTED: Final = "expect."
"""Observed metrics have this before the name of the source, step or sink: `rows`, and one for each expectation."""
_ROWS: Final = "rows"


def expectations_in(progress: Mapping[str, Any]) -> tuple[ExpectationCount, ...]:
    """What Spark observed of rules in a batch."""
    return tuple(
        ExpectationCount(observed.removeprefix(EXPECTED), name, int(counts.get(_ROWS) or 0), int(broken or 0))
        for observed, counts in sorted((progress.get("observedMetrics") or {}).items())
        if observed.startswith(EXPECTED)
        for name, broken in counts.items()
        if name != _ROWS
    )


def summed(*many: Iterable[ExpectationCount]) -> tuple[ExpectationCount, ...]:
    """Those of several batches."""
    found: dict[tuple[str, str], ExpectationCount] = {}
    for counts in many:
        for each in counts:
            before = found.get((each.place, each.name))
            rows, broken = (0, 0) if before is None else (before.rows, before.broken)
            found[each.place, each.name] = ExpectationCount(
                each.place, each.name, rows + each.rows, broken + each.broken
            )
    return tuple(found.values())


def expectations_of_json(given: Mapping[str, Any]) -> tuple[ExpectationCount, ...]:
    return tuple(ExpectationCount(**_known(ExpectationCount, item)) for item in given.get("expectations", ()))


def progress_key(owner: str, query: str) -> str:
    return f"progress/{owner}/{query}"


def control_key(name: str) -> str:
    return f"control/{name}"


def our_offsets(progress: Mapping[str, Any]) -> list[tuple[StreamOffset, Mapping[TopicPartition, int]]]:
    """Where each source of ours is after a batch, and the ends of its logs as far as they were told."""
    found = []
    for source in progress.get("sources", ()):
        end = _offset(source.get("endOffset"))
        if StreamOffset.is_ours(end):
            latest = _offset(source.get("latestOffset"))
            ends = StreamOffset.of_json(latest).ends if isinstance(latest, Mapping) else {}
            found.append((StreamOffset.of_json(end), ends))
    return found


def query_of(progress: Mapping[str, Any]) -> str:
    """What a query is called: its name, or its id when it has none."""
    return str(progress.get("name") or progress["id"])


def record_of(owner: str, progress: Mapping[str, Any]) -> ProgressRecord:
    """What Spark tells of a batch (its progress as JSON) as what we publish."""
    states = progress.get("stateOperators", ())
    sink = progress.get("sink") or {}
    durations = {str(name): int(ms) for name, ms in (progress.get("durationMs") or {}).items()}
    return ProgressRecord(
        owner=owner,
        query=query_of(progress),
        query_id=str(progress["id"]),
        run_id=str(progress["runId"]),
        batch_id=int(progress["batchId"]),
        at_ms=_millis(progress.get("timestamp", "")),
        rows=int(progress.get("numInputRows") or 0),
        input_rows_per_s=_rate(progress.get("inputRowsPerSecond")),
        processed_rows_per_s=_rate(progress.get("processedRowsPerSecond")),
        batch_ms=int(progress.get("batchDuration") or durations.get("triggerExecution", 0)),
        durations_ms=durations,
        watermark=str((progress.get("eventTime") or {}).get("watermark", "")),
        state_rows=sum(int(state.get("numRowsTotal") or 0) for state in states),
        state_bytes=sum(int(state.get("memoryUsedBytes") or 0) for state in states),
        late_rows=sum(int(state.get("numRowsDroppedByWatermark") or 0) for state in states),
        sink=str(sink.get("description", "")),
        output_rows=int(sink.get("numOutputRows", -1)),
        partitions=tuple(
            PartitionProgress(tp.topic, tp.partition, offset, ends.get(tp, -1), here.committed)
            for here, ends in our_offsets(progress)
            for tp, offset in sorted(here.ends.items())
        ),
        expectations=expectations_in(progress),
    )


def _offset(given: Any) -> Any:
    """Offsets come as text or already read, and as null or "null" where there is none."""
    if not isinstance(given, str):
        return given
    try:
        return json.loads(given)
    except ValueError:
        return None


def _rate(given: Any) -> float:
    """Spark says NaN and Infinity for batches that took no time; JSON has neither."""
    try:
        rate = float(given or 0.0)
    except ValueError:
        return 0.0
    return rate if 0.0 <= rate < float("inf") else 0.0


def _millis(timestamp: str) -> int:
    try:
        return int(datetime.fromisoformat(timestamp).timestamp() * 1000)
    except ValueError:
        return 0


def _known(kind: type[Any], given: Mapping[str, Any]) -> dict[str, Any]:
    return {item.name: given[item.name] for item in fields(kind) if item.name in given}
