"""Making the formats known to a Spark session."""

from __future__ import annotations

from pkgutil import iter_modules
from typing import TYPE_CHECKING, Final

from penstock.spark.lake.data_source import LakeDataSource
from penstock.spark.progress.listener import listen
from penstock.spark.source.data_source import TopicDataSource
from penstock.spark.source.options import TASKS_VARIABLE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_FOUND_BY_SPARK: Final = {"pyspark_penstock": TopicDataSource, "pyspark_penstock_lake": LakeDataSource}


def register(spark: SparkSession) -> None:
    """Makes `format("penstock")` and `format("penstock-lake")` known, and publishes the progress of queries as groups.

    Installing the package already registers both formats in every session; what this adds is the listener, which
    tells lag tools of a query's last batch. Calling it again changes nothing.
    """
    _tell_cores(spark)
    found = {module.name for module in iter_modules()}
    for module, source in _FOUND_BY_SPARK.items():
        # What Spark finds by itself it registers by itself; a second time it warns.
        if module not in found:
            spark.dataSource.register(source)
    listen(spark)


def _tell_cores(spark: SparkSession) -> None:
    """Planning happens in processes that know nothing of the session: how many tasks are worth making is told them."""
    context = getattr(spark, "_sc", None)
    if context is not None:  # A session of Spark Connect has none.
        context.environment.setdefault(TASKS_VARIABLE, str(context.defaultParallelism))
