"""Tables that follow changes, in plain Python: changes are put in their order and done one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
from hypothesis import strategies as st

from penstock.spark.lake.keyed.changes import DELETE, IGNORED, UPSERT, ChangeColumns, columns_of
from penstock.spark.lake.keyed.envelopes import UNAVAILABLE
from penstock.spark.lake.keyed.settings import KeyedSettings

BY_COLUMN = KeyedSettings(("id", "part"), sequence_by="at", cdc="debezium")
BY_OFFSET = KeyedSettings(("id", "part"), cdc="debezium")

USER = [("id", pa.int64()), ("part", pa.string()), ("name", pa.string()), ("blob", pa.binary()), ("n", pa.int32())]
ROWS_BY_COLUMN = pa.schema(
    [*USER, ("_seq", pa.int64()), ("_topic", pa.string()), ("_partition", pa.int32()), ("_offset", pa.int64())]
)
ROWS_BY_OFFSET = pa.schema([*USER, ("_partition", pa.int32()), ("_offset", pa.int64())])


def columns(*, in_log_order: bool) -> ChangeColumns:
    return columns_of(BY_OFFSET, ROWS_BY_OFFSET) if in_log_order else columns_of(BY_COLUMN, ROWS_BY_COLUMN)


@dataclass(frozen=True)
class Change:
    id: int
    part: str | None
    name: str | None
    blob: bytes | None
    n: int | None
    seq: int
    partition: int
    offset: int
    kind: int = UPSERT

    @property
    def key(self) -> tuple[int, str | None]:
        return self.id, self.part

    @property
    def order(self) -> tuple[int, str, int, int]:
        return self.seq, "t", self.partition, self.offset

    def row(self) -> dict[str, object]:
        return {
            "id": self.id,
            "part": self.part,
            "name": self.name,
            "blob": self.blob,
            "n": self.n,
            "_seq": self.seq,
            "_topic": "t",
            "_partition": self.partition,
            "_offset": self.offset,
            "_kind": self.kind,
            "_seen": 1,
        }


def as_arrow(changes: Iterable[Change], of: ChangeColumns) -> pa.Table:
    return pa.Table.from_pylist([each.row() for each in changes], schema=of.schema)


def truth(changes: Iterable[Change]) -> dict[tuple[int, str | None], tuple[object, ...]]:
    """Key → (name, blob, n) of what is there when all was done, in the order of changes."""
    found: dict[tuple[int, str | None], tuple[object, ...]] = {}
    for each in sorted(changes, key=lambda change: change.order):
        if each.kind == DELETE:
            found.pop(each.key, None)
        elif each.kind == UPSERT:
            name, blob, _ = found.get(each.key, (UNAVAILABLE, UNAVAILABLE.encode(), None))
            found[each.key] = (
                name if each.name == UNAVAILABLE else each.name,
                blob if each.blob == UNAVAILABLE.encode() else each.blob,
                each.n,
            )
    return found


def told(rows: pa.Table) -> dict[tuple[int, str | None], tuple[object, ...]]:
    """The same of rows; a key that is there twice is a mistake."""
    found = {(row["id"], row["part"]): (row["name"], row["blob"], row["n"]) for row in rows.to_pylist()}
    assert len(found) == rows.num_rows, "a key is there twice"
    return found


@st.composite
def histories(draw: st.DrawFn, *, in_log_order: bool, gaps: bool, most: int = 40) -> list[Change]:
    """Changes of few keys as a topic of three partitions has them, in the order of its offsets.

    In the log's order a key keeps its partition; else sequences come early and late. `gaps` are values left out.
    """
    texts = st.sampled_from(["a", "b", "", None, *([UNAVAILABLE] * 2 if gaps else [])])
    made: list[Change] = []
    offsets = [0, 0, 0]
    for number in range(draw(st.integers(0, most))):
        key = draw(st.tuples(st.integers(0, 4), st.sampled_from(["", "x", "1:"])))
        partition = (key[0] + len(key[1])) % 3 if in_log_order else draw(st.integers(0, 2))
        text = draw(texts)
        blob = draw(texts)
        seq = offsets[partition] if in_log_order else max(0, number + draw(st.integers(-12, 3)))
        kind = draw(st.sampled_from([UPSERT] * 5 + [DELETE] * 2 + [IGNORED]))
        value = None if kind == DELETE else text
        made.append(
            Change(
                *key,
                value,
                None if kind == DELETE or blob is None else blob.encode(),
                number,
                seq,
                partition,
                offsets[partition],
                kind,
            )
        )
        offsets[partition] += draw(st.integers(1, 3))
    return made


def cut(draw: st.DrawFn, changes: Sequence[Change]) -> list[list[Change]]:
    """The same, in batches."""
    places = sorted(draw(st.lists(st.integers(0, len(changes)), max_size=4)))
    return [list(changes[start:end]) for start, end in zip([0, *places], [*places, len(changes)], strict=True)]
