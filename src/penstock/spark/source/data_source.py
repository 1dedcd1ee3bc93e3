"""format("penstock"): the door through which Spark finds readers and writers of topics."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from penstock.spark.naming import TOPIC_FORMAT
from penstock.spark.source.options import SourceOptions


class TopicDataSource(DataSource):
    """Topics as rows, and rows to topics. Nothing is asked of a broker before Spark plans a read, unless a schema is to
    be inferred from what is there."""

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        self._plans = True

    def __getstate__(self) -> dict[str, Any]:
        # Spark makes one of us to plan a batch, and commits the batch with one that it has unpickled: nothing else
        # tells the two apart.
        return {**self.__dict__, "_plans": False}

    @classmethod
    def name(cls) -> str:
        return TOPIC_FORMAT

    def schema(self) -> StructType | str:
        from penstock.spark.source import schemas

        options = SourceOptions.of(self.options, streaming=None)
        if not options.typed:
            return schemas.raw_schema(options)
        from penstock.spark.source.typed import value_schema

        columns = value_schema(options)
        return StructType([*columns.fields, *schemas.metadata_fields(options.metadata_columns)])

    def reader(self, schema: StructType) -> DataSourceReader:
        from penstock.spark.source.batch import TopicBatchReader

        return TopicBatchReader(self._checked(schema, streaming=False), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        from penstock.spark.source.stream import TopicStreamReader

        return TopicStreamReader(self._checked(schema, streaming=True), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from penstock.spark.topic_sink.writers import TopicBatchWriter

        return TopicBatchWriter(self.options, schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802 - Spark's name
        from penstock.spark.topic_sink.writers import TopicStreamWriter

        return TopicStreamWriter(self.options, schema, plans=self._plans)

    def _checked(self, schema: StructType, *, streaming: bool) -> SourceOptions:
        """The options, knowing what is read and which columns are wanted; a user's schema is checked here, because
        Spark does not ask for ours when there is one."""
        from penstock.spark.source import schemas

        options = SourceOptions.of(self.options, streaming=streaming)
        if not options.typed:
            schemas.check_raw(options, schema)
            return options
        from penstock.spark.source.typed import with_columns

        options = replace(options, metadata_columns=schemas.metadata_columns_of(options, schema))
        return with_columns(options, schemas.value_fields(schema))
