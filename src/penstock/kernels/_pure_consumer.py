"""Payloads into records for applications, or into Arrow columns; compiled: `_consumer_records.pxi` and `_sink.pxi`."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import Any, Final

from penstock.kernels._pure import RecordWalker, wrapped
from penstock.kernels.shapes import BadRecord, Buffer, restored_record

DATA_BYTES_MAX: Final = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class ConsumerRecord:
    """One record as an application gets it. `timestamp_type` is 0 for the producer's time, 1 for the broker's.

    Header names are UTF-8; bytes that are not become lone surrogates.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    timestamp_type: int = 0
    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    leader_epoch: int = -1

    def __reduce__(self) -> tuple[Any, ...]:
        return restored_record, tuple(getattr(self, name) for name in self.__match_args__)


def decode_consumer_records(
    payload: Buffer,
    count: int,
    base_offset: int,
    base_timestamp: int,
    append_time: int | None,
    topic: str,
    partition: int,
    leader_epoch: int,
    first_offset: int,
) -> list[ConsumerRecord]:
    """The records of an uncompressed payload from `first_offset` on; those before it are checked and left out.

    `append_time` replaces every timestamp (LogAppendTime batches).
    """
    walker = RecordWalker(payload, count)
    found = []
    for _ in range(count):
        walker.next()
        offset = wrapped(base_offset + walker.offset_delta)
        if offset < first_offset:
            continue
        found.append(
            ConsumerRecord(
                topic,
                partition,
                offset,
                wrapped(base_timestamp + walker.timestamp_delta) if append_time is None else append_time,
                0 if append_time is None else 1,
                walker.taken(walker.key),
                walker.taken(walker.value),
                walker.headers(),
                leader_epoch,
            )
        )
    walker.finish()
    return found


