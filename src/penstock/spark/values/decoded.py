"""What a decoder is and what it answers; decoders import this and nothing of one another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Decoded:
    """What became of some values: every row is in `columns` or in `bad`, never in both.

    `columns` holds the good rows in their order; `good` their row numbers (int64), None when all rows are good. `bad`
    has a row number and a reason each, in order of rows.
    """

    columns: pa.RecordBatch
    good: pa.Array | None
    bad: list[tuple[int, str]]


class ValueDecoder(Protocol):
    """Turns values into columns. One per task; keeps nothing between calls that changes an answer."""

    schema: pa.Schema

    def decode(self, values: pa.Array) -> Decoded:
        """`values` is an Arrow array of binary; a null in it is a tombstone."""
        ...


def settle(rows: int, columns: pa.RecordBatch, bad: list[tuple[int, str]]) -> Decoded:
    """The answer when `columns` holds the rows that are not bad, in order."""
    if not bad:
        return Decoded(columns, None, [])
    bad.sort()
    refused = {row for row, _ in bad}
    good = pa.array([row for row in range(rows) if row not in refused], pa.int64())
    return Decoded(columns, good, bad)


def shortened(found: Any, most: int = 60) -> str:
    """What was found, short enough for an error."""
    text = found.decode("utf-8", "replace") if isinstance(found, bytes) else str(found)
    text = text.replace("\n", "\\n").replace("\r", "\\r")
    return text if len(text) <= most else f"{text[:most]}… ({len(text):,} characters)"
