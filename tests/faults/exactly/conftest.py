"""The Spark session, and the directories in memory, that all Spark tests of a run share."""

from __future__ import annotations

from tests.spark.conftest import scratch, spark, spark_session

__all__ = ["scratch", "spark", "spark_session"]
