"""The Spark session, the broker and the directories in memory that all Spark tests of a run share."""

from __future__ import annotations

from tests.spark.conftest import bootstrap, produce, scratch, spark, spark_session, topic

__all__ = ["bootstrap", "produce", "scratch", "spark", "spark_session", "topic"]
