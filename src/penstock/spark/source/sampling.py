"""A few values of the topics that are read, for those who infer a schema from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.client.spans import Span
from penstock.spark.dialogue import for_process, reader_for
from penstock.spark.errors import Missing
from penstock.spark.source.facts import Cluster
from penstock.spark.source.limits import share

if TYPE_CHECKING:
    from penstock.spark.source.options import SourceOptions

SAMPLE_BYTES_MAX: Final = 64 << 20
"""Large records are sampled up to here: a schema is not worth a gigabyte."""


def sample_values(options: SourceOptions, count: int) -> list[bytes | None]:
    """The newest values, `count` or fewer, spread over the partitions as their records are. Raises for empty topics."""
    spans = newest_spans(Cluster(options), count)
    values = _values(options, spans)
    if not values:
        raise Missing(
            f"value.schema=infer: {options.topics} has no records to infer columns from; write value.schema out, as in "
            "'id BIGINT, name STRING', or produce some first"
        )
    return values


def newest_spans(cluster: Cluster, count: int) -> list[Span]:
    """The last `count` offsets of the topics in all."""
    seen = cluster.look(strict=True)
    starts = cluster.log_starts(seen.ends.keys())
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
