"""Rows of a source that break a rule become its dead letters: the record's place and key, and the row as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from penstock.spark.lake.fitting import row_as_json
from penstock.spark.lake.judging import BROKEN
from penstock.spark.values.dead_letters import DeadLetters
from penstock.spark.values.letters import DeadLetter

if TYPE_CHECKING:
    import pyarrow as pa

HIDDEN: Final = "__penstock_letter"
"""Before the names of metadata columns: those of a row that are there for its letter alone."""


def deliver_broken(
    batch: pa.RecordBatch, rules: Sequence[tuple[int, str]], letters: str, settings: Mapping[str, str]
) -> None:
    """Those that break one of `rules` (bit, words) are safe where letters go when this returns."""
    import pyarrow as pa
    import pyarrow.compute as pc

    mask = sum(1 << bit for bit, _ in rules)
    bits = batch.column(BROKEN)
    broken = pc.not_equal(pc.bit_wise_and(bits, pa.scalar(mask, pa.int64())), pa.scalar(0, pa.int64()))
    rows = pc.indices_nonzero(broken).to_pylist()
    if not rows:
        return
    names = batch.schema.names
    shown = batch.select([name for name in names if name != BROKEN and not name.startswith(HIDDEN)])
    origin = batch.select([name for name in names if name.startswith(HIDDEN)])
    origin = origin.rename_columns([name.removeprefix(f"{HIDDEN}_") for name in origin.schema.names])
    found = []
    for at in rows:
        (record,) = origin.slice(at, 1).to_pylist()
        words = next(words for bit, words in rules if bits[at].as_py() >> bit & 1)
        value = row_as_json(shown, at).encode()
        found.append(DeadLetter(**record, value=value, headers=(), error=words))
    DeadLetters.of(letters, settings).deliver(found)
