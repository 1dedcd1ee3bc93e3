"""Pipelines as pages show them. Pure: who may see which was decided before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from penstock.console.commands import command
from penstock.console.listings import Sortable
from penstock.console.pipelines.sights import TABLE, groups_of
from penstock.console.views.seeing import Seeing, text_of
from penstock.model.ids import TopicPartition
from penstock.spark.progress.records import FAILED, RUNNING, SILENT, STOPPED, PartitionProgress, ProgressRecord
from penstock.spark.progress.status import PipelineStatus

if TYPE_CHECKING:
    from penstock.console.tables.seen import SeenTable
    from penstock.spark.pipeline.home import SinkProgress

BATCHES_SHOWN: Final = 60
PIPELINE_SORTS: Final[Mapping[str, Sortable[PipelineStatus]]] = {
    "name": lambda pipeline: pipeline.name,
    "state": lambda pipeline: pipeline.state,
    "rate": lambda pipeline: pipeline.rows_per_s,
}
_STATES: Final = {RUNNING: "running", STOPPED: "stopped", FAILED: "failed", SILENT: "unknown"}


@dataclass(frozen=True, slots=True)
class Around:
    """What else is known: tables that this person may read, and where sinks lead, as far as this machine knows."""

    tables: Sequence[SeenTable] = ()
    sinks: Sequence[SinkProgress] = ()

    def filled_by(self, query: ProgressRecord) -> list[SeenTable]:
        return [table for table in self.tables if query.query_id in table.queries]


def pipeline_row(seeing: Seeing, pipeline: PipelineStatus, around: Around) -> dict[str, Any]:
    errors = [f"{_flow(pipeline, query)}: {query.error}" for query in pipeline.queries if query.error]
    return {
        "name": pipeline.name,
        "state": _STATES.get(pipeline.state, pipeline.state),
        "flows": [_flow(pipeline, query) for query in pipeline.queries],
        "rows_per_s": pipeline.rows_per_s if pipeline.state == RUNNING else 0.0,
        "lag": text_of(_lag(seeing, pipeline)),
        "freshness_s": _freshness_s(seeing, pipeline),
        "batch_ms": max((query.batch_ms for query in pipeline.queries), default=None),
        "dead": text_of(_dead(pipeline, around)),
        "last_error": pipeline.error or "; ".join(errors) or None,
        "restarts": pipeline.restarts,
        "seen_ms": pipeline.heard_ms,
    }


def pipeline_page(
    seeing: Seeing,
    pipeline: PipelineStatus,
    around: Around,
    batches: Iterable[ProgressRecord],
    commands: Mapping[str, str],
    acts: Sequence[str],
) -> dict[str, Any]:
    newest = sorted(batches, key=lambda batch: (batch.at_ms, batch.query, batch.batch_id), reverse=True)
    watermarks = [query.watermark for query in pipeline.queries if query.watermark]
    return {
        **pipeline_row(seeing, pipeline, around),
        "host": pipeline.host,
        "pid": pipeline.pid,
        "master": pipeline.master,
        "file": pipeline.file,
        "started_ms": pipeline.started_ms,
        "wanted": pipeline.wanted or None,
        "groups": [group for group in groups_of(pipeline) if seeing.vision.group(group)],
        "sources": _sources(seeing, pipeline),
        "sinks": [sink for query in pipeline.queries for sink in _sinks(pipeline, query, around)],
        "batches": [_batch(pipeline, batch) for batch in newest[:BATCHES_SHOWN]],
        # The one that holds results back is the oldest.
        "watermark": min(watermarks, default=None),
        "state_rows": text_of(sum(query.state_rows for query in pipeline.queries)),
        "state_bytes": text_of(sum(query.state_bytes for query in pipeline.queries)),
        "late_rows": text_of(sum(query.late_rows for query in pipeline.queries)),
        "commands": dict(commands),
        "acts": list(acts),
    }


def commands_of(pipeline: PipelineStatus, lettered: Iterable[str] = ()) -> dict[str, str]:
    """What one would write where the pipeline runs; `lettered` are sources whose dead letters are kept."""
    return {
        "status": command("pipeline", "status", names=[pipeline.name]),
        "stop": command("pipeline", "stop", names=[pipeline.name]),
        "start": command("pipeline", "run", names=[pipeline.file], options=["--detach"]),
        **{
            f"redrive {source}": command("pipeline", "redrive", names=[pipeline.file], options=["--source", source])
            for source in lettered
        },
    }


def _flow(pipeline: PipelineStatus, query: ProgressRecord) -> str:
    return query.query.removeprefix(f"{pipeline.name}-")


def _end(seeing: Seeing, partition: PartitionProgress) -> int | None:
    """By the brokers' word of now, where they were asked; else as the last batch saw it."""
    if partition.topic.startswith(TABLE):
        return None
    known = seeing.picture.ends.get(TopicPartition(partition.topic, partition.partition), -1)
    return max(known, partition.end) if max(known, partition.end) >= 0 else None


