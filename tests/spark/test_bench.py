"""`penstock bench spark`, with the session of the tests in place of a process of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from penstock.bench.course import Course, Outcome
from penstock.bench.crew import Crew
from penstock.bench.jobs import Job, Moved
from penstock.bench.settings import Settings
from penstock.bench.telling import as_text
from penstock.bench.worker import action
from penstock.cli.bench_running import targets_of
from penstock.cli.connection import Connection
from tests.patience import within


class Here(Crew):
    """Does its jobs in this process."""

    def __init__(self) -> None:
        super().__init__(1)
        self.seen: list[tuple[str, int]] = []

    async def run(self, jobs: Sequence[Job]) -> list[Moved]:
        # On this thread, which is the session's.
        done = [action(job.action)(job, lambda: None) for job in jobs]
        self.seen += [(job.action, moved.records) for job, moved in zip(jobs, done, strict=True)]
        return done


def test_spark_reads_a_filled_topic_and_writes_all_of_it_to_another(spark: SparkSession, bootstrap: str) -> None:
    def topics() -> set[str]:
        return set(AdminClient({"bootstrap.servers": bootstrap, "log_level": 0}).list_topics(timeout=within(30)).topics)

    async def run() -> Outcome:
        settings = Settings(rounds=1, warm_up_s=0, partitions=2, topic_bytes=100_000, record_bytes=100)
        made = Course("spark", targets_of(Connection(bootstrap), None), settings, crew, lambda _: None, warned.append)
        return await made.run()

    crew, warned, before = Here(), list[str](), topics()
    outcome = asyncio.run(run())
    (filled, _), (read, rows), (written, also) = crew.seen
    assert (filled, read, written) == ("fill", "spark read", "spark write")
    assert rows == also >= 1_000
    assert list(outcome.results.groups()) == ["Spark, topic to noop", "Spark, topic to topic"]
    assert 'format("penstock") of Spark' in as_text(outcome)
    assert topics() == before
    assert warned == []
