"""Records into one growing batch, and the header in front of it; the compiled twin is `_builder.pxi`."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator, Sequence
from typing import Any, Final

from fastcrc.crc32 import iscsi

from penstock.kernels._pure import I63, put_bytes, put_head, put_varint
from penstock.kernels._pure_columns import Columns, payload_bytes, rows_view
from penstock.kernels.shapes import HEADER_BYTES, PAIRS, BadBatch, Buffer, HeaderPairs, Payload

_HEADER: Final = struct.Struct(">qiibIhiqqqhii")
_CRC: Final = struct.Struct(">I")

PAYLOAD_BYTES_MAX: Final = (1 << 31) - 1 - HEADER_BYTES
"""The length field of a batch has 31 bits."""


def write_header(
    batch: bytearray | memoryview,
    base_offset: int,
    leader_epoch: int,
    attributes: int,
    last_offset_delta: int,
    base_timestamp: int,
    max_timestamp: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    record_count: int,
) -> None:
    """Fills the first 61 bytes of `batch`, whose payload is in place already: its header with length and checksum."""
    if len(batch) < HEADER_BYTES:
        raise BadBatch(f"a batch header needs {HEADER_BYTES} bytes")
    _HEADER.pack_into(
        batch,
        0,
        base_offset,
        len(batch) - 12,
        leader_epoch,
        2,
        0,
        attributes,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        record_count,
    )
    with memoryview(batch) as whole, whole[21:] as body:
        _CRC.pack_into(batch, 17, iscsi(body))


class RecordsBuilder:
    """Grows the payload of one batch; offset deltas count up from 0, the first timestamp is the base.

    `limit_bytes` bounds the payload, without the header of the batch; a first record is taken whatever its size.
    The memory begins with room for the header, so that a batch that is not compressed is never copied.
    """

    __slots__ = ("_closed", "_frame", "base_timestamp", "count", "limit_bytes", "max_timestamp")

    def __init__(self, limit_bytes: int) -> None:
        if not 0 <= limit_bytes < I63:
            raise ValueError(f"a limit of {limit_bytes} bytes")
        self.limit_bytes = min(limit_bytes, PAYLOAD_BYTES_MAX)
        self.count = 0
        self.base_timestamp = self.max_timestamp = -1
        self._frame = bytearray(HEADER_BYTES)
        self._closed = False

    @property
    def size(self) -> int:
        """Bytes of the payload so far."""
        return len(self._frame) - HEADER_BYTES

    def append(self, timestamp: int, key: Payload | None, value: Payload | None, headers: HeaderPairs = ()) -> bool:
        """Whether the record was taken; not when it would pass the limit and is not the first."""
        return self._append(
            timestamp,
            None if key is None else payload_bytes(key),
            None if value is None else payload_bytes(value),
            _packed(headers) if headers else [],
        )

    def _append(
        self, timestamp: int, key: Buffer | None, value: Buffer | None, headers: list[tuple[bytes, Buffer | None]]
    ) -> bool:
        if self._closed:
            raise ValueError("the builder is closed")
        if not -I63 <= timestamp < I63:
            raise OverflowError("a timestamp needs more than 64 bits")
        base = timestamp if self.count == 0 else self.base_timestamp
        body = bytearray()
        put_head(body, timestamp - base, self.count)
        put_bytes(body, key)
        put_bytes(body, value)
        put_varint(body, len(headers))
        for name, data in headers:
            put_bytes(body, name)
            put_bytes(body, data)
        prefix = bytearray()
        put_varint(prefix, len(body))
        after = self.size + len(prefix) + len(body)
        if after > self.limit_bytes:
            if self.count:
                return False
            if after > PAYLOAD_BYTES_MAX:
                raise ValueError("the record is larger than a batch can be")
        self._frame += prefix
        self._frame += body
        self.max_timestamp = timestamp if self.count == 0 else max(self.max_timestamp, timestamp)
        self.base_timestamp = base
        self.count += 1
        return True

    def append_many(
        self,
        timestamp: int,
        values: Sequence[Payload | None],
        keys: Sequence[Payload | None] | None = None,
        start: int = 0,
        stop: int | None = None,
        rows: array[int] | None = None,
        *,
        timestamps: Sequence[int] | None = None,
        headers: Sequence[HeaderPairs] | None = None,
    ) -> int:
        """Takes rows [start, stop) of lists, or of those that `rows` names; the first index that was not taken.

        `timestamp` is every record's, unless `timestamps` has one for each. Lists that are too short are a ValueError.
        """
        for given in (keys, timestamps, headers):
            if given is not None and len(given) < len(values):
                raise ValueError("the lists have different lengths")
        picked, stop = _range(start, stop, rows, len(values))
        for index in range(start, stop):
            row = index if picked is None else picked[index]
            if not 0 <= row < len(values):
                raise ValueError(f"row {row} of {len(values)}")
            if not self.append(
                timestamp if timestamps is None else timestamps[row],
                None if keys is None else keys[row],
                values[row],
                () if headers is None else headers[row],
            ):
                return index
        return stop

    def append_columns(
        self, columns: Columns, start: int, stop: int, rows: array[int] | None = None, timestamp: int = -1
    ) -> int:
        """Takes rows [start, stop) of Arrow columns, or of those that `rows` names; the first index not taken.

        `timestamp` stands in where the columns have none.
        """
        picked, stop = _range(start, stop, rows, columns.rows)
        for index in range(start, stop):
            row = index if picked is None else picked[index]
            if not 0 <= row < columns.rows:
                raise ValueError(f"row {row} of {columns.rows}")
            own = None if columns.timestamp is None else columns.timestamp.at(row)
            if not self._append(
                timestamp if own is None else own,
                None if columns.key is None else columns.key.at(row),
                None if columns.value is None else columns.value.at(row),
                [] if columns.headers is None else list(columns.headers.at(row)),
            ):
                return index
        return stop

    def payload(self) -> memoryview:
        """The records so far. While the view lives, a record that needs more memory raises BufferError."""
        return memoryview(self._frame)[HEADER_BYTES:]

    def frame(self) -> bytearray:
        """The memory itself: 61 bytes for `write_header`, then the payload. Nothing can be appended afterwards."""
        self._closed = True
        return self._frame


def _packed(headers: HeaderPairs) -> list[tuple[bytes, Buffer | None]]:
    # Who is not taken here is handed in once more, so what can be gone through only once would have no headers then.
    if isinstance(headers, dict | Iterator):
        raise TypeError(f"headers are {PAIRS}")
    packed: list[tuple[bytes, Buffer | None]] = []
    for name, data in headers:
        if not isinstance(name, str):
            raise TypeError("the name of a header is text")
        packed.append((name.encode("utf-8", "surrogateescape"), None if data is None else payload_bytes(data)))
    return packed


def _range(start: int, stop: int | None, rows: Any, count: int) -> tuple[memoryview | None, int]:
    picked = None if rows is None else rows_view(rows)
    length = count if picked is None else len(picked)
    end = length if stop is None else stop
    if not 0 <= start <= end <= length:
        raise ValueError(f"[{start}, {end}) lies outside {length} rows")
    return picked, end
