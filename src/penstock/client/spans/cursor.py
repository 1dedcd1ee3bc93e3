"""How far one span is: batches in, pieces out, and what was missing. Pure.

Offsets are counted, never visited: what a span lacks is its length less its rows, and where gaps begin is found by
bisection in the column of offsets.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final

from penstock.client.consumer.batches import Batch
from penstock.client.consumer.partition import CorruptBatch
from penstock.client.spans.shapes import GAPS_NAMED, Piece, Span, SpanEnd
from penstock.kernels import BadBytes, ColumnSink
from penstock.model.errors import CORRUPT_MESSAGE
from penstock.protocol.batch import LOG_APPEND_TIME
from penstock.protocol.wire import Malformed

# Offset, time, three ends of items and what Spark adds: partition, kind of time, the topic's name.
ROW_BYTES: Final = 48

COLUMN_BYTES_MAX: Final = 0x7FFF_FFFF


class SpanCursor:
    """The reading side of one span."""

    __slots__ = (
        "_counted",
        "_gaps",
        "_kind",
        "_piece_bytes",
        "_sink",
        "batches",
        "fetch_offset",
        "log_start",
        "position",
        "rows",
        "span",
        "trimmed",
    )

    def __init__(self, span: Span, piece_bytes: int) -> None:
        self.span = span
        self.position = span.start  # the next offset to look at
        self.fetch_offset = span.start  # the next one to ask for
        self.rows = 0
        self.trimmed = 0
        self.log_start = -1
        self.batches: deque[Batch] = deque()
        self._piece_bytes = piece_bytes
        self._sink: ColumnSink | None = None
        self._kind = 0
        self._counted = span.start  # up to here gaps were looked for
        self._gaps: list[tuple[int, int]] = []

    @property
    def fetched(self) -> bool:
        """Whether there is nothing more to ask for."""
        return self.fetch_offset >= self.span.end

    @property
    def finished(self) -> bool:
        """Whether all of it was given, up to the last piece."""
        return self.position >= self.span.end and not self.batches

    def put(self, batches: Iterable[Batch]) -> None:
        """What a fetch from `fetch_offset` brought."""
        for batch in batches:
            if self.fetched:
                return
            self.batches.append(batch)
            self.fetch_offset = max(self.fetch_offset, batch.end)

    def trim(self, log_start: int) -> None:
        """The log begins only at `log_start`: what the span has before it is gone. Everything fetched was given."""
        assert not self.batches, "what was fetched is given before another reply is read"
        to = min(log_start, self.span.end)
        self.log_start = max(self.log_start, log_start)
        if to > self.position:
            self.trimmed += to - self.position
            self._lacks(self._counted, to)
            self._counted = self.position = self.fetch_offset = to

    def pieces(self) -> Iterator[Piece]:
        """Everything that was put, in pieces. CorruptBatch, after what came before it, for what cannot be read."""
        while self.batches:
            batch = self.batches[0]
            if batch.header is None:
                if batch.broken is not None:
                    yield from self._emptied()
                    raise self._corrupt(batch.broken)
                self._pass(batch)
                continue
            try:
                batch.unpack()
                full = self._must_end_before(batch)
                if full:
                    yield from self._emptied()
                self._pour(batch)
            except (BadBytes, Malformed) as broken:
                yield from self._emptied()
                raise self._corrupt(broken) from None
            if self._sink is not None and self._sink.full:
                yield from self._emptied()
        yield from self._emptied()

    def end(self) -> SpanEnd:
        """What became of the span; call it once, when it is finished."""
        assert self.finished, "a span ends when all of it was given"
        span = self.span
        self._lacks(self._counted, span.end)
        return SpanEnd(span, self.rows, tuple(self._gaps), span.count - self.rows, self.log_start, self.trimmed)

    # -- batches into a sink

    def _must_end_before(self, batch: Batch) -> bool:
        """Whether the piece that is being filled has no room for the batch, or is of another kind."""
        sink, header = self._sink, batch.header
        assert header is not None
        if sink is None or not sink.rows:
            return False
        size = sink.data_bytes + batch.size + ROW_BYTES * (sink.rows + header.record_count)
        return size > self._piece_bytes or _kind_of(batch) != self._kind

    def _pour(self, batch: Batch) -> None:
        sink = self._sink
        if sink is None:
            expected = min(self._piece_bytes, sum(ahead.size for ahead in self.batches))
            # One record may be larger than a piece; more of them may not.
            sink = self._sink = ColumnSink(min(self._piece_bytes, COLUMN_BYTES_MAX), expected)
            self._kind = _kind_of(batch)
        limit = self._limit(batch)
        taken = batch.pour(sink, self.position, limit) if limit else 0
        if sink.finished or taken == limit:
            self._pass(batch)
        elif taken:
            self.position = sink.last_offset + 1

    def _limit(self, batch: Batch) -> int:
        """How many of its records, from the position on, lie before the end of the span."""
        header = batch.header
        assert header is not None
        if header.last_offset < self.span.end:
            return max(header.record_count, 1)
        if header.record_count == header.last_offset_delta + 1:
            # After a hole the next batch may begin behind the end.
            return max(0, self.span.end - max(self.position, header.base_offset))
        # Compaction has taken records out of it: only their offsets can tell.
        offsets = ColumnSink()
        batch.pour(offsets, self.position, header.record_count)
        return bisect_right(memoryview(offsets.buffers()["offset"]).cast("q"), self.span.end - 1)

    def _pass(self, batch: Batch) -> None:
        """Nothing of the batch is left to give."""
        self.position = max(self.position, min(batch.end, self.span.end))
        self.batches.popleft()
        if self.position >= self.span.end:
            self.batches.clear()

    # -- a sink into a piece

    def _emptied(self) -> Iterator[Piece]:
        sink, self._sink = self._sink, None
        if sink is not None and sink.rows:
            self.rows += sink.rows
            self._look_for_gaps(sink)
            yield Piece(self.span, sink, sink.rows, self._kind)

    def _look_for_gaps(self, sink: ColumnSink) -> None:
        offsets = memoryview(sink.buffers()["offset"]).cast("q")
        count = len(offsets)
        self._lacks(self._counted, offsets[0])
        row = 0
        while offsets[-1] - offsets[row] != count - 1 - row and len(self._gaps) < GAPS_NAMED:
            # Up to the next gap, offsets rise as rows do.
            row = bisect_right(range(count), offsets[row] - row, lo=row, key=lambda at: offsets[at] - at)
            self._lacks(offsets[row - 1] + 1, offsets[row])
        self._counted = offsets[-1] + 1

    def _lacks(self, start: int, end: int) -> None:
        if start >= end:
            return
        if self._gaps and self._gaps[-1][1] == start:
            self._gaps[-1] = (self._gaps[-1][0], end)
        elif len(self._gaps) < GAPS_NAMED:
            self._gaps.append((start, end))

    def _corrupt(self, cause: Exception) -> CorruptBatch:
        return CorruptBatch(
            f"the records at offset {self.position} cannot be read: {cause}",
            where=str(self.span.tp),
            error=CORRUPT_MESSAGE,
            retriable=False,
        )


def _kind_of(batch: Batch) -> int:
    assert batch.header is not None
    return 1 if batch.header.attributes & LOG_APPEND_TIME else 0
