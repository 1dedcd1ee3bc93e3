"""format("penstock-lake"), as Spark sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)

from penstock.spark.errors import BadOption
from penstock.spark.lake.options import LakeOptions
from penstock.spark.naming import LAKE_FORMAT

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class LakeDataSource(DataSource):
    """Tables of Delta and Iceberg: reads, writes, streams of what versions bring, streaming writes that land once."""

    @classmethod
    def name(cls) -> str:
        return LAKE_FORMAT

    def schema(self) -> StructType:
        """For reads: the table's; a stream of changes says beside each row what became of it."""
        from penstock.spark.lake.following.versions import CHANGE, VERSION
        from penstock.spark.lake.reading import spark_schema

        options = self._options()
        found = spark_schema(options)
        return found.add(CHANGE, "string").add(VERSION, "long") if options.changes else found

    def reader(self, schema: StructType) -> DataSourceReader:
        from penstock.spark.lake.reading import LakeReader

        options = self._options()
        if options.changes:
            raise BadOption("option changes is for streams: a read of a version has its rows, and no changes of them")
        return LakeReader(options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 (Spark's name)
        from penstock.spark.lake.following.stream import LakeStreamReader

        return LakeStreamReader(self._options(), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from penstock.spark.lake.sink import LakeBatchWriter

        return LakeBatchWriter(self._options(), schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802 (Spark's name)
        from penstock.spark.lake.sink import LakeStreamWriter

        return LakeStreamWriter(self._options(), schema, overwrite)

    def _options(self) -> LakeOptions:
        return LakeOptions.of(self.options)
