"""One Spark session and one broker for all tests here; each test has its own topics, directories and sub-session."""

from __future__ import annotations

import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import penstock.spark
from penstock.testing import broker
from tests.cli.command import QUICK_JAVA


@pytest.fixture(scope="session")
def spark_session() -> Iterator[SparkSession]:
    spark = penstock.spark.session(
        "local[2,4]",
        app_name="penstock-tests",
        settings={
            "spark.driver.memory": "1g",
            "spark.driver.extraJavaOptions": QUICK_JAVA,
            "spark.sql.shuffle.partitions": "2",
            "spark.log.level": "ERROR",
        },
    )
    yield spark
    spark.stop()


@pytest.fixture
def spark(spark_session: SparkSession) -> Iterator[SparkSession]:
    """The shared session; whatever stream a test leaves running is stopped."""
    yield spark_session
    for query in spark_session.streams.active:
        query.stop()


@pytest.fixture(scope="session")
def bootstrap() -> Iterator[str]:
    # Tests send records of other years, and these stay however long the tests take.
    with broker({"log.retention.ms": -1}) as running:
        yield running.bootstrap_servers


@pytest.fixture
def topic() -> str:
    """A name no other test uses; nobody has created it."""
    return f"t-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A directory in memory for checkpoints and tables."""
    parent = Path("/dev/shm") if Path("/dev/shm").is_dir() else None
    path = Path(tempfile.mkdtemp(prefix="penstock-spark-", dir=parent))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def produce(bootstrap: str) -> Callable[..., None]:
    """produce(topic, values, **send arguments): sends and waits for every acknowledgement."""
    from penstock.blocking import Producer

    def send(topic: str, values: list[bytes | None], **named: object) -> None:
        with Producer(bootstrap_servers=bootstrap) as producer:
            for value in values:
                producer.send(topic, value, **named)
            producer.flush()

    return send
