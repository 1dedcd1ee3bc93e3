"""Which streaming query a task belongs to, as Spark tells its tasks."""

from __future__ import annotations

from dataclasses import dataclass

_QUERY_ID = "sql.streaming.queryId"
_BATCH_ID = "streaming.sql.batchId"
_DESCRIPTION = "spark.job.description"


@dataclass(frozen=True, slots=True)
class RunningQuery:
    """`name` is the one that the user gave, or else the id."""

    id: str
    batch_id: int
    name: str
    attempt: int = 0
    """How often this task was tried before."""


def running_query() -> RunningQuery | None:
    """The query and batch of the task that runs here; None outside of tasks and in batch queries."""
    from pyspark import TaskContext

    context = TaskContext.get()
    if context is None:
        return None
    query_id, batch_id = context.getLocalProperty(_QUERY_ID), context.getLocalProperty(_BATCH_ID)
    if not query_id or not batch_id:
        return None
    name = name_in(context.getLocalProperty(_DESCRIPTION) or "") or query_id
    return RunningQuery(query_id, int(batch_id), name, context.attemptNumber())


def name_in(description: str) -> str:
    """Spark describes a job as the query's name, if it has one, and lines `id = …`, `runId = …`, `batch = …`."""
    first = description.split("\n", 1)[0]
    return "" if first.startswith("id = ") else first
