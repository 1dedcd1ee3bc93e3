"""Arrow columns as the kernels take them, and the partition that a key belongs to; the compiled twin is `_columns.pxi`.

A column is a tuple of plain buffers in Arrow's layout, so that nothing here knows pyarrow. Item 0 is the validity
bitmap or None; the last item may be left out and is the row at which a slice begins.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any, Final

from penstock.kernels.shapes import Buffer, Payload

_M: Final = 0x5BD1E995
_SEED: Final = 0x9747B28C
_U32: Final = 0xFFFFFFFF


def payload_bytes(data: Payload) -> Buffer:
    """The bytes of what a user may give as key or value; TypeError for anything else."""
    if isinstance(data, bytes):
        return data
    if isinstance(data, str):
        return data.encode()
    view = memoryview(data)
    if not view.c_contiguous:
        raise BufferError("a key or value in memory with gaps")
    return view.tobytes()


def murmur2(key: Payload) -> int:
    """The hash with which Kafka's clients spread keys, as an unsigned number of 32 bits."""
    data = payload_bytes(key)
    whole = len(data) & ~3
    mixed = _SEED ^ len(data)
    for at in range(0, whole, 4):
        word = int.from_bytes(data[at : at + 4], "little") * _M & _U32
        word = (word ^ word >> 24) * _M & _U32
        mixed = (mixed * _M & _U32) ^ word
    if whole != len(data):
        mixed = (mixed ^ int.from_bytes(data[whole:], "little")) * _M & _U32
    mixed = (mixed ^ mixed >> 13) * _M & _U32
    return mixed ^ mixed >> 15


def partition_of(key: Payload, partitions: int) -> int:
    """The partition of a key among `partitions`, as Kafka's clients choose it."""
    _some(partitions)
    return (murmur2(key) & 0x7FFFFFFF) % partitions


def partition_keys(keys: Sequence[Payload | None], partitions: int) -> array[int]:
    """The partition of each key, -1 for None."""
    _some(partitions)
    return array("i", [-1 if key is None else partition_of(key, partitions) for key in keys])


def partition_rows(columns: Columns, partitions: int) -> array[int]:
    """The partition of each row by its key, -1 where the key is null."""
    _some(partitions)
    if columns.key is None:
        return array("i", [-1]) * columns.rows
    return partition_keys([columns.key.at(row) for row in range(columns.rows)], partitions)


def group_rows(chosen: array[int], partitions: int) -> list[array[int]]:
    """The rows of each partition in their order, from what `partition_rows` gave; the last list has those of -1."""
    _some(partitions)
    found = [array("i") for _ in range(partitions + 1)]
    for row, partition in enumerate(rows_view(chosen)):
        if not -1 <= partition < partitions:
            raise ValueError(f"row {row} names partition {partition} of {partitions}")
        found[partition].append(row)
    return found


def _some(partitions: int) -> None:
    if not 0 < partitions < 1 << 31:
        raise ValueError("a topic has at least one partition")


def rows_view(rows: Any) -> memoryview:
    view = memoryview(rows)
    if view.itemsize != 4:
        raise ValueError("row numbers are 4 bytes wide")
    return view.cast("B").cast("i")


class _Bits:
    """A validity bitmap over `rows` rows from bit `first` on; None is all valid."""

    __slots__ = ("bits", "first")

    def __init__(self, bits: Any, first: int, rows: int, what: str) -> None:
        self.bits = None if bits is None else memoryview(bits).cast("B")
        self.first = first
        if self.bits is not None and len(self.bits) * 8 < first + rows:
            raise ValueError(f"{what}: its validity bitmap ends before its rows do")

    def __getitem__(self, row: int) -> bool:
        at = self.first + row
        return self.bits is None or bool(self.bits[at >> 3] >> (at & 7) & 1)


class _Offsets:
    """Where each of `rows` rows lies in something of `size` items; every pair is in order and inside."""

    __slots__ = ("first", "offsets", "size")

    def __init__(self, offsets: Any, first: int, rows: int, size: int, what: str) -> None:
        view = memoryview(offsets)
        if view.itemsize not in (4, 8):
            raise ValueError(f"{what}: its offsets are neither 4 nor 8 bytes wide")
        self.offsets = view.cast("B").cast("i" if view.itemsize == 4 else "q")
        self.first, self.size = first, size
        if rows and len(self.offsets) < first + rows + 1:
            raise ValueError(f"{what}: its offsets end before its rows do")
        for row in range(rows):
            self.span(row, what)

    def span(self, row: int, what: str = "a column") -> tuple[int, int]:
        start, end = self.offsets[self.first + row], self.offsets[self.first + row + 1]
        if not 0 <= start <= end <= self.size:
            raise ValueError(f"{what}: row {row} lies at [{start}, {end}) of {self.size}")
        return start, end


