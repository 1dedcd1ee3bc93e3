"""A few values of the topics that are read, for those who infer a schema from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.client.spans import Span
from penstock.spark.dialogue import for_process, reader_for
from penstock.spark.errors import Missing
from penstock.spark.source.facts import Cluster
from penstock.spark.source.limits import share

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.spark.source.options import SourceOptions

SAMPLE_BYTES_MAX: Final = 64 << 20
"""Large records are sampled up to here: a schema is not worth a gigabyte."""


def sample_values(options: SourceOptions, count: int) -> pa.Array:
    """The newest values, `count` or fewer, spread over the partitions as their records are. Raises for empty topics."""
    spans = newest_spans(Cluster(options), count)
    values = _values(options, spans)
    if len(values) == 0:
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


def _values(options: SourceOptions, spans: list[Span]) -> pa.Array:
    import pyarrow as pa

    from penstock.client.arrow import record_batch
    from penstock.client.spans import Piece

    reader = reader_for(options.client_settings)
    chunks, size_bytes = [], 0
    for item in for_process().iterate(reader.read(spans)):
        if isinstance(item, Piece):
            values = record_batch(item.sink, item.span.topic, item.span.partition).column("value")
            chunks.append(values)
            size_bytes += values.nbytes
        if size_bytes >= SAMPLE_BYTES_MAX:
            break
    return pa.concat_arrays(chunks) if chunks else pa.array([], pa.binary())
