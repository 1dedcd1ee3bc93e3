"""A producer for lists whose records all have the same headers, as the lines of a file have.

The kernel packs headers from Python objects, record by record, and that is more than half of the cost of a short line.
Columns it reads as they lie. So a list whose headers are one object over and over is handed over as columns: the values
joined, and the headers repeated by a multiplication of bytes.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Any, Final, TypeAlias

from penstock.client.producer import BulkDelivery, Producer
from penstock.client.producer.bulk import ColumnRows
from penstock.kernels import Columns
from penstock.model.ids import uuid_text

Column: TypeAlias = tuple[None, memoryview, bytes]
"""Validity, offsets, data."""

ROWS_MIN: Final = 32
"""Fewer are not worth the columns."""

_ROWS_REMEMBERED_MAX: Final = 16_384
_RECORD_OVERHEAD_BYTES: Final = 12


class ColumnProducer(Producer):
    """A `Producer` in every respect; lists with `headers=[one] * n` cost it a third."""

    def send_batch(
        self,
        topic: str,
        values: Sequence[Any],
        *,
        keys: Sequence[Any] | None = None,
        headers: Sequence[Any] | None = None,
        timestamps: Sequence[int] | None = None,
        partition: int | None = None,
    ) -> BulkDelivery:
        """As `Producer.send_batch`, byte for byte."""
        rows = None
        if headers and len(values) >= ROWS_MIN and _same_throughout(headers, len(values)):
            rows = column_rows(values, keys, headers[0], timestamps, self._clock.now_ms())
        if rows is None:
            return super().send_batch(
                topic, values, keys=keys, headers=headers, timestamps=timestamps, partition=partition
            )
        self._start_to_send()
        return self._send_rows(topic, rows, partition)

    def topic_id(self, topic: str) -> str | None:
        """As brokers told it last; None for a topic that is not known."""
        known = self._view.cached(topic)
        return None if known is None else uuid_text(known.id)


def column_rows(
    values: Sequence[Any], keys: Sequence[Any] | None, headers: Any, timestamps: Sequence[int] | None, now_ms: int
) -> ColumnRows | None:
    """The records as columns; None for what has nulls in it, or is not bytes: that is for the usual way to take."""
    count = len(values)
    for given in (keys, timestamps):
        if given is not None and len(given) != count:
            return None
    try:
        value, key, repeated = _joined(values), None if keys is None else _joined(keys), _headers(headers, count)
        stamps = None if timestamps is None else memoryview(array("q", timestamps))
    except (TypeError, ValueError, OverflowError):
        return None
    if value is None or (keys is not None and key is None):
        return None
    size = len(value[2]) + (0 if key is None else len(key[2])) + len(repeated[2][2]) + len(repeated[3][2])
    columns = Columns(count, key=key, value=value, timestamp=stamps, headers=repeated)
    return ColumnRows(columns, size + _RECORD_OVERHEAD_BYTES * count, keys, values, None, now_ms)


def _same_throughout(headers: Sequence[Any], count: int) -> bool:
    """Whether it is one object over and over. `count` looks at identity first, so that it costs nothing then."""
    if type(headers) is not list or len(headers) != count:
        return False
    first = headers[0]
    return bool(first) and first is headers[-1] and first is headers[count // 2] and headers.count(first) == count


def _joined(items: Sequence[Any]) -> Column | None:
    data = b"".join(items)
    offsets = array("i", accumulate(map(len, items), initial=0))
    # A view of wider items has more bytes than its length tells.
    return (None, memoryview(offsets), data) if offsets[-1] == len(data) else None


def _headers(headers: Sequence[tuple[str, bytes]], count: int) -> tuple[None, memoryview, Column, Column]:
    """A list of the same pairs in each row."""
    names = [str.encode(name, "utf-8", "surrogateescape") for name, _ in headers]
    datas = [bytes(memoryview(data)) for _, data in headers]
    return None, _offsets((len(names),), count), _repeated(names, count), _repeated(datas, count)


def _repeated(items: Sequence[bytes], count: int) -> Column:
    return None, _offsets(tuple(map(len, items)), count), b"".join(items) * count


def _offsets(lengths: tuple[int, ...], times: int) -> memoryview:
    """Where items of these lengths begin when they follow one another so many times, and where the last ends."""
    if times > _ROWS_REMEMBERED_MAX:
        return _count_offsets(lengths, times)
    # A few sizes serve all: columns may have more offsets than rows.
    return _remembered_offsets(lengths, max(1 << (times - 1).bit_length(), 1_024))


def _count_offsets(lengths: tuple[int, ...], times: int) -> memoryview:
    width, step = len(lengths), sum(lengths)
    offsets = array("i", bytes(4 * (width * times + 1)))
    for index, start in enumerate(accumulate(lengths[:-1], initial=0)):
        if step:
            offsets[index : width * times : width] = array("i", range(start, start + step * times, step))
    offsets[width * times] = step * times
    return memoryview(offsets)


_remembered_offsets = lru_cache(maxsize=16)(_count_offsets)
