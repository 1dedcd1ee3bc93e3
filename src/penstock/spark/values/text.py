"""Values as one column: text, checked to be UTF-8, and raw bytes, which cannot be wrong."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from penstock.spark.values.decoded import Decoded, settle, shortened


class TextDecoder:
    """One column of text."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema

    def decode(self, values: pa.Array) -> Decoded:
        texts, bad = texts_of(values)
        return settle(len(values), pa.RecordBatch.from_arrays([texts], schema=self.schema), bad)


class RawDecoder:
    """One column of bytes."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema

    def decode(self, values: pa.Array) -> Decoded:
        return Decoded(pa.RecordBatch.from_arrays([values], schema=self.schema), None, [])


def texts_of(values: pa.Array) -> tuple[pa.Array, list[tuple[int, str]]]:
    """The values that are UTF-8, in order, as an array of strings, and a reason for each that is not."""
    try:
        return pc.cast(values, pa.string()), []
    except pa.ArrowInvalid:
        bad = [(row, why) for row, value in enumerate(values.to_pylist()) if (why := not_text(value)) is not None]
        refused = {row for row, _ in bad}
        kept = pa.array([row for row in range(len(values)) if row not in refused], pa.int64())
        return pc.cast(values.take(kept), pa.string()), bad


def not_text(value: bytes | None) -> str | None:
    """Why a value is not UTF-8; None when it is, or when there is none."""
    try:
        if value is not None:
            value.decode()
        return None
    except UnicodeDecodeError as wrong:
        assert value is not None
        return f"not UTF-8: byte {value[wrong.start]:#04x} at {wrong.start}, in {shortened(value)}"
