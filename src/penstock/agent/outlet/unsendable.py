"""Records that no broker will ever take: found, told, and turned into dead letters. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from penstock.agent.portion import Headers, Parcel, places_in
from penstock.agent.routing.routing import ERROR_HEADER
from penstock.client.errors import ClientError, RecordTooLarge
from penstock.model.errors import INVALID_RECORD, INVALID_TIMESTAMP
from penstock.model.units import bytes_text

TOPIC_HEADER: Final = "agent.topic"
"""Where a dead letter would have gone."""

DEAD_LETTER_BYTES_MAX: Final = 256 << 10
DEAD_KEY_BYTES_MAX: Final = 4 << 10
ERROR_CHARACTERS_MAX: Final = 300
RECORD_OVERHEAD_BYTES: Final = 128
"""Lengths and varints of a record and the header of a batch for it alone, rounded up."""


def record_bytes(parcel: Parcel, row: int) -> int:
    """About what a record takes in a request of its own."""
    key = None if parcel.keys is None else parcel.keys[row]
    headers: Headers = () if parcel.headers is None else parcel.headers[row]
    size = sum(len(name) + len(value) + 10 for name, value in headers)
    return len(parcel.values[row]) + len(key or b"") + size + RECORD_OVERHEAD_BYTES


def too_large(parcel: Parcel, limit_bytes: int) -> list[int]:
    """Rows that are larger than a request may be."""
    # Records are small as a rule, and one look at the largest value says so.
    if parcel.keys is None and max(map(len, parcel.values), default=0) <= limit_bytes // 2:
        return []
    return [row for row in range(len(parcel.values)) if record_bytes(parcel, row) > limit_bytes]


def too_large_words(parcel: Parcel, row: int, limit_bytes: int) -> str:
    return f"{bytes_text(record_bytes(parcel, row))} are more than max.request.size allows ({bytes_text(limit_bytes)})"


def why_never(parcel: Parcel, row: int, failure: ClientError, limit_bytes: int) -> str | None:
    """Why a record that failed can never be sent; None when it may be tried again."""
    if isinstance(failure, RecordTooLarge):
        if failure.error is not None:
            return str(failure)
        # The producer refuses what comes after a record that is too large together with it.
        return too_large_words(parcel, row, limit_bytes) if record_bytes(parcel, row) > limit_bytes else None
    if failure.error == INVALID_RECORD:
        # The usual cause is a compacted topic; whoever has a key was only in bad company, unless all have one.
        keys = parcel.keys
        innocent = keys is not None and keys[row] is not None and None in keys
        return None if innocent else str(failure)
    if failure.error == INVALID_TIMESTAMP:
        return str(failure) if parcel.timestamps_ms is None else None
    if type(failure) is ClientError and len(parcel.values) == 1:
        return failure.why
    return None


def again(parcel: Parcel, rows: Sequence[int], failure: ClientError) -> list[Parcel]:
    """Rows to be tried again, in order. In two parcels when some of them cannot even be encoded: the one that is to
    blame ends up alone."""
    times = parcel.timestamps_ms
    if failure.error == INVALID_TIMESTAMP:
        # The topic wants no such time. An event with the time of its arrival is better than none.
        times = None
    middle = len(rows) // 2 if type(failure) is ClientError else 0
    parts = [part for part in (rows[:middle], rows[middle:]) if part]
    return [
        Parcel(
            parcel.topic,
            [parcel.values[row] for row in part],
            None if parcel.keys is None else [parcel.keys[row] for row in part],
            None if parcel.headers is None else [parcel.headers[row] for row in part],
            None if times is None else [times[row] for row in part],
            places_in(part, parcel.nulls),
        )
        for part in parts
    ]


def dead_letters(parcel: Parcel, rows: Sequence[int], why: Sequence[str], topic: str) -> Parcel:
    """Rows as dead letters: cut to a size that every topic takes, and with the reason."""
    headers: list[Headers] = []
    for row, words in zip(rows, why, strict=True):
        own: Headers = () if parcel.headers is None else parcel.headers[row]
        small = [(name, value) for name, value in own if len(value) <= DEAD_KEY_BYTES_MAX]
        reason = words[:ERROR_CHARACTERS_MAX].encode()
        headers.append([*small, (TOPIC_HEADER, parcel.topic.encode()), (ERROR_HEADER, reason)])
    keys: list[bytes | None] | None = None
    if parcel.keys is not None:
        keys = [
            key if key is None or len(key) <= DEAD_KEY_BYTES_MAX else None for key in map(parcel.keys.__getitem__, rows)
        ]
    values = [bytes(parcel.values[row][:DEAD_LETTER_BYTES_MAX]) for row in rows]
    return Parcel(topic, values, keys, headers, None, places_in(rows, parcel.nulls))
