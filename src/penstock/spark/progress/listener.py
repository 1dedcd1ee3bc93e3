"""Progress of queries as Spark tells it. Callbacks note what was said and return; `publishing.py` does the rest."""

from __future__ import annotations

import atexit
import threading
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.listener import StreamingQueryListener

from penstock.spark.progress.publishing import Publishing, Run
from penstock.spark.progress.warnings_once import warn_once

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )

_lock = threading.Lock()
_publishing: Publishing | None = None
_listening: dict[str, ProgressListener] = {}


def listen(
    spark: SparkSession,
    *,
    owner: str | None = None,
    bootstrap: str | None = None,
    login: Mapping[str, str] | None = None,
) -> None:
    """Publishes the progress of the session's queries: offsets to groups, records to the internal topic.

    `owner` is the name they are filed under: a pipeline's, or the application's by default. Records go to `bootstrap`
    if given, with this `login`, for queries without a topic too, else to wherever a query reads. Calling it again
    changes these and nothing else. Never fails.
    """
    global _publishing
    try:
        session = session_key(spark)
        with _lock:
            listener = _listening.get(session)
            if listener is None:
                if _publishing is None:
                    _publishing = Publishing()
                    atexit.register(_publishing.close)
                listener = ProgressListener(_publishing, owner or _app_name(spark))
                spark.streams.addListener(listener)
                _listening[session] = listener
            if owner is not None:
                listener.owner = owner
            if bootstrap is not None:
                listener.home = bootstrap
                if login and _publishing is not None:
                    _publishing.log_in(bootstrap, login)
    except Exception as failure:  # queries run as well without anybody listening
        warn_once(
            "listen",
            words=f"progress of queries will not be published: {failure}. Queries run; lag tools see them only up to "
            "the batch before the last.",
        )


def flush(limit_s: float = 2.0) -> bool:
    """Waits until what was heard is told; answers whether it is. For those who are about to end their process."""
    return _publishing is None or _publishing.flush(limit_s)


class ProgressListener(StreamingQueryListener):
    """One session's. Spark calls it from a thread of its own, for one event after the other."""

    def __init__(self, publishing: Publishing, owner: str, home: str = "") -> None:
        self.owner, self.home = owner, home
        self._publishing = publishing

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        self._started(str(event.runId), str(event.id), event.name)

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 - Spark's name
        progress = event.progress
        text = progress.json
        late_rows = sum(state.numRowsDroppedByWatermark for state in progress.stateOperators)

        def change(run: Run) -> None:
            run.told(text, late_rows)

        self._post(str(progress.runId), str(progress.id), progress.name, change)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802 - Spark's name
        def change(run: Run) -> None:
            run.idle = True

        self._publishing.post(str(event.runId), change)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 - Spark's name
        error = event.exception or ""

        def change(run: Run) -> None:
            run.ended, run.error = True, error

        self._publishing.post(str(event.runId), change)

    def _started(self, run_id: str, query_id: str, name: str | None) -> None:
        self._post(run_id, query_id, name, lambda _: None)

    def _post(self, run_id: str, query_id: str, name: str | None, change: Any) -> None:
        def make() -> Run:
            return Run(self.owner, self.home, name or query_id, query_id, run_id)

        self._publishing.post(run_id, change, make)


def session_key(spark: SparkSession) -> str:
    """One for each session, however many Python objects stand for it."""
    try:
        return str(spark._jsparkSession.sessionUUID())
    except Exception:  # a Connect session has no JVM here
        return str(getattr(spark, "session_id", id(spark)))


def _app_name(spark: SparkSession) -> str:
    try:
        return spark.conf.get("spark.app.name") or "spark"
    except Exception:  # a name is nice to have
        return "spark"
