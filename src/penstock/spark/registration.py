"""Making the formats known to a Spark session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.spark.lake.data_source import LakeDataSource
from penstock.spark.progress.listener import listen
from penstock.spark.source.data_source import TopicDataSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Makes `format("penstock")` and `format("penstock-lake")` known, and publishes the progress of queries as groups.

    Installing the package already registers both formats in every session; what this adds is the listener, which
    tells lag tools of a query's last batch. Calling it again changes nothing.
    """
    spark.dataSource.register(TopicDataSource)
    spark.dataSource.register(LakeDataSource)
    listen(spark)
