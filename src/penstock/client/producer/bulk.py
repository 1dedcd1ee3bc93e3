"""Many records of one call, cut into batches by the kernels: rows of lists, or of Arrow columns."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from penstock.client.errors import ClientError, UnknownTopic
from penstock.client.producer.delivery import BulkDelivery
from penstock.client.producer.lane import Batch, Lane
from penstock.client.producer.topic_lanes import TopicLanes
from penstock.kernels import Columns, RecordsBuilder, group_rows

_SAMPLE_ROWS = 64


class Rows(Protocol):
    """Where the records come from."""

    count: int
    bytes: int
    """About how many bytes they have."""

    def take(self, builder: RecordsBuilder, start: int, stop: int, rows: array[int] | None) -> int:
        """Rows [start, stop), or those that `rows` names there; the first index that was not taken."""

    def partitions(self, held: TopicLanes) -> array[int]:
        """The partition of each row, -1 for any."""


class Buffer(Protocol):
    """Where rows become batches: the part of the accumulator that they need."""

    record_bytes_max: int

    @property
    def topics(self) -> Mapping[str, TopicLanes]: ...
    def bulk_builder(self, lane: Lane, estimate: int) -> tuple[RecordsBuilder, int] | None: ...
    def open_batch(self, lane: Lane, builder: RecordsBuilder, charge: int) -> Batch: ...
    def close_open(self, held: TopicLanes, lane: Lane) -> None: ...
    def check_size(self, size: int, where: str) -> None: ...


class ListRows:
    """Rows of parallel lists."""

    def __init__(
        self,
        values: Sequence[Any],
        keys: Sequence[Any] | None,
        headers: Sequence[Any] | None,
        timestamps: Sequence[int] | None,
        now_ms: int,
    ) -> None:
        self.count = len(values)
        for name, given in (("keys", keys), ("headers", headers), ("timestamps", timestamps)):
            if given is not None and len(given) != self.count:
                raise ValueError(f"there are {self.count} values and {len(given)} {name}")
        self._values, self._keys, self._headers, self._timestamps = values, keys, headers, timestamps
        self._now_ms = now_ms
        self.bytes = self._estimate()

    def _estimate(self) -> int:
        step = max(self.count // _SAMPLE_ROWS, 1)
        sample = range(0, self.count, step)
        size = sum(_length(self._values[row]) + 12 for row in sample)
        if self._keys is not None:
            size += sum(_length(self._keys[row]) for row in sample)
        return size * self.count // max(len(sample), 1)

    def take(self, builder: RecordsBuilder, start: int, stop: int, rows: array[int] | None) -> int:
        return builder.append_many(
            self._now_ms,
            self._values,
            self._keys,
            start,
            stop,
            rows,
            timestamps=self._timestamps,
            headers=self._headers,
        )

    def partitions(self, held: TopicLanes) -> array[int]:
        return held.rows_of_keys(self._keys, self._values, self.count)


def _length(data: Any) -> int:
    """A guess; what is no text or bytes at all is for the kernel to refuse."""
    return len(data) if hasattr(data, "__len__") else 0


class ColumnRows:
    """Rows of Arrow columns; `keys` and `values` are the same as Python sees them, for partitioners in Python."""

    def __init__(
        self, columns: Columns, size: int, keys: Any, values: Any, own: array[int] | None, now_ms: int
    ) -> None:
        self.count = columns.rows
        self.bytes = size
        self._columns, self._keys, self._values, self._own, self._now_ms = columns, keys, values, own, now_ms

    def take(self, builder: RecordsBuilder, start: int, stop: int, rows: array[int] | None) -> int:
        return builder.append_columns(self._columns, start, stop, rows, self._now_ms)

    def partitions(self, held: TopicLanes) -> array[int]:
        chosen = held.rows_of_columns(self._columns, self._keys, self._values)
        if self._own is not None:
            for row, partition in enumerate(self._own):
                if partition >= 0:
                    chosen[row] = partition
        return chosen


class Bulk:
    """Rows on their way into batches, as far as there is room; `fill` goes on where it stopped."""

    def __init__(self, topic: str, rows: Rows, partition: int | None) -> None:
        self.topic, self.partition = topic, partition
        self._rows = rows
        self._groups: list[tuple[Lane | None, array[int] | None, int]] | None = None
        self._at = 0
        self.placed_rows = 0

    def fill(self, buffer: Buffer, delivery: BulkDelivery) -> bool:
        """True when no row is left; a row that cannot be sent fails what comes after it."""
        held = buffer.topics[self.topic]
        try:
            if self._groups is None:
                self._groups = self._plan(held)
            while self._groups:
                lane, rows, stop = self._groups[0]
                while self._at < stop:
                    if not self._step(buffer, delivery, held, lane, rows, stop):
                        return False
                self._groups.pop(0)
                self._at = 0
        except (ClientError, TypeError, ValueError, OverflowError) as wrong:
            delivery.all_placed(
                wrong if isinstance(wrong, ClientError) else ClientError(f"a row cannot be sent: {wrong}")
            )
            return True
        delivery.all_placed()
        return True

    def _plan(self, held: TopicLanes) -> list[tuple[Lane | None, array[int] | None, int]]:
        """(lane, its rows or None for all, how many); no lane means that any will do."""
        count = self._rows.count
        if self.partition is not None:
            return [(held.lanes[self.partition], None, count)]
        chosen = self._rows.partitions(held)
        if not count or (chosen[0] < 0 and max(chosen) < 0):
            return [(None, None, count)]
        try:
            grouped = group_rows(chosen, len(held.lanes))
        except ValueError as wrong:
            raise UnknownTopic(str(wrong), where=f"topic {self.topic!r}") from None
        lanes: list[Lane | None] = [*held.lanes, None]
        return [(lane, rows, len(rows)) for lane, rows in zip(lanes, grouped, strict=True) if len(rows)]

    def _step(
        self,
        buffer: Buffer,
        delivery: BulkDelivery,
        held: TopicLanes,
        chosen: Lane | None,
        rows: array[int] | None,
        stop: int,
    ) -> bool:
        """Fills the open batch of a lane, or begins another; False when there is no room."""
        lane = chosen or held.sticky
        assert lane is not None
        if lane.open is not None:
            builder = lane.open.builder
            assert builder is not None
            before = builder.count
            try:
                self._rows.take(builder, self._at, stop, rows)
            finally:
                taken = builder.count - before
                if taken:
                    delivery.took(lane.open, before, taken, self._next_rows(rows, taken))
                    self._advance(taken)
            if taken:
                return True
            buffer.close_open(held, lane)
            if lane is not (chosen or held.sticky):
                return True  # the full batch was the last of its partition's turn
        estimate = self._rows.bytes * (stop - self._at) // max(self._rows.count, 1)
        begun = buffer.bulk_builder(lane, estimate + estimate // 8)
        if begun is None:
            return False
        builder, charge = begun
        try:
            self._rows.take(builder, self._at, stop, rows)
        finally:
            if builder.count and builder.size <= buffer.record_bytes_max:
                charge = max(charge, builder.size) if builder.count == 1 else charge
                begun_batch = buffer.open_batch(lane, builder, charge)
                delivery.took(begun_batch, 0, builder.count, self._next_rows(rows, builder.count))
                self._advance(builder.count)
            elif builder.count:
                buffer.check_size(builder.size, lane.name)
        return True

    def _next_rows(self, rows: array[int] | None, count: int) -> Sequence[int]:
        """Which rows of the call are the next `count` of a group."""
        return range(self._at, self._at + count) if rows is None else rows[self._at : self._at + count]

    def _advance(self, rows: int) -> None:
        self._at += rows
        self.placed_rows += rows
