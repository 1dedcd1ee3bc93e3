"""Streams that begin on a busy machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.patience import Patience, wait_for

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

TOO_LATE = "Python worker failed to connect back"
BEGINNING = "Initializing"
PATIENCE_S = 60


def started(writer: Any, *where: str) -> StreamingQuery:
    """`writer.start()`, once more if the source's process came too late.

    Spark gives a process that plans a source ten seconds to connect, which no setting changes, and a machine may be too
    busy for that. A pipeline tries again, and so do tests: nothing was read yet.
    """
    patience = Patience(PATIENCE_S)
    while True:
        query: StreamingQuery = writer.start(*where)
        wait_for("the source", lambda query=query: not _begins(query), timeout_s=PATIENCE_S)  # type: ignore[misc]
        failure = query.exception()
        if failure is None or TOO_LATE not in str(failure) or patience.over():
            return query


def _begins(query: StreamingQuery) -> bool:
    return query.isActive and str(query.status["message"]).startswith(BEGINNING)