class _Grown:
    """A binary column that grows: offsets, data, and which rows are null."""

    __slots__ = ("data", "nulls", "offsets")

    def __init__(self) -> None:
        self.offsets = array("i", [0])
        self.data = bytearray()
        self.nulls: list[int] = []

    def add(self, item: bytes | None) -> None:
        if item is None:
            self.nulls.append(len(self.offsets) - 1)
        else:
            self.data += item
        self.offsets.append(len(self.data))

    def cut(self, rows: int) -> None:
        del self.offsets[rows + 1 :]
        del self.data[self.offsets[-1] :]
        while self.nulls and self.nulls[-1] >= rows:
            self.nulls.pop()

    def validity(self) -> bytearray | None:
        if not self.nulls:
            return None
        bits = bytearray(b"\xff") * ((len(self.offsets) + 6) // 8)
        for row in self.nulls:
            bits[row >> 3] &= ~(1 << (row & 7)) & 0xFF
        return bits


class ColumnSink:
    """Decodes payloads into the columns of one Arrow table: every `take` adds rows, `buffers` ends it.

    No data buffer passes `data_bytes_max`: a record that would is not taken, unless it is the first of the sink.
    `expected_bytes` is a hint of how many bytes of values will come: room for them may be made at once.
    """

    __slots__ = (
        "_buffers",
        "_header_offsets",
        "_header_values",
        "_keys",
        "_limit",
        "_names",
        "_offsets",
        "_timestamps",
        "_values",
        "finished",
        "full",
    )

    def __init__(self, data_bytes_max: int = DATA_BYTES_MAX, expected_bytes: int = 0) -> None:
        if not 0 < data_bytes_max <= DATA_BYTES_MAX:
            raise ValueError(f"{data_bytes_max} bytes are too few or too many for a column")
        self._limit = data_bytes_max
        self._offsets, self._timestamps, self._header_offsets = array("q"), array("q"), array("i", [0])
        self._keys, self._values, self._names, self._header_values = _Grown(), _Grown(), _Grown(), _Grown()
        self._buffers: dict[str, Any] | None = None
        self.finished = True
        self.full = False

    @property
    def rows(self) -> int:
        return len(self._offsets)

    @property
    def last_offset(self) -> int:
        """The offset of the newest row, -1 when there is none."""
        return self._offsets[-1] if self._offsets else -1

    @property
    def data_bytes(self) -> int:
        """Bytes of keys, values and headers so far."""
        return sum(len(column.data) for column in (self._keys, self._values, self._names, self._header_values))

    def take(
        self,
        payload: Buffer,
        count: int,
        base_offset: int,
        base_timestamp: int,
        append_time: int | None,
        first_offset: int,
        limit: int,
    ) -> int:
        """Adds at most `limit` records from `first_offset` on and tells how many.

        Afterwards `finished` tells whether the end of the payload was reached, and `full` whether a data buffer has no
        room for the next record. A record that does not parse raises BadRecord and leaves the sink as it was.
        """
        if self._buffers is not None:
            raise ValueError("the columns have been given away")
        before = self.rows, len(self._names.offsets) - 1
        self.finished = self.full = False
        try:
            self._take(payload, count, base_offset, base_timestamp, append_time, first_offset, limit)
        except BadRecord:
            self._cut(*before)
            raise
        return self.rows - before[0]

    def _take(
        self,
        payload: Buffer,
        count: int,
        base_offset: int,
        base_timestamp: int,
        append_time: int | None,
        first_offset: int,
        limit: int,
    ) -> None:
        walker = RecordWalker(payload, count)
        left = limit
        for _ in range(count):
            if left <= 0:
                return
            walker.next()
            offset = wrapped(base_offset + walker.offset_delta)
            if offset < first_offset:
                continue
            if not self._add(walker):
                self.full = True
                return
            self._offsets.append(offset)
            self._timestamps.append(
                wrapped(base_timestamp + walker.timestamp_delta) if append_time is None else append_time
            )
            left -= 1
        walker.finish()
        self.finished = True

    def _add(self, walker: RecordWalker) -> bool:
        key, value = walker.taken(walker.key), walker.taken(walker.value)
        # A name that is not UTF-8 would make a column that Arrow must not hold.
        headers = [
            (name.encode("utf-8", "surrogateescape").decode("utf-8", "replace").encode(), data)
            for name, data in walker.headers()
        ]
        if self.rows and not (
            self._fits(self._keys, len(key or b""))
            and self._fits(self._values, len(value or b""))
            and self._fits(self._names, sum(len(name) for name, _ in headers))
            and self._fits(self._header_values, sum(len(data or b"") for _, data in headers))
        ):
            return False
        self._keys.add(key)
        self._values.add(value)
        for name, data in headers:
            self._names.add(name)
            self._header_values.add(data)
        self._header_offsets.append(len(self._names.offsets) - 1)
        return True

    def _fits(self, column: _Grown, more: int) -> bool:
        # The first row may have passed the limit; a row that adds nothing still fits.
        return not more or len(column.data) + more <= self._limit

    def _cut(self, rows: int, headers: int) -> None:
        del self._offsets[rows:], self._timestamps[rows:], self._header_offsets[rows + 1 :]
        self._keys.cut(rows)
        self._values.cut(rows)
        self._names.cut(headers)
        self._header_values.cut(headers)

    def buffers(self) -> dict[str, Any]:
        """The columns as Arrow buffers by name; a validity bitmap is None when nothing is null.

        The buffers own their memory from now on, and the sink takes no more.
        """
        if self._buffers is None:
            self._buffers = {
                "offset": self._offsets,
                "timestamp": self._timestamps,
                "key_validity": self._keys.validity(),
                "key_offsets": self._keys.offsets,
                "key_data": self._keys.data,
                "value_validity": self._values.validity(),
                "value_offsets": self._values.offsets,
                "value_data": self._values.data,
                "headers_offsets": self._header_offsets,
                "header_key_offsets": self._names.offsets,
                "header_key_data": self._names.data,
                "header_value_validity": self._header_values.validity(),
                "header_value_offsets": self._header_values.offsets,
                "header_value_data": self._header_values.data,
            }
        return self._buffers
