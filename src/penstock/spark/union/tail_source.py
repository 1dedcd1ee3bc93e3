"""Spans of the log as a DataFrame: what to read was decided before, so Spark's planning asks nobody."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from penstock.client.spans import Span
from penstock.spark.source.batch import packing_limits
from penstock.spark.source.data_source import TopicDataSource
from penstock.spark.source.packing import pack
from penstock.spark.source.tasks import TaskSpans

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from penstock.spark.source.options import SourceOptions

TAIL_FORMAT: Final = "penstock-tail"
_SPANS: Final = "spans"


def read_spans(spark: SparkSession, options: Mapping[str, str], schema: StructType, spans: Sequence[Span]) -> DataFrame:
    """The rows of `spans`, however often the DataFrame is used: by topic id, so never those of another topic."""
    _make_known(spark)
    told = json.dumps([[span.topic, span.topic_id, span.partition, span.start, span.end] for span in spans])
    return spark.read.format(TAIL_FORMAT).schema(schema).options(**options).option(_SPANS, told).load()


_known_in: set[str] = set()


def _make_known(spark: SparkSession) -> None:
    """Once for a session: Spark wants the class pickled, and every registration is a warning."""
    from pyspark.errors import AnalysisException

    from penstock.spark.progress.listener import session_key

    session = session_key(spark)
    if session in _known_in:
        return
    try:
        spark.dataSource.register(TailDataSource)
    except AnalysisException:
        # Spark looks for the name in whichever session was used last, and takes that one's for something built in.
        spark.createDataFrame([], "used INT")
        spark.dataSource.register(TailDataSource)
    _known_in.add(session)


class TailDataSource(DataSource):
    """format("penstock") with its ranges fixed. Not for users: `penstock.spark.table` makes it."""

    @classmethod
    def name(cls) -> str:
        return TAIL_FORMAT

    def reader(self, schema: StructType) -> DataSourceReader:
        from penstock.spark.source.batch import TopicBatchReader

        given = dict(self.options)
        spans = [Span(*each) for each in json.loads(given.pop(_SPANS))]
        # What options and columns come to is the source's to say.
        plain = TopicDataSource(given).reader(schema)
        assert isinstance(plain, TopicBatchReader), "what a topic is read with"
        return TailReader(plain.options, schema, spans)


class TailReader(DataSourceReader):
    """Reads its spans and asks nobody where they are."""

    def __init__(self, options: SourceOptions, schema: StructType, spans: Sequence[Span]) -> None:
        self.options, self.schema, self.spans = options, schema, tuple(spans)

    def partitions(self) -> list[InputPartition]:
        return [TaskSpans(each) for each in pack(self.spans, packing_limits(self.options), {})]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from penstock.spark.source.reading import read_task

        assert isinstance(partition, TaskSpans), "Spark hands back what was planned"
        return read_task(partition, self.options, self.schema)