def _behind(seeing: Seeing, pipeline: PipelineStatus) -> dict[TopicPartition, int]:
    """Queries that read the same records wait for the same ones: the last of them counts."""
    found: dict[TopicPartition, int] = {}
    for query in pipeline.queries:
        for each in query.partitions:
            end, item = _end(seeing, each), TopicPartition(each.topic, each.partition)
            if end is not None:
                found[item] = max(found.get(item, 0), end - each.offset)
    return found


def _lag(seeing: Seeing, pipeline: PipelineStatus) -> int | None:
    behind = _behind(seeing, pipeline)
    return sum(behind.values()) if behind else None


def _freshness_s(seeing: Seeing, pipeline: PipelineStatus) -> float | None:
    found = [
        seeing.ends_seen.behind_s(TopicPartition(each.topic, each.partition), each.offset, end, seeing.now_ms)
        for query in pipeline.queries
        for each in query.partitions
        if (end := _end(seeing, each)) is not None
    ]
    known = [each for each in found if each is not None]
    return max(known) if known and len(known) == len(found) else None


def _dead(pipeline: PipelineStatus, around: Around) -> int | None:
    """By the commits of the tables that it fills; None where it fills none that is known here."""
    counts = [table.dead.get(query.query_id, 0) for query in pipeline.queries for table in around.filled_by(query)]
    return sum(counts) if counts else None


def _sources(seeing: Seeing, pipeline: PipelineStatus) -> list[dict[str, Any]]:
    behind = _behind(seeing, pipeline)
    names = sorted({each.topic for query in pipeline.queries for each in query.partitions})
    alone = len(names) == 1
    rate = sum(query.input_rows_per_s for query in pipeline.queries if query.active)
    found = []
    for name in names:
        lags = [lag for item, lag in behind.items() if item.topic == name]
        table = name.startswith(TABLE)
        found.append(
            {
                "kind": "table" if table else "topic",
                "name": name.removeprefix(TABLE),
                "topic": None if table else name,
                "table": None,
                "rows_per_s": rate if alone and pipeline.state == RUNNING else None,
                "lag": text_of(sum(lags)) if lags else None,
            }
        )
    return found


def _sinks(pipeline: PipelineStatus, query: ProgressRecord, around: Around) -> list[dict[str, Any]]:
    rate = query.processed_rows_per_s if query.active and pipeline.state == RUNNING else None
    tables = around.filled_by(query)
    if tables:
        return [
            {"kind": "table", "name": table.name, "table": table.name, "rows_per_s": rate, **_commit(table, query)}
            for table in tables
        ]
    here = next((sink for sink in around.sinks if sink.query == query.query), None)
    if here is not None and here.kind:
        topic = here.target if here.kind == "topic" else None
        return [{"kind": here.kind, "name": here.target or here.sink, "topic": topic, "rows_per_s": rate}]
    return [{"kind": None, "name": _flow(pipeline, query), "rows_per_s": rate}]


def _commit(table: SeenTable, query: ProgressRecord) -> dict[str, Any]:
    newest = next((commit for commit in table.recent if commit.query_id == query.query_id), None)
    if newest is None:
        return {"committed": None, "committed_ms": None, "batch": None}
    return {"committed": str(newest.version), "committed_ms": newest.time_ms, "batch": str(newest.batch_id)}


def _batch(pipeline: PipelineStatus, batch: ProgressRecord) -> dict[str, Any]:
    return {
        "id": str(batch.batch_id),
        "flow": _flow(pipeline, batch),
        "run": batch.run_id,
        "at_ms": batch.at_ms,
        "rows": str(batch.rows),
        "duration_ms": batch.batch_ms,
        "parts": dict(batch.durations_ms),
    }
