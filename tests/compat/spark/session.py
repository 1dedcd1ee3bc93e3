"""A Spark session that knows both formats: `kafka` from the jars, `penstock` because it is installed."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from pyspark.sql import SparkSession

from penstock.spark.sessions import settings_for, unzipped_home
from tests.compat.spark.jars import connector_jars

QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Tests want a quick start and measure nothing."""


def judging_session(
    master: str = "local[2,4]", *, jvm: str = QUICK_JVM, settings: Mapping[str, str] | None = None
) -> SparkSession:
    """Nothing is registered by hand: finding `penstock` is Spark's own business."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_HOME", str(unzipped_home()))
    assert SparkSession.getActiveSession() is None, "a session that runs already cannot be given jars"
    builder = SparkSession.builder.appName("penstock-compat").master(master)
    chosen = {
        **settings_for(master),
        "spark.jars": ",".join(str(jar) for jar in connector_jars()),
        "spark.driver.memory": "2g",
        "spark.driver.extraJavaOptions": jvm,
        "spark.sql.shuffle.partitions": "2",
        "spark.log.level": "ERROR",
        **(settings or {}),
    }
    for name, value in chosen.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
