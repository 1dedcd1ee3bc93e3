"""Found by Spark by its name: registers format("penstock") in every session."""

from penstock.spark.source.data_source import TopicDataSource as DefaultSource

__all__ = ["DefaultSource"]
