"""All queries of a flow, each on its own: one that fails is started again from its checkpoint while the others go on.

One thread owns a Runner: it starts, looks every moment, and stops. Spark runs the queries on threads of its own.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from penstock.spark.pipeline import home
from penstock.spark.pipeline.building import query_of_mates, ship, start_query
from penstock.spark.pipeline.cures import told_with_cure
from penstock.spark.pipeline.flow import AVAILABLE_NOW, CONTINUOUS, Flow, Sink
from penstock.spark.pipeline.home import Progress, SinkProgress
from penstock.spark.pipeline.mirroring import begun
from penstock.spark.pipeline.references import ReferenceWatch
from penstock.spark.pipeline.releasing import release_topic
from penstock.spark.pipeline.retrying import SINKS, Patience, Tries
from penstock.spark.pipeline.starts import begin_of, forget_wish
from penstock.spark.progress.records import ProgressRecord, record_of
from penstock.spark.reasons import reason_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

WAITING, RUNNING, RETRYING = "waiting", "running", "retrying"
FINISHED, STOPPED, FAILED = "finished", "stopped", "failed"

LOOK_EVERY_S: Final = 0.25

_log = logging.getLogger("penstock.spark.pipeline")


class SinkRun:
    """One sink and the query that serves it now."""

    def __init__(self, flow: Flow, sink: Sink) -> None:
        self.flow, self.sink = flow, sink
        self.state = WAITING
        self.query: StreamingQuery | None = None
        self.tries = Tries()
        self.retry_at_s = 0.0
        self.error = ""
        self.rows = 0
        self.late_rows = 0
        self.batches = 0
        self.last: ProgressRecord | None = None
        self.references = ReferenceWatch(flow, sink)
        self._seen: tuple[str, int, str] = ("", -1, "")
        """Run, batch and time of what was last taken in."""

    @property
    def going(self) -> bool:
        return self.state in home.GOING

    def learn(self) -> bool:
        """Takes in what the query has told of its batches; answers whether there was a new one."""
        query = self.query
        newest = None if query is None else query.lastProgress
        if query is None or newest is None:
            return False
        told = json.loads(newest.json)
        seen = str(told["runId"]), int(told["batchId"]), str(told.get("timestamp", ""))
        if seen == self._seen:
            return False
        before = self._seen[1:] if self._seen[0] == seen[0] else (-1, "")
        # Batches pass between two looks, the first ones while other sinks are started: Spark remembers a hundred.
        records = [record_of(self.flow.name, each) for each in _told_since(query, before)]
        self.last = record_of(self.flow.name, told)
        self.rows += sum(each.rows for each in records)
        self.late_rows += sum(each.late_rows for each in records)
        batches = len({each.batch_id for each in records if each.batch_id > before[0]})
        self.batches += batches
        self._seen = seen
        return batches > 0

    def told(self) -> SinkProgress:
        last = self.last
        known = SinkProgress(
            sink=self.sink.name,
            kind=self.sink.kind.value,
            target=self.sink.target,
            state=self.state,
            query=self.flow.query_name(self.sink),
            rows=self.rows,
            late_rows=self.late_rows,
            failures=self.tries.failed,
            error=self.error,
            fresh_within_s=self.sink.fresh_within_s,
        )
        if last is None:
            return known
        return SinkProgress(
            **{
                **{name: getattr(known, name) for name in known.__slots__},
                "batch_id": last.batch_id,
                "rows_per_s": last.processed_rows_per_s if self.state == RUNNING else 0.0,
                "lag": last.lag,
                "partitions": last.partitions,
                "batch_ms": last.batch_ms,
                "watermark": last.watermark,
                "state_rows": last.state_rows,
                "state_bytes": last.state_bytes,
                "at_ms": last.at_ms,
            }
        )


class Runner:
    """A flow at work on a session that is given."""

    def __init__(
        self,
        flow: Flow,
        spark: SparkSession,
        *,
        patience: Patience = SINKS,
        clock: Callable[[], float] = time.monotonic,
        begin: Callable[[SparkSession, Flow, Sink], StreamingQuery] | None = None,
    ) -> None:
        """`begin` starts the query of a sink; another one is for tests of what happens when it cannot."""
        self.flow, self.spark = flow, spark
        self.sinks = [SinkRun(flow, sink) for sink in flow.sinks]
        self._patience, self._clock, self._begin = patience, clock, begin or _begin
        self._stopping = False

    def start(self) -> None:
        """Starts every sink; one that cannot be started counts as failed and keeps nobody else from starting."""
        ship(self.spark, self.flow)
        for run in self.sinks:
            self._start(run)

    def look(self) -> None:
        """Learns of progress, of ends and failures, and starts again what is due."""
        for run in self.sinks:
            if run.state == RUNNING:
                self._look_at(run)
                if run.state == RUNNING:
                    self._refresh(run)
            elif run.state == RETRYING and self._clock() >= run.retry_at_s and not self._stopping:
                self._start(run)

    @property
    def done(self) -> bool:
        """Whether nothing runs any more and nothing will be tried again."""
        return not any(run.going for run in self.sinks)

    @property
    def state(self) -> str:
        """running; when done: failed if any sink failed, else stopped or finished."""
        if not self.done:
            return home.STOPPING if self._stopping else home.RUNNING
        states = {run.state for run in self.sinks}
        return home.FAILED if FAILED in states else home.STOPPED if STOPPED in states else home.FINISHED

    def progress(self) -> Progress:
        return Progress(time.time_ns() // 1_000_000, self.state, tuple(run.told() for run in self.sinks))

    def run(
        self,
        stop: threading.Event,
        *,
        stop_within_s: float = 30.0,
        heed: Callable[[Runner], None] = lambda _: None,
    ) -> str:
        """From start to end: until all sinks are done or `stop` is set; gives the state it ended in.

        `heed` is called at every look.
        """
        self.start()
        while not self.done and not stop.is_set():
            self.look()
            heed(self)
            stop.wait(LOOK_EVERY_S)
        self.stop(within_s=stop_within_s)
        heed(self)
        return self.state

    def stop(self, *, within_s: float = 30.0) -> None:
        """Ends every query after the batch it is in, or in the middle of it when that takes longer than `within_s`.

        A batch that is broken off is done again by the next run, from the checkpoint: nothing is lost or doubled by it.
        """
        self._stopping = True
        deadline_s = self._clock() + within_s
        begun = {run.sink.name: run.batches for run in self.sinks}
        while any(run.state == RUNNING for run in self.sinks):
            late = self._clock() >= deadline_s
            for run in self.sinks:
                if run.state == RUNNING:
                    self._look_at(run)
                    if run.state == RUNNING and (late or self._rests(run, begun[run.sink.name])):
                        self._end(run)
            time.sleep(0.02)
        for run in self.sinks:
            if run.going:
                run.state = STOPPED

    def _rests(self, run: SinkRun, batches_before: int) -> bool:
        """Whether it is between two batches, or the one that ran when we were asked to stop is through."""
        assert run.query is not None, "a running sink has a query"
        if run.batches > batches_before and run.sink.trigger == CONTINUOUS:
            return True
        status = run.query.status
        return not status["isTriggerActive"] or not status["isDataAvailable"]

    def _refresh(self, run: SinkRun) -> None:
        """Begins a query again between two batches when a table that its steps join has moved."""
        now_s = self._clock()
        if run.references.moved(now_s) and (run.references.late(now_s) or self._rests(run, run.batches)):
            self._end(run)
            self._start(run)

    def _end(self, run: SinkRun) -> None:
        assert run.query is not None, "a running sink has a query"
        try:
            run.query.stop()
        except Exception as failure:  # it is being stopped: why it would not is worth a word, no more
            _log.warning("sink %s did not stop cleanly: %s", run.sink.name, reason_of(failure).words)
        release_topic(self.spark, self.flow, run.sink)
        run.learn()
        run.state = STOPPED

    def _start(self, run: SinkRun) -> None:
        run.tries = run.tries.started(self._clock())
        try:
            run.references.begun(self._clock())
            run.query = self._begin(self.spark, self.flow, run.sink)
        except Exception as failure:  # whatever it is, it is this sink's trouble and nobody else's
            _raise_if_session_is_gone(failure)
            self._failed(run, failure)
            return
        run.state = RUNNING

    def _look_at(self, run: SinkRun) -> None:
        query = run.query
        assert query is not None, "a running sink has a query"
        if run.learn():
            run.tries, run.error = run.tries.went_well(), ""
            forget_wish(self.flow, run.sink)
        if query.isActive:
            return
        run.learn()
        failure = query.exception()
        if failure is not None:
            release_topic(self.spark, self.flow, run.sink)
            self._failed(run, failure)
        elif run.sink.trigger == AVAILABLE_NOW:
            run.state = FINISHED
        else:
            # Somebody else stopped it, such as a foreach_batch function.
            run.state = STOPPED

    def _failed(self, run: SinkRun, failure: BaseException) -> None:
        reason = reason_of(failure)
        run.error = told_with_cure(self.flow, run.sink, reason)
        run.tries, wait_s = run.tries.after_failure(self._clock(), self._patience)
        if self._stopping:
            run.state = STOPPED
            return
        if reason.hopeless or wait_s is None:
            run.state = FAILED
            tried = "" if run.tries.failed == 1 else f" {run.tries.failed} times"
            _log.error("sink %s failed%s and is given up, others go on: %s", run.sink.name, tried, run.error)
            return
        run.state, run.retry_at_s = RETRYING, self._clock() + wait_s
        _log.warning("sink %s failed and is started again in %g s: %s", run.sink.name, wait_s, run.error)


def _begin(spark: SparkSession, flow: Flow, sink: Sink) -> StreamingQuery:
    if query_of_mates(spark, flow, sink) is None:
        sink = begun(flow, sink)
    begin = begin_of(flow, sink)
    _log.info("sink %s %s", sink.name, begin.why)
    return start_query(spark, flow, sink, start=begin.start)


def _raise_if_session_is_gone(failure: BaseException) -> None:
    """Without its JVM nothing of the driver works: the supervisor starts another one."""
    if type(failure).__name__ in ("Py4JNetworkError", "ConnectionRefusedError", "ConnectionResetError"):
        raise failure


def _told_since(query: StreamingQuery, before: tuple[int, str]) -> list[dict[str, Any]]:
    """What a query told after that batch and time. A batch may be told of twice, its rows once."""
    told = [json.loads(each.json) for each in query.recentProgress if each.batchId >= before[0]]
    return [each for each in told if (int(each["batchId"]), str(each.get("timestamp", ""))) > before]
