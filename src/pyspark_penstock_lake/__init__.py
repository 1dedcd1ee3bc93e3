"""Found by Spark by its name: registers format("penstock-lake") in every session."""

from penstock.spark.lake.data_source import LakeDataSource as DefaultSource

__all__ = ["DefaultSource"]
