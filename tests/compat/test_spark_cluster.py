"""A Spark standalone cluster of two workers: executors die, tasks are tried again and raced; each record is a row once.

Here because it takes minutes; nothing of Apache Kafka is needed.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compat.judged import PENSTOCK
from tests.faults.node import NodeProcess
from tests.faults.spark.driver import Plan
from tests.faults.spark.standalone import Standalone
from tests.faults.spark.strikes import CALL, EXECUTOR, STALL, STRUCK_FORMAT, Strike, stall_ended
from tests.faults.spark.tables import DELTA, ICEBERG, Lake, files_of, files_under
from tests.patience import within

pytestmark = [pytest.mark.compat, pytest.mark.timeout(600)]

RECORDS, BATCH = 4_000, 1_000


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    node = NodeProcess(tmp_path_factory.mktemp("broker") / "data")
    node.start()
    yield node.address
    node.kill()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    with Standalone(tmp_path_factory.mktemp("cluster")) as running:
        yield running


def run(cluster: Standalone, lake: Lake, home: Path, strike: Strike, **settings: str) -> None:
    plan = Plan(
        str(home / "checkpoint"),
        lake.source_options(BATCH),
        {**lake.sink_options(), **strike.options()},
        STRUCK_FORMAT,
        cluster.master,
        {**cluster.settings(), **settings},
    )
    code = plan.run(home)
    assert code == 0, (home / "driver.log").read_text()[-6_000:]
    assert strike.mark.exists(), "nothing was struck"


@pytest.mark.parametrize(("format", "point"), [(DELTA, "after-write"), (ICEBERG, "before-write")])
def test_an_executor_that_is_killed_costs_no_record(
    cluster: Standalone, bootstrap: str, tmp_path: Path, format: str, point: str
) -> None:
    lake = Lake(format, tmp_path / "table", bootstrap, f"executor-{format}", partitions=4)
    lake.create_topic(RECORDS)
    run(cluster, lake, tmp_path, Strike(point, 1, EXECUTOR, tmp_path / "mark"))
    lake.check_exactly_once()


def test_a_task_that_fails_is_tried_again_and_its_files_are_not_in_the_table(
    cluster: Standalone, bootstrap: str, tmp_path: Path
) -> None:
    lake = Lake(DELTA, tmp_path / "table", bootstrap, "retried", partitions=4)
    lake.create_topic(RECORDS)
    run(cluster, lake, tmp_path, Strike("after-write", 1, CALL, tmp_path / "mark"))
    lake.check_exactly_once()
    assert len(files_under(lake.path) - files_of(DELTA, lake.path)) == 1, "what the failed attempt wrote is left over"


def test_of_two_attempts_at_a_task_one_is_in_the_table(cluster: Standalone, bootstrap: str, tmp_path: Path) -> None:
    lake = Lake(DELTA, tmp_path / "table", bootstrap, "speculated", partitions=4)
    lake.create_topic(RECORDS)
    strike = Strike("after-write", 1, STALL, tmp_path / "mark")
    run(
        cluster,
        lake,
        tmp_path,
        strike,
        **{
            "spark.speculation": "true",
            "spark.speculation.interval": "100ms",
            "spark.speculation.multiplier": "1.1",
            "spark.speculation.quantile": "0.5",
            "spark.speculation.minTaskRuntime": "100ms",
            # A batch this small may be one task, which Spark only races when it is told how long is too long.
            "spark.speculation.task.duration.threshold": "3s",
        },
    )
    lake.check_exactly_once()
    assert not stall_ended(strike.mark).exists(), "the batch went on because another attempt had won"
    assert files_under(lake.path) - files_of(DELTA, lake.path), "what the loser wrote is left over"


PIPELINE = """
name = "on-a-cluster"
bootstrap = "{bootstrap}"
warehouse = "{home}/lake"

[spark]
settings = {{ "spark.executor.memory" = "1g", "spark.executor.cores" = 1, "spark.driver.memory" = "1g" }}

[sources.events]
topic = "piped"
start = "earliest"

[sinks.lake]
from = "events"
table = "events"
"""


def test_a_pipeline_runs_on_the_cluster_by_changing_its_master(
    cluster: Standalone, bootstrap: str, tmp_path: Path
) -> None:
    lake = Lake(DELTA, tmp_path / "lake" / "events", bootstrap, "piped", partitions=4)
    lake.create_topic(RECORDS)
    file = tmp_path / "flow.toml"
    file.write_text(PIPELINE.format(bootstrap=bootstrap, home=tmp_path))
    command = [PENSTOCK, "pipeline", "run", str(file), "--master", cluster.master, "--once", "--quiet"]
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state"), "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=within(300), env=environment, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    lake.check_exactly_once()
