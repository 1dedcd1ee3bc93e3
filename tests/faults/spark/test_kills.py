"""Drivers killed with kill -9, at every point between a task's first row and Spark's own log: each record once.

The records come in transactions, beside as many that are aborted: no row of these is ever in a table.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

from tests.faults.counts import SOAKING, rounds
from tests.faults.node import NodeProcess
from tests.faults.spark.driver import Plan
from tests.faults.spark.strikes import (
    CALL,
    DRIVER,
    POINTS,
    SLEEPER,
    STRUCK_FORMAT,
    Strike,
    Struck,
    StruckLake,
    end_session,
    wake_session,
)
from tests.faults.spark.tables import DELTA, FORMATS, Lake
from tests.patience import wait_for, within

RECORDS, BATCH = (1_500 if SOAKING else 900), 300
KILLED = -9


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    node = NodeProcess(tmp_path_factory.mktemp("broker") / "data")
    node.start()
    yield node.address
    node.kill()


def plan_of(lake: Lake, home: Path, strike: Strike | None) -> Plan:
    sink = {**lake.sink_options(), **(strike.options() if strike else {})}
    return Plan(str(home / "checkpoint"), lake.source_options(BATCH), sink, STRUCK_FORMAT)


# In `make test` one kill where it hurts most: the table has the rows and nobody else knows. The shared session is then
# the fresh driver.
KILLS = list(itertools.product(FORMATS, POINTS)) if SOAKING else [(DELTA, "after-commit")]


@pytest.mark.timeout(1_200 if SOAKING else 180)
@pytest.mark.parametrize(("format", "point"), KILLS)
def test_a_driver_may_be_killed_at_any_point(
    spark: SparkSession, bootstrap: str, scratch: Path, format: str, point: str
) -> None:
    lake = Lake(format, scratch / "table", bootstrap, f"killed-{format}-{point}", partitions=3, transactional=True)
    lake.create_topic(RECORDS)
    for number in rounds(fast=1, full=2):
        strike = Strike(point, 1 + 2 * number, DRIVER, scratch / f"mark-{number}")
        code = plan_of(lake, scratch, strike).run(scratch)
        assert code == KILLED, (scratch / "driver.log").read_text()[-6_000:]
        assert strike.mark.exists()
    if SOAKING:
        code = plan_of(lake, scratch, None).run(scratch)
        assert code == 0, (scratch / "driver.log").read_text()[-6_000:]
    else:
        spark.dataSource.register(StruckLake)
        plan_of(lake, scratch, None).drain(spark)
    lake.check_exactly_once()


@pytest.mark.soak
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize(("format", "point"), list(itertools.product(FORMATS, POINTS)))
def test_a_driver_may_sleep_at_any_point_while_its_successor_goes_on(
    bootstrap: str, scratch: Path, format: str, point: str
) -> None:
    """It wakes when two batches and more were committed by another process from the same checkpoint."""
    lake = Lake(format, scratch / "table", bootstrap, f"slept-{format}-{point}", partitions=3, transactional=True)
    lake.create_topic(RECORDS)
    strike = Strike(point, 1, SLEEPER, scratch / "mark")
    sleeper = plan_of(lake, scratch, strike).started(scratch)
    try:
        wait_for("the driver to fall asleep", strike.mark.exists, timeout_s=120, pause_s=0.1)
        stopped = lambda: psutil.Process(sleeper.pid).status() == psutil.STATUS_STOPPED  # noqa: E731
        wait_for("all of it to be asleep", stopped, timeout_s=30, pause_s=0.1)
        code = plan_of(lake, scratch, None).run(scratch)
        assert code == 0, (scratch / "driver.log").read_text()[-6_000:]
        wake_session(sleeper.pid)
        sleeper.wait(within(240))
    finally:
        end_session(sleeper.pid)
        sleeper.wait()
    lake.check_exactly_once()


@pytest.mark.parametrize("format", FORMATS if SOAKING else [DELTA])
def test_a_batch_may_fail_at_any_point(spark: SparkSession, bootstrap: str, scratch: Path, format: str) -> None:
    """One query, struck in another place at each of its starts."""
    lake = Lake(format, scratch / "table", bootstrap, f"failed-{format}", partitions=3, transactional=True)
    lake.create_topic(RECORDS)
    spark.dataSource.register(StruckLake)
    for point in ("before-commit", "after-commit", "before-log"):
        strike = Strike(point, next_batch(scratch), CALL, scratch / f"mark-{point}")
        with pytest.raises(Exception, match=Struck.__name__):
            plan_of(lake, scratch, strike).drain(spark)
        assert strike.mark.exists()
    for point in ("before-write", "after-write"):
        # A task that fails is tried again, and the query goes on.
        strike = Strike(point, next_batch(scratch), CALL, scratch / f"mark-{point}")
        plan_of(lake, scratch, strike).drain(spark)
        assert strike.mark.exists()
        lake.produce(100)
    plan_of(lake, scratch, None).drain(spark)
    lake.check_exactly_once()


def next_batch(home: Path) -> int:
    """The batch that a query which starts now begins with, from Spark's own log of those that are done."""
    done = [int(file.name) for file in (home / "checkpoint" / "commits").glob("[0-9]*")]
    return max(done, default=-1) + 1
