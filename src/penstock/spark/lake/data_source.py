"""format("penstock-lake"), as Spark sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamWriter, DataSourceWriter

from penstock.spark.lake.options import LakeOptions
from penstock.spark.naming import LAKE_FORMAT

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class LakeDataSource(DataSource):
    """Tables of Delta and Iceberg: batch reads, batch writes, and streaming writes that land once."""

    @classmethod
    def name(cls) -> str:
        return LAKE_FORMAT

    def schema(self) -> StructType:
        """For reads: the table's."""
        from pyspark.sql.pandas.types import from_arrow_schema

        from penstock.spark.lake.opening import open_store

        store = open_store(self._options())
        store.refresh()
        return from_arrow_schema(store.schema())

    def reader(self, schema: StructType) -> DataSourceReader:
        from penstock.spark.lake.reading import LakeReader

        return LakeReader(self._options(), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from penstock.spark.lake.sink import LakeBatchWriter

        return LakeBatchWriter(self._options(), schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802 (Spark's name)
        from penstock.spark.lake.sink import LakeStreamWriter

        return LakeStreamWriter(self._options(), schema, overwrite)

    def _options(self) -> LakeOptions:
        return LakeOptions.of(self.options)
