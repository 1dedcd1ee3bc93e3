"""What a change is: a row with its place in the order of changes. Columns are Arrow's.

    the table's own columns     values of the row, `keys` among them; of a delete only the keys count
    _seq                        what `sequence_by` gave, unless that is the offset
    _topic _partition _offset   the record it came in; a table that follows the offsets keeps no topic
    _kind                       UPSERT, DELETE, or what only counts: IGNORED
    _seen                       how many changes it stands for: reduction adds up those it leaves out

All but the last two are columns of the table: every row says which record it is from, and by that an older change that
comes late is known, whichever batch it comes in. Later is who is greater by (_seq, _topic, _partition, _offset).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from penstock.spark.errors import BadOption, SparkRoomError
from penstock.spark.lake.keyed.envelopes import DEBEZIUM, FLAT, UNAVAILABLE
from penstock.spark.lake.keyed.settings import OFFSET, KeyedSettings

SEQUENCE: Final = "_seq"
TOPIC: Final = "_topic"
PARTITION: Final = "_partition"
KIND: Final = "_kind"
SEEN: Final = "_seen"

UPSERT: Final = 0
DELETE: Final = 1
IGNORED: Final = 2

_PLACE: Final = {TOPIC: pa.string(), PARTITION: pa.int32(), OFFSET: pa.int64()}


def unavailable_list(kind: pa.DataType) -> list[str] | list[int] | None:
    """What Debezium writes for a large list that did not change; None for what cannot be left out."""
    if not (types.is_list(kind) or types.is_large_list(kind)):
        return None
    if types.is_string(kind.value_type):
        return [UNAVAILABLE]
    if types.is_integer(kind.value_type) or types.is_floating(kind.value_type):
        return list(UNAVAILABLE.encode())
    return None


class UnfitChange(SparkRoomError):
    """A change that cannot be placed: without a key, without a sequence, or twice at one place of the order."""


@dataclass(frozen=True, slots=True)
class ChangeColumns:
    """The columns of changes of one table. Pickles."""

    keys: tuple[str, ...]
    rows: pa.Schema
    """The table's columns, with those that say where a row is from."""
    in_log_order: bool
    may_lack: bool = False
    """Whether a change may come without values that did not change, as Debezium's do."""

    @property
    def places(self) -> tuple[str, ...]:
        """Columns of the table that are not the user's."""
        return (PARTITION, OFFSET) if self.in_log_order else (SEQUENCE, TOPIC, PARTITION, OFFSET)

    @property
    def order(self) -> tuple[str, ...]:
        """The greater is the later. In the log's order all changes of a key are of one partition."""
        return (OFFSET,) if self.in_log_order else self.places

    @property
    def values(self) -> tuple[str, ...]:
        """The user's columns that are no keys."""
        return tuple(name for name in self.rows.names if name not in (*self.keys, *self.places))

    def kind(self, name: str) -> pa.DataType:
        return self.rows.field(name).type

    @property
    def lacking(self) -> tuple[str, ...]:
        """Columns whose values may be left out: only texts, bytes and lists are so large."""
        kinds = {field.name: field.type for field in self.rows}
        large = [name for name in self.values if _can_lack(kinds[name])]
        return tuple(large) if self.may_lack else ()

    @property
    def schema(self) -> pa.Schema:
        """Of changes."""
        return pa.schema([*self.rows, pa.field(KIND, pa.int8()), pa.field(SEEN, pa.int64())])


def _can_lack(kind: pa.DataType) -> bool:
    return types.is_string(kind) or types.is_binary(kind) or unavailable_list(kind) is not None


def columns_of(settings: KeyedSettings, rows: pa.Schema) -> ChangeColumns:
    """For a table of these columns; `BadOption` when they cannot be those of a keyed table."""
    lacking = [name for name in settings.keys if name not in rows.names]
    if lacking:
        raise BadOption(f"keys names {', '.join(lacking)}, and the rows have {', '.join(rows.names)}")
    made = ChangeColumns(settings.keys, rows, settings.in_log_order, settings.cdc in (DEBEZIUM, FLAT))
    for name in settings.keys:
        if not can_be_key(rows.field(name).type):
            raise BadOption(
                f"column {name} is {rows.field(name).type}, which cannot be a key: whole numbers, text, bytes, true or "
                "false, dates and times can; cast it in a step"
            )
    for name in made.places:
        if name not in rows.names:
            raise BadOption(f"rows that change a table by key need the column {name}, and have {', '.join(rows.names)}")
        kind = _PLACE.get(name, rows.field(name).type)
        if rows.field(name).type != kind:
            raise BadOption(f"column {name} is {rows.field(name).type} where it has to be {kind}: name yours otherwise")
    if not settings.in_log_order and not can_be_sequence(rows.field(SEQUENCE).type):
        raise BadOption(
            f"sequence_by = {settings.sequence_by!r} gives {rows.field(SEQUENCE).type}: whole numbers, decimals, text, "
            "dates and times have an order that is the same everywhere"
        )
    return made


def can_be_key(kind: pa.DataType) -> bool:
    return bool(
        types.is_integer(kind)
        or types.is_string(kind)
        or types.is_binary(kind)
        or types.is_boolean(kind)
        or types.is_date(kind)
        or types.is_timestamp(kind)
        or (types.is_decimal(kind) and kind.scale == 0)
    )


def can_be_sequence(kind: pa.DataType) -> bool:
    return bool(
        types.is_integer(kind)
        or types.is_string(kind)
        or types.is_date(kind)
        or types.is_timestamp(kind)
        or types.is_decimal(kind)
    )


def key_of_each(rows: pa.Table | pa.RecordBatch, keys: Sequence[str]) -> pa.Array:
    """One value a row that two rows share when all their keys are equal; null where a key is null."""
    texts = [_bytes(_one_array(rows.column(name))) for name in keys]
    # Lengths keep ("ab", "c") and ("a", "bc") apart.
    parts = [part for text in texts for part in (_length(text), text)]
    return pc.binary_join_element_wise(*parts, pa.scalar(b":", pa.binary()))


def _length(text: pa.Array) -> pa.Array:
    return pc.binary_length(text).cast(pa.string()).cast(pa.binary())


def _bytes(column: pa.Array) -> pa.Array:
    kind = column.type
    if types.is_binary(kind):
        return column
    if types.is_timestamp(kind):
        column = column.cast(pa.timestamp("us", kind.tz)).cast(pa.int64())
    elif types.is_date(kind):
        column = column.cast(pa.date32()).cast(pa.int32())
    return column.cast(pa.string()).cast(pa.binary())


def _one_array(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