def _first_row(column: tuple[Any, ...], fields: int, rows: int, what: str) -> int:
    if len(column) not in (fields, fields + 1):
        raise ValueError(f"{what}: it has {len(column)} parts")
    first = column[fields] if len(column) > fields else 0
    if not 0 <= first < (1 << 62) - rows:
        raise ValueError(f"{what}: its slice begins at {first}")
    return int(first)


class _Binary:
    """A binary or string column, large or not."""

    __slots__ = ("data", "offsets", "valid")

    def __init__(self, column: tuple[Any, ...], rows: int, what: str) -> None:
        first = _first_row(column, 3, rows, what)
        self.data = memoryview(b"" if column[2] is None else column[2]).cast("B")
        self.valid = _Bits(column[0], first, rows, what)
        self.offsets = _Offsets(column[1], first, rows, len(self.data), what)

    def at(self, row: int) -> bytes | None:
        if not self.valid[row]:
            return None
        start, end = self.offsets.span(row)
        return bytes(self.data[start:end])


class _Numbers:
    """A column of int64."""

    __slots__ = ("first", "valid", "values")

    def __init__(self, column: Any, rows: int, what: str) -> None:
        parts = column if isinstance(column, tuple) else (None, column)
        self.first = _first_row(parts, 2, rows, what)
        self.valid = _Bits(parts[0], self.first, rows, what)
        raw = memoryview(parts[1]).cast("B")
        self.values = raw[: len(raw) & ~7].cast("q")
        if len(self.values) < self.first + rows:
            raise ValueError(f"{what}: its values end before its rows do")

    def at(self, row: int) -> int | None:
        return self.values[self.first + row] if self.valid[row] else None


class _Headers:
    """A column of list<struct<key: string, value: binary>>."""

    __slots__ = ("names", "offsets", "valid", "values")

    def __init__(self, column: tuple[Any, ...], rows: int, what: str) -> None:
        first = _first_row(column, 4, rows, what)
        self.valid = _Bits(column[0], first, rows, what)
        self.offsets = _Offsets(column[1], first, rows, (1 << 62) - 1, what)
        # The children are read exactly as far as the lists reach.
        end = max((self.offsets.span(row)[1] for row in range(rows)), default=0)
        self.names = _Binary(column[2], end, "the header names")
        self.values = _Binary(column[3], end, "the header values")
        self.offsets.size = end

    def at(self, row: int) -> list[tuple[bytes, bytes | None]]:
        if not self.valid[row]:
            return []
        found = []
        for index in range(*self.offsets.span(row)):
            name = self.names.at(index)
            if name is None:
                raise ValueError(f"row {row} has a header without a name")
            found.append((name, self.values.at(index)))
        return found


class Columns:
    """`rows` records as columns, all of which may be missing: a missing one is null in every row.

    key, value: (validity, offsets, data[, first row]) with offsets of 4 or 8 bytes, told by the item size of their
    buffer, so cast it: `memoryview(buffer).cast("i")`.
    timestamp: an int64 buffer of milliseconds, or (validity, values[, first row]).
    headers: (validity, offsets, names, values[, first row]); names and values are columns like key and value, whose
    first row counts the struct's slice in.
    ValueError when a buffer is too short or an offset points outside. The buffers must not change afterwards; they
    are held until the object goes.
    """

    __slots__ = ("headers", "key", "rows", "timestamp", "value")

    def __init__(
        self,
        rows: int,
        *,
        key: tuple[Any, ...] | None = None,
        value: tuple[Any, ...] | None = None,
        timestamp: Any = None,
        headers: tuple[Any, ...] | None = None,
    ) -> None:
        if not 0 <= rows < 1 << 31:
            raise ValueError(f"{rows} rows are too few or too many")
        self.rows = rows
        self.key = None if key is None else _Binary(key, rows, "the keys")
        self.value = None if value is None else _Binary(value, rows, "the values")
        self.timestamp = None if timestamp is None else _Numbers(timestamp, rows, "the timestamps")
        self.headers = None if headers is None else _Headers(headers, rows, "the headers")
