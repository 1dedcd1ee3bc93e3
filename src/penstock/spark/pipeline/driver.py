"""The process that has the Spark session: `python -m penstock.spark.pipeline.driver NAME`, started by the supervisor.

It does what it reads from standard input and leaves `outcome.json` behind. One that leaves nothing was killed, and is
started again.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from penstock.spark.errors import BadOption, Missing
from penstock.spark.pipeline import home
from penstock.spark.pipeline.flow import Flow, SinkKind
from penstock.spark.pipeline.home import Home, Job, Outcome, Progress
from penstock.spark.pipeline.mirroring import check_master
from penstock.spark.pipeline.mistakes import FlowBroken
from penstock.spark.pipeline.preflight import NoBroker, NoTopic, check_topics
from penstock.spark.pipeline.reading import read_flow
from penstock.spark.pipeline.renewing import Renewal, renewed
from penstock.spark.reasons import reason_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.spark.pipeline.running import Runner

OK, FAILED, USAGE, NOT_FOUND, UNREACHABLE = 0, 1, 2, 3, 5
"""The exit codes of the command line, which passes them on."""

WRITE_EVERY_S: Final = 0.5
UPKEEP_WITHIN_S: Final = 60.0

_log = logging.getLogger("penstock.spark.pipeline")


def main(arguments: list[str]) -> int:
    """Exit code of the process."""
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname).1s %(name)s: %(message)s"
    )
    logging.getLogger("py4j").setLevel(logging.WARNING)
    place = Home(arguments[0])
    outcome = drive(place, Job.out_of(sys.stdin.buffer))
    if outcome.words:
        _log.log(logging.INFO if outcome.code == OK else logging.ERROR, "%s", outcome.words)
    place.write_outcome(outcome)
    return outcome.code


def drive(place: Home, job: Job) -> Outcome:
    """The whole life of a driver. What somebody has to mend first is final; anything else may be tried again."""
    try:
        flow = flow_of(job)
        check_everything(flow)
    except (FlowBroken, BadOption) as wrong:
        return Outcome(FAILED, str(wrong), state=home.FAILED)
    except Missing as missing:
        return Outcome(NOT_FOUND if isinstance(missing, NoTopic) else FAILED, str(missing), state=home.FAILED)
    except NoBroker as silent:
        # One that ran before waits for its brokers to come back.
        return Outcome(UNREACHABLE, str(silent), final=job.restarts == 0, state=home.FAILED)
    except OSError as failure:
        return Outcome(FAILED, f"{failure.filename or job.file}: {failure.strerror}", state=home.FAILED)
    asked = _Asked()
    place.write_progress(Progress(_now_ms(), home.STARTING))
    try:
        from penstock.spark.pipeline.session import open_session

        spark = open_session(flow)
    except Exception as failure:  # Spark's reasons are many: a master that is not there, a setting that is wrong
        words = f"Spark did not start on {flow.spark.master}: {reason_of(failure).words}"
        return Outcome(FAILED, words, final=job.restarts == 0, state=home.FAILED)
    try:
        if job.backfill is not None:
            place.write_progress(Progress(_now_ms(), home.RUNNING))
            return _backfill(spark, flow, job)
        return _run(spark, flow, job, place, asked)
    finally:
        _end_session(spark)


def flow_of(job: Job) -> Flow:
    """What the file says now, with what the command line said over it."""
    flow = read_flow(Path(job.file)).on(bootstrap=job.bootstrap, master=job.master, kafka=job.kafka)
    if job.renewal is not None:
        flow = renewed(flow, Renewal.of_json(job.renewal))
    if job.sinks:
        flow = flow.only(job.sinks)
    return flow.once() if job.once else flow


def check_everything(flow: Flow) -> None:
    """What can be told before Spark is started."""
    from penstock.spark.sessions import check_java

    check_java()
    check_master(flow)
    check_topics(flow)


def _run(spark: SparkSession, flow: Flow, job: Job, place: Home, asked: _Asked) -> Outcome:
    from penstock.spark.pipeline.retrying import ONCE, SINKS
    from penstock.spark.pipeline.running import Runner
    from penstock.spark.pipeline.telling import Telling
    from penstock.spark.pipeline.watching import LagWatch, settings_of

    parent = os.getppid()
    stop = threading.Event()
    written_s = 0.0

    def heed(runner: Runner) -> None:
        nonlocal written_s
        if os.getppid() != parent:
            _log.warning("the supervisor is gone: stopping")
            stop.set()
        if asked.to_stop:
            stop.set()
        if time.monotonic() - written_s >= WRITE_EVERY_S or runner.done:
            written_s = time.monotonic()
            place.write_progress(watch.over(runner.progress()))

    telling = Telling(flow, stop, restarts=job.restarts)
    telling.start()
    runner = Runner(flow, spark, patience=ONCE if job.once else SINKS)
    watch = LagWatch(settings_of(flow), lambda: runner.progress().sinks)
    watch.start()
    try:
        state = runner.run(stop, stop_within_s=job.stop_within_s, heed=heed)
    except Exception as failure:  # without its JVM a driver is of no use; another one may have more luck
        return Outcome(FAILED, f"the driver lost Spark: {reason_of(failure).words}", final=False, state=home.FAILED)
    finally:
        watch.stop()
    words = home.failures_of(runner.progress().sinks)
    telling.end(state, words)
    if job.once:
        _let_upkeep_end(flow)
    return Outcome(FAILED if words else OK, words, state=state)


def _let_upkeep_end(flow: Flow) -> None:
    """A driver that ends by itself leaves tables tidy; upkeep goes with the workers of the session otherwise."""
    from penstock.spark.lake.beside import wait_until_done
    from penstock.spark.lake.options import LakeOptions
    from penstock.spark.pipeline.wiring import lake_options

    deadline_s = time.monotonic() + UPKEEP_WITHIN_S
    for sink in flow.sinks:
        if sink.kind is SinkKind.TABLE:
            options = LakeOptions.of(lake_options(flow, sink))
            wait_until_done(options, within_s=max(0.0, deadline_s - time.monotonic()))


def _backfill(spark: SparkSession, flow: Flow, job: Job) -> Outcome:
    from penstock.spark.pipeline.backfilling import Backfill, backfill

    assert job.backfill is not None, "only called for backfills"
    try:
        rows = backfill(spark, flow, Backfill(**job.backfill))
    except Exception as failure:  # a part of the past is done once and by hand: whoever asked decides what next
        code = USAGE if isinstance(failure, BadOption) else FAILED
        return Outcome(code, reason_of(failure).words, state=home.FAILED)
    return Outcome(OK, "; ".join(rows), state=home.FINISHED)


class _Asked:
    """Whether a signal asked the driver to stop.

    A plain flag that the loop looks at: an event that was set in a signal handler would wait for ever for its own lock
    when the signal comes while the same thread is about to wait for that event.
    """

    def __init__(self) -> None:
        self.to_stop = False
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)

    def _on_signal(self, _number: int, _frame: object) -> None:
        self.to_stop = True


def _end_session(spark: SparkSession) -> None:
    from penstock.spark.progress.listener import flush

    flush()
    try:
        spark.stop()
    except Exception as failure:  # the process ends in any case
        _log.warning("Spark did not stop cleanly: %s", reason_of(failure).words)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
