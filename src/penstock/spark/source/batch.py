"""A batch read of topics, planned on the driver."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from penstock.client.spans import Span
from penstock.model.ids import TopicPartition
from penstock.spark.offsets import EARLIEST, LATEST
from penstock.spark.source.losses import Seen, tell
from penstock.spark.source.packing import PackingLimits, pack
from penstock.spark.source.tasks import TaskSpans

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from penstock.spark.source.facts import Cluster
    from penstock.spark.source.options import SourceOptions
    from penstock.spark.source.starts import Place


class TopicBatchReader(DataSourceReader):
    """Reads what is there between two places, as they are when the query is planned."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self.options, self.schema = options, schema

    def partitions(self) -> list[InputPartition]:
        from penstock.spark.source.facts import Cluster

        cluster = Cluster(self.options)
        spans = plan_batch(self.options, cluster)
        rates = cluster.bytes_per_offset({span.topic for span in spans}) if spans else {}
        # Spark plans a task of its own for an empty list, with a partition that is none of ours.
        packed = pack(spans, packing_limits(self.options), rates) or [()]
        return [TaskSpans(each) for each in packed]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from penstock.spark.source.reading import read_task

        assert isinstance(partition, TaskSpans), "Spark hands back what was planned"
        return read_task(partition, self.options, self.schema)


def plan_batch(options: SourceOptions, cluster: Cluster) -> list[Span]:
    """What a batch read has to read, as it is now. Raises for what was named and is not there, and for losses."""
    seen = cluster.look(strict=True)
    begins = resolve_place(options.start, seen, cluster)
    wishes = resolve_place(options.end, seen, cluster)
    earliest = {tp for tp, offset in begins.items() if offset == EARLIEST}
    begins |= cluster.log_starts(earliest)
    seen = cluster.reaching(seen, {tp: max(begins[tp], wish) for tp, wish in wishes.items()})
    losses, spans = [], []
    for tp, wish in sorted(wishes.items()):
        end = seen.ends[tp]
        begin = end if begins[tp] == LATEST else begins[tp]
        if wish > end:
            losses.append(f"{tp} ends at {end}, before {wish} where {options.end.option} has it end")
        elif wish != LATEST:
            end = wish
        if begin > seen.ends[tp]:
            losses.append(f"{tp} ends at {seen.ends[tp]}, before {begin} where {options.start.option} has it begin")
        if 0 <= begin < end:
            spans.append(Span(tp.topic, seen.ids.get(tp.topic, ""), tp.partition, begin, end))
    tell(losses, fail=options.fail_on_data_loss)
    return spans


def resolve_place(place: Place, seen: Seen, cluster: Cluster) -> dict[TopicPartition, int]:
    """The wish of each partition as an offset or a sentinel: times and tables are looked up."""
    place.check_named(seen.ends)
    by_time = cluster.at_times(place.times_for(seen.ends))
    by_table: dict[TopicPartition, int] = {}
    if place.table:
        from penstock.spark.source.tables import standing

        by_table = standing(place.table, seen.ids, seen.ends, cluster.table_options)
    return place.resolve(seen.ends, by_time, by_table)


def packing_limits(options: SourceOptions) -> PackingLimits:
    return PackingLimits(options.max_tasks, options.min_partitions, options.max_records_per_partition)
