"""Jobs of Spark in local mode: a topic read by our source, and written to another. The session stays for all rounds."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from penstock.bench.jobs import Job, Moved, Start

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def check_installed() -> None:
    """`Missing` with one sentence: what to install."""
    from importlib.util import find_spec

    from penstock.spark.errors import Missing
    from penstock.spark.sessions import check_java

    missing = [name for name in ("pyspark", "pyarrow") if find_spec(name) is None]
    if missing:
        raise Missing(f"`bench spark` needs {' and '.join(missing)}: pip install 'penstock[spark]'")
    check_java()


def read(job: Job, start: Start) -> Moved:
    """Every row of the topic, counted by nobody: Spark's noop takes them all."""
    rows = _rows(job)
    start()
    return _timed(job, lambda: rows.write.format("noop").mode("overwrite").save())


def write(job: Job, start: Start) -> Moved:
    """Every row of the topic into another one: reading is part of it."""
    rows = _rows(job).select("value")
    writer = rows.write.format("penstock").mode("append")
    for name, value in _kafka(job.producer).items():
        writer = writer.option(name, value)
    # Writers stay in Spark's processes; none of them may bring back a topic that was taken away.
    writer = writer.option("topic", job.to_topic).option("kafka.allow.auto.create.topics", "false")
    start()
    return _timed(job, writer.save)


def _timed(job: Job, work: Any) -> Moved:
    began, cpu_s = time.perf_counter(), time.process_time()
    work()
    return Moved(time.perf_counter() - began, job.rows, job.rows * job.record_bytes, time.process_time() - cpu_s)


def _rows(job: Job) -> DataFrame:
    import penstock.spark

    spark = penstock.spark.session(app_name="penstock-bench", settings={"spark.log.level": "ERROR"})
    options = {"subscribe": job.topic, "startingOffsets": "earliest", "endingOffsets": "latest"}
    return spark.read.format("penstock").options(**options, **_kafka(job.producer)).load()


def _kafka(keywords: Any) -> dict[str, str]:
    return {"kafka.bootstrap.servers": str(keywords["bootstrap_servers"])}
