"""A streaming read of topics: what Spark asks on the driver, in one process for as long as the query runs.

initialOffset   wishes: sentinels, or offsets where the options name some. Asked again when batch 0 is played again
latestOffset    looks at the cluster, decides how far the next batch goes, and writes down beside the end whatever a
                replay must know: where partitions began that did not begin at the end of the batch before
partitions      only what the two offsets say, so that a replay reads the same ranges
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from penstock.client.spans import Span
from penstock.model.ids import TopicPartition
from penstock.spark.offsets import EARLIEST, StreamOffset
from penstock.spark.source.batch import packing_limits, resolve_place
from penstock.spark.source.limits import Pace, cut
from penstock.spark.source.losses import Seen, Standing, stand, tell, wanting_starts
from penstock.spark.source.packing import pack
from penstock.spark.source.tasks import PublishedStart, TaskSpans

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from penstock.spark.source.facts import Cluster
    from penstock.spark.source.options import SourceOptions


class TopicStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """One query's reader. Only options and schema are pickled: executors get a copy that reads."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self.options, self.schema = options, schema
        self._held: Cluster | None = None
        self._target: Seen | None = None
        """With trigger(availableNow=True): the cluster when the query began; nothing later is read."""
        self._reported: StreamOffset | None = None
        self._pace = Pace(options.min_offsets_per_trigger or 0, options.max_trigger_delay_ms)

    def __reduce__(self) -> tuple[Any, ...]:
        return TopicStreamReader, (self.options, self.schema)

    @property
    def _cluster(self) -> Cluster:
        if self._held is None:
            from penstock.spark.source.facts import Cluster

            self._held = Cluster(self.options)
        return self._held

    # What Spark asks.

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        seen = self._target or self._cluster.look(strict=True)
        return StreamOffset(resolve_place(self.options.start, seen, self._cluster)).to_json()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        self._target = self._cluster.look(expected=self.options.topics.topics)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        if self.options.max_offsets_per_trigger is not None:
            return ReadMaxRows(self.options.max_offsets_per_trigger)
        if self.options.min_offsets_per_trigger is not None:
            return ReadMinRows(self.options.min_offsets_per_trigger)
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802 - Spark's name
        begin = StreamOffset.of_json(start)
        seen = self._target or self._cluster.look(expected={tp.topic for tp in begin.ends})
        seen = self._cluster.reaching(seen, begin.ends)
        wanting = wanting_starts(begin, seen)
        log_starts = self._cluster.log_starts(wanting)
        seen = seen.without(wanting - log_starts.keys())
        standing = stand(begin, seen, log_starts)
        tell(standing.losses, fail=self.options.fail_on_data_loss, topic_lost=standing.topic_lost)
        self._reported = StreamOffset(seen.ends)
        ends = self._ends(standing, seen, limit)
        # The first batch has none before it in the log, and what Spark's own connector wrote does not tell enough: then
        # every begin is written down, also those that were given as numbers.
        first = not StreamOffset.is_ours(start)
        if ends is None or (ends == begin.ends and not standing.resolved and not first):
            return start
        return StreamOffset(
            ends=ends,
            ids={topic: id for topic, id in seen.ids.items() if id},
            epochs=seen.epochs,
            starts={tp: standing.begins[tp] for tp in (standing.begins if first else standing.resolved)},
            bootstrap=self.options.bootstrap,
            query=self.options.query_name or "",
            committed=self.options.read_committed,
            quiet=not self.options.publish_progress,
        ).to_json()

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802 - Spark's name
        return self._reported.to_json() if self._reported is not None else None

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        before, after = StreamOffset.of_json(start), StreamOffset.of_json(end)
        after = self._with_starts(before, after)
        spans = [
            Span(found.topic, found.topic_id, found.partition, found.start, found.end)
            for found in after.ranges_after(before)
        ]
        rates = self._cluster.bytes_per_offset({span.topic for span in spans}) if spans else {}
        packed = pack(spans, packing_limits(self.options), rates)
        publish = PublishedStart(_begins(before, after)) if self.options.publish_progress else None
        return [TaskSpans(each, None if number else publish) for number, each in enumerate(packed)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from penstock.spark.source.reading import read_task

        assert isinstance(partition, TaskSpans), "Spark hands back what was planned"
        return read_task(partition, self.options, self.schema)

    # How it is found out.

    def _ends(self, standing: Standing, seen: Seen, limit: ReadLimit) -> dict[TopicPartition, int] | None:
        """How far the next batch goes; None to wait for more."""
        waiting = sum(seen.ends[tp] - begin for tp, begin in standing.begins.items())
        # Trigger.Once asks for all there is whatever the options say. An available-now query that waited would end
        # before it has read what there is.
        unlimited = isinstance(limit, ReadAllAvailable)
        patient = self.options.min_offsets_per_trigger is not None and self._target is None and not unlimited
        if patient and waiting and not self._pace.worth(waiting, time.monotonic() * 1000):
            return None
        return cut(standing.begins, seen.ends, limit.max_rows if isinstance(limit, ReadMaxRows) else None)

    def _with_starts(self, before: StreamOffset, after: StreamOffset) -> StreamOffset:
        """Fills in the log starts that an offset log of Spark's own connector does not tell of."""
        wanting = {tp for tp in after.ends if tp not in after.starts and before.ends.get(tp, EARLIEST) == EARLIEST}
        if not wanting:
            return after
        return replace(after, starts={**after.starts, **self._cluster.log_starts(wanting)})


def _begins(before: StreamOffset, after: StreamOffset) -> Mapping[TopicPartition, int]:
    """Where every partition of a batch begins, whether or not it has records."""
    begins = {tp: after.starts.get(tp, before.ends.get(tp, -1)) for tp in after.ends}
    return {tp: offset for tp, offset in begins.items() if offset >= 0}
