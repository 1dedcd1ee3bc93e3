"""What an executor does for a task: reads its spans and gives rows; tells what was missing to those who ask."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.client.errors import ClientError
from penstock.client.spans import Piece, Span, SpanEnd, SpanLost, TopicGone, TopicReplaced
from penstock.spark.dialogue import for_process, reader_for
from penstock.spark.running_query import RunningQuery, running_query
from penstock.spark.source.decoded_rows import merged, rows_for
from penstock.spark.source.losses import tell

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from penstock.spark.progress.reports import SpanReport
    from penstock.spark.source.options import SourceOptions
    from penstock.spark.source.tasks import TaskSpans

_log = logging.getLogger("penstock.spark.source")


def read_task(task: TaskSpans, options: SourceOptions, schema: StructType) -> Iterator[pa.RecordBatch]:
    """The rows of a task's spans in batches of some megabytes, with exactly the types of `schema`.

    When it ends, every offset of every span was given, delivered as a dead letter, or counted as missing. DataLost for
    what is gone, unless the user chose to go on without.
    """
    reading = _TaskReading(task, options, running_query())
    rows = rows_for(options, schema)

    def batches() -> Iterator[pa.RecordBatch]:
        for piece in reading.pieces():
            made = rows.of(piece)
            reading.gave(piece, made.dead)
            yield made.rows

    yield from merged(batches())
    reading.publish()


class _Progress:
    """One span of the task: what was read of it so far."""

    __slots__ = ("dead", "gaps", "position", "rows", "span")

    def __init__(self, span: Span) -> None:
        self.span = span
        self.position = span.start
        self.rows = self.dead = 0
        self.gaps: list[tuple[int, int]] = []

    @property
    def left(self) -> Span:
        return replace(self.span, start=self.position)

    @property
    def missing(self) -> int:
        """Offsets without a record, once all of the span was read or given up."""
        return self.span.count - self.rows - self.dead


class _TaskReading:
    """The spans of one task on their way."""

    def __init__(self, task: TaskSpans, options: SourceOptions, query: RunningQuery | None) -> None:
        self._task, self._options, self._query = task, options, query
        self._settings = options.client_settings
        self._spans = [_Progress(span) for span in task.spans]
        self._by_span: dict[Span, _Progress] = {}

    def pieces(self) -> Iterator[Piece]:
        """Everything there is of the spans. Where some are lost, and that is no error, the others are read on."""
        left = self._spans
        while left:
            self._by_span = {progress.left: progress for progress in left}
            reader = reader_for(self._settings)
            read = reader.read(list(self._by_span), on_trimmed=self._trimmed)
            try:
                # A query with a limit leaves early: what is under way must not come in the way of the next task.
                with closing(for_process().iterate(read)) as items:
                    for item in items:
                        if isinstance(item, Piece):
                            yield item
                        else:
                            self._ended(item)
            except SpanLost as lost:
                self._lost(lost)
            except ClientError:
                # Whatever is wrong with it, the next task begins with new connections.
                for_process().drop(reader)
                raise
            left = [progress for progress in self._spans if progress.position < progress.span.end]

    def gave(self, piece: Piece, dead: int) -> None:
        """The rows of a piece are on their way, its dead letters were delivered."""
        progress = self._by_span[piece.span]
        progress.rows += piece.rows - dead
        progress.dead += dead
        progress.position = piece.sink.last_offset + 1

    def _ended(self, end: SpanEnd) -> None:
        progress = self._by_span[end.span]
        progress.position = end.span.end
        if not end.missing:
            return
        progress.gaps += end.gaps
        _log.info(
            "%s: %d of the offsets %d to %d hold no record: %s",
            end.span.tp,
            end.missing,
            end.span.start,
            end.span.end,
            ranges_text(end.gaps),
        )

    def _trimmed(self, span: Span, start: int, end: int) -> None:
        words = f"{span.tp}: {end - start} offsets from {start} to {end} are gone, deleted by retention or by hand"
        tell([words], fail=self._options.fail_on_data_loss)

    def _lost(self, lost: SpanLost) -> None:
        """Goes on without what is lost: a span from where it ends, or all spans of a topic that is not there."""
        whole_topic = isinstance(lost, (TopicGone, TopicReplaced))
        of_topic = (lost.span.topic, lost.span.topic_id)
        words = []
        for span, progress in self._by_span.items():
            if span == lost.span or (whole_topic and (span.topic, span.topic_id) == of_topic):
                start, end = progress.position, span.end
                if start < end:
                    words.append(f"{span.tp}: {end - start} offsets from {start} to {end} are gone: {lost}")
                    progress.gaps.append((start, end))
                    progress.position = end
        tell(words, fail=self._options.fail_on_data_loss, topic_lost=whole_topic)

    def publish(self) -> None:
        """Tells the sink of the batch what did not become a row, and lag tools where the batch begins."""
        query = self._query
        if query is None:
            return
        amiss = [progress for progress in self._spans if progress.dead or progress.missing]
        if amiss:
            from penstock.spark.progress import reports

            reports.publish(self._settings, [_report(query, progress) for progress in amiss])
        if self._task.publish is not None:
            from penstock.spark.progress import groups

            name = self._options.query_name or query.name
            groups.publish_offsets(self._settings, name, self._task.publish.offsets)


def _report(query: RunningQuery, progress: _Progress) -> SpanReport:
    from penstock.spark.progress.reports import GAPS_MAX, SpanReport

    span = progress.span
    return SpanReport(
        query_id=query.id,
        batch_id=query.batch_id,
        topic=span.topic,
        topic_id=span.topic_id,
        partition=span.partition,
        start=span.start,
        end=span.end,
        rows=progress.rows,
        dead=progress.dead,
        missing=progress.missing,
        gaps=tuple(progress.gaps[:GAPS_MAX]),
    )


def ranges_text(gaps: tuple[tuple[int, int], ...], most: int = 10) -> str:
    """Ranges as people write them; the first few."""
    words = ", ".join(f"{start}-{end - 1}" if end - start > 1 else str(start) for start, end in gaps[:most])
    return words + ", …" if len(gaps) > most else words
