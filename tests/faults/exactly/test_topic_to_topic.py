"""Readers of committed records see each record of the input once, whoever was killed, stopped or played again."""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from pyspark.sql import SparkSession

from penstock.blocking import Admin, Producer
from penstock.spark.topic_sink.options import SinkOptions
from penstock.spark.topic_sink.transactions.plan import audited
from tests.faults.counts import SOAKING
from tests.faults.exactly.blows import (
    BLOWN_FORMAT,
    CALL,
    DRIVER,
    IN_COMMITS,
    IN_TASKS,
    STOP,
    WORKER,
    Blow,
    BlownTopic,
    session_of,
    sleeps,
)
from tests.faults.node import NodeProcess
from tests.faults.spark.driver import Plan
from tests.faults.spark.strikes import Struck
from tests.faults.spark.tables import read_committed
from tests.patience import wait_for, within

PARTITIONS, BATCH = 3, 100
KILLED = -9


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    node = NodeProcess(tmp_path_factory.mktemp("broker") / "data")
    node.start()
    yield node.address
    node.kill()


@dataclass(frozen=True)
class Carried:
    """Records of one topic on their way to another."""

    bootstrap: str
    name: str
    home: Path

    def create(self, records: int) -> None:
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        topics = [NewTopic(name, PARTITIONS, 1) for name in (self.name, self.out)]
        for made in admin.create_topics(topics).values():
            made.result(within(30))
        self.produce(0, records)

    def produce(self, start: int, end: int) -> None:
        with Producer(bootstrap_servers=self.bootstrap) as producer:
            for number in range(start, end):
                producer.send(self.name, b"value %d" % number, partition=number % PARTITIONS)
            producer.flush()

    @property
    def out(self) -> str:
        return f"{self.name}-out"

    def plan(self, blow: Blow | None = None) -> Plan:
        source = {
            "kafka.bootstrap.servers": self.bootstrap,
            "subscribe": self.name,
            "startingOffsets": "earliest",
            "maxOffsetsPerTrigger": str(BATCH),
        }
        sink = {"kafka.bootstrap.servers": self.bootstrap, "topic": self.out, "exactly.once": "true"}
        return Plan(str(self.home / "checkpoint"), source, sink | (blow.options() if blow else {}), BLOWN_FORMAT)

    def check(self) -> None:
        """Nothing is open, and what is shown is what was given."""
        with Admin(bootstrap_servers=self.bootstrap) as admin:
            pattern = "penstock-spark-.*"
            wait_for("nothing open", lambda: not admin.list_transactions(states=["Ongoing"], pattern=pattern),
                     timeout_s=30)  # fmt: skip
        given = Counter(read_committed(self.bootstrap, self.name, PARTITIONS).values())
        shown = Counter(read_committed(self.bootstrap, self.out, PARTITIONS).values())
        assert not shown - given, f"too often: {sorted(shown - given)[:5]}"
        assert not given - shown, f"missing: {sorted(given - shown)[:5]}"
        options = self.plan().sink | {"checkpointLocation": str(self.home / "checkpoint")}
        audit = audited(SinkOptions.of(options))
        assert audit.clean, str(audit)
        assert audit.rows == sum(shown.values())


@pytest.mark.timeout(1_800 if SOAKING else 240)
@pytest.mark.parametrize("point", (*IN_TASKS, *IN_COMMITS) if SOAKING else ["among-ends"])
def test_a_driver_may_be_killed_at_any_point(spark: SparkSession, bootstrap: str, scratch: Path, point: str) -> None:
    carried = Carried(bootstrap, f"killed-{point}", scratch)
    carried.create(4 * BATCH)
    blow = Blow(point, 1, DRIVER, scratch / "mark")
    code = carried.plan(blow).run(scratch)
    assert code == KILLED, (scratch / "driver.log").read_text()[-6_000:]
    assert blow.mark.exists()
    spark.dataSource.register(BlownTopic)
    carried.plan().drain(spark)
    carried.check()


def test_a_worker_may_be_killed_and_a_batch_played_again(spark: SparkSession, bootstrap: str, scratch: Path) -> None:
    carried = Carried(bootstrap, "worker-and-replay", scratch)
    carried.create(2 * BATCH)
    spark.dataSource.register(BlownTopic)
    for number, point in enumerate(IN_TASKS if SOAKING else ["after-write"]):
        # The task is tried again, under an id of its own; what the first attempt wrote is shown to nobody.
        blow = Blow(point, 2 * number, WORKER, scratch / f"mark-{point}")
        carried.plan(blow).drain(spark)
        assert blow.mark.exists()
        carried.check()
        carried.produce((2 + 2 * number) * BATCH, (4 + 2 * number) * BATCH)
    batch = max(int(file.name) for file in (scratch / "checkpoint" / "commits").glob("[0-9]*")) + 1
    for point in IN_COMMITS if SOAKING else ["before-log"]:
        blow = Blow(point, batch, CALL, scratch / f"mark-{point}")
        with pytest.raises(Exception, match=Struck.__name__):
            carried.plan(blow).drain(spark)
        assert blow.mark.exists()
    carried.plan().drain(spark)
    carried.check()


@pytest.mark.timeout(1_800 if SOAKING else 240)
@pytest.mark.parametrize("point", (*IN_TASKS, *IN_COMMITS) if SOAKING else ["before-decision"])
def test_a_driver_that_sleeps_while_a_successor_goes_on_changes_nothing(
    spark: SparkSession, bootstrap: str, scratch: Path, point: str
) -> None:
    carried = Carried(bootstrap, f"stopped-{point}", scratch)
    carried.create(4 * BATCH)
    blow = Blow(point, 1, STOP, scratch / "mark")
    codes: list[int] = []
    sleeping = threading.Thread(target=lambda: codes.append(carried.plan(blow).run(scratch)))
    sleeping.start()
    try:
        wait_for("the blow", blow.mark.exists, timeout_s=120)
        wait_for("all of it to sleep", lambda: asleep(scratch), timeout_s=30)
        spark.dataSource.register(BlownTopic)
        carried.plan().drain(spark)
        carried.check()
    finally:
        for process in driver_of(scratch):
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGCONT)
        sleeping.join(within(120))
    assert codes, "the driver that slept has ended"
    carried.check()
    carried.produce(4 * BATCH, 5 * BATCH)
    carried.plan().drain(spark)
    carried.check()


def driver_of(home: Path) -> list[psutil.Process]:
    """The driver of that plan, and all that it has started."""
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        if str(home / "plan.json") in words and "python" in words[0]:
            return session_of(os.getsid(process.pid))
    return []


def asleep(home: Path) -> bool:
    """Whether that driver is there, and nothing of it does anything."""
    found = driver_of(home)
    return bool(found) and all(map(sleeps, found))
