"""Full disks, brokers that are not there, checkpoints that are lost: a clear error, nothing lost, nothing doubled."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from tests.compat.processes import free_ports
from tests.faults.counts import SOAKING
from tests.faults.node import NodeProcess
from tests.faults.spark.driver import Plan
from tests.faults.spark.tables import DELTA, FORMATS, Lake
from tests.patience import within

LAKE = "penstock-lake"
RECORDS, BATCH = 300, 150


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    running = NodeProcess(tmp_path_factory.mktemp("broker") / "data")
    running.start()
    yield running
    running.kill()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 3 MB of its own."""
    mount = tmp_path / "small"
    mount.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "penstock-test", str(mount)], check=True)
    yield mount
    subprocess.run(["umount", "-l", str(mount)], check=True)


def plan_of(lake: Lake, checkpoint: Path, **source: str) -> Plan:
    return Plan(str(checkpoint), {**lake.source_options(BATCH), **source}, lake.sink_options(), LAKE)


@pytest.mark.soak
def test_a_full_disk_stops_its_own_query_and_no_other(
    spark: SparkSession, node: NodeProcess, scratch: Path, small_disk: Path
) -> None:
    lake = Lake(DELTA, small_disk / "table", node.address, "fills-the-disk", partitions=2)
    lake.create_topic(0)
    producer = Producer({"bootstrap.servers": node.address, "log_level": 0})
    for number in range(RECORDS):
        producer.produce(lake.topic, os.urandom(20_000), partition=number % lake.partitions)
    assert producer.flush(within(60)) == 0
    with pytest.raises(Exception, match=r"No space left|disk is full|disk full"):
        plan_of(lake, scratch / "checkpoint").drain(spark)
    beside = Lake(DELTA, scratch / "beside", node.address, lake.topic, partitions=2)
    plan_of(beside, scratch / "other-checkpoint").drain(spark)
    beside.check_exactly_once()
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    plan_of(lake, scratch / "checkpoint").drain(spark)
    lake.check_exactly_once()


def test_a_broker_that_is_not_there_is_named(spark: SparkSession) -> None:
    (port,) = free_ports(1)
    nobody = f"127.0.0.1:{port}"
    options = {"kafka.bootstrap.servers": nobody, "subscribe": "any", "kafka.default.api.timeout.ms": "2000"}
    began = time.monotonic()
    with pytest.raises(Exception, match=re.escape(nobody)):
        spark.read.format("penstock").options(**options).load().count()
    stream = spark.readStream.format("penstock").options(**options).load().writeStream.format("noop")
    query = stream.trigger(availableNow=True).start()
    with pytest.raises(Exception, match=re.escape(nobody)):
        query.awaitTermination(within(60))
    assert time.monotonic() - began < within(60), "an end that nobody has to wait for"


def test_a_broker_that_dies_under_a_stream_costs_nothing(spark: SparkSession, node: NodeProcess, scratch: Path) -> None:
    lake = Lake(DELTA, scratch / "table", node.address, "broker-dies", partitions=2)
    lake.create_topic(RECORDS)
    plan = plan_of(lake, scratch / "checkpoint")
    source = spark.readStream.format("penstock").options(**plan.source).load()
    writer = source.writeStream.format(LAKE).options(**plan.sink).option("checkpointLocation", plan.checkpoint)
    query = writer.trigger(processingTime="0 seconds").start()
    node.kill()
    node.start()
    lake.produce(RECORDS)
    # A stream that met the gap may have ended with an error; then it is started again, as a pipeline would be.
    with contextlib.suppress(StreamingQueryException):
        query.processAllAvailable()
    query.stop()
    plan.drain(spark)
    lake.check_exactly_once()


@pytest.mark.parametrize("format", FORMATS if SOAKING else [DELTA])
def test_a_lost_checkpoint_neither_doubles_nor_skips(
    spark: SparkSession, node: NodeProcess, scratch: Path, format: str
) -> None:
    lake = Lake(format, scratch / "table", node.address, f"lost-checkpoint-{format}", partitions=2)
    lake.create_topic(RECORDS)
    plan_of(lake, scratch / "checkpoint").drain(spark)
    shutil.rmtree(scratch / "checkpoint")
    from_the_end = plan_of(lake, scratch / "from-the-end", startingOffsets="latest")
    from_the_end.drain(spark)  # nothing is new yet, so there is nothing to refuse
    lake.produce(RECORDS)
    everything = plan_of(lake, scratch / "from-the-start", maxOffsetsPerTrigger=str(10 * RECORDS))
    with pytest.raises(Exception, match=r"(?s)CommitRefused.*overlap.*table:"):
        everything.drain(spark)
    skipping = plan_of(lake, scratch / "skips", startingOffsets=skipped(lake, RECORDS // 2 + 7))
    with pytest.raises(Exception, match=r"(?s)CommitRefused.*a gap of 7 offsets.*table:"):
        skipping.drain(spark)
    plan_of(lake, scratch / "from-the-table", startingOffsets=f"table:{lake.path}").drain(spark)
    lake.check_exactly_once()
    # Another query's rows may be others, so it is not taken for a replay although the offsets are there.
    with pytest.raises(Exception, match=r"(?s)CommitRefused.*another query has brought.*table:"):
        from_the_end.drain(spark)
    lake.check_exactly_once()


def skipped(lake: Lake, offset: int) -> str:
    return json.dumps({lake.topic: {str(partition): offset for partition in range(lake.partitions)}})
