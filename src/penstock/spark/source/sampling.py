"""A few values of the topics that are read, for those who infer a schema from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from penstock.client.spans import Span
from penstock.model.ids import TopicPartition
from penstock.spark.dialogue import for_process, reader_for
from penstock.spark.errors import Missing
from penstock.spark.source.facts import Cluster
from penstock.spark.source.limits import share
from penstock.spark.source.losses import Seen

if TYPE_CHECKING:
    from penstock.spark.source.options import SourceOptions

SAMPLE_BYTES_MAX: Final = 64 << 20
"""Large records are sampled up to here: a schema is not worth a gigabyte."""

FURTHER_BACK: Final = 8
"""So many times as many offsets are looked at when none of the last held a record."""


def sample_values(options: SourceOptions, count: int) -> list[bytes | None]:
    """The newest values, `count` or fewer, spread over the partitions as their records are. Raises for empty topics.

    The last offsets may all be of transactions that were aborted, or compacted away: then it looks further back.
    """
    cluster = Cluster(options)
    seen = cluster.look(strict=True)
    starts = cluster.log_starts(seen.ends.keys())
    while spans := newest_spans(seen, starts, count):
        if values := _values(options, spans):
            return values
        seen = replace(seen, ends={**seen.ends, **{span.tp: span.start for span in spans}})
        count *= FURTHER_BACK
    raise Missing(
        f"value.schema=infer: {options.topics} has no records to infer columns from; write value.schema out, as in "
        "'id BIGINT, name STRING', or produce some first"
    )


def newest_spans(seen: Seen, starts: Mapping[TopicPartition, int], count: int) -> list[Span]:
    """The last `count` offsets of the topics in all; none when there are no offsets. Pure."""
    shares = share({tp: seen.ends[tp] - start for tp, start in starts.items()}, count)
    return [
        Span(tp.topic, seen.ids.get(tp.topic, ""), tp.partition, seen.ends[tp] - size, seen.ends[tp])
        for tp, size in shares.items()
    ]


def _values(options: SourceOptions, spans: list[Span]) -> list[bytes | None]:
    from penstock.client.arrow import record_batch
    from penstock.client.spans import Piece

    reader = reader_for(options.client_settings)
    values: list[bytes | None] = []
    size_bytes = 0
    for item in for_process().iterate(reader.read(spans)):
        if isinstance(item, Piece):
            column = record_batch(item.sink, item.span.topic, item.span.partition).column("value")
            values += column.to_pylist()
            size_bytes += column.nbytes
        if size_bytes >= SAMPLE_BYTES_MAX:
            break
    return values
