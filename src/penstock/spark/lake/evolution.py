"""How a batch's columns meet a table's: what files hold, what the table must become, what may not fit. Pure.

Columns meet by name, whatever their order and, as in Spark, their case. A column that the table lacks is added. One
whose type differs is written as the table has it where every value of the one is a value of the other (int into long).
Where it is the other way round the table is widened if its format can (Iceberg); if it cannot (Delta), each row must
fit by its value: those that do not go to dead letters, or the batch is refused before anything is written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
from pyarrow import types

from penstock.spark.errors import BadOption
from penstock.spark.lake.store import CannotEvolve

CanWiden = Callable[[pa.DataType, pa.DataType], bool]

_WHOLE: Final = (pa.int8(), pa.int16(), pa.int32(), pa.int64())


@dataclass(frozen=True, slots=True)
class Misfit:
    """A column whose values the table may not be able to hold."""

    column: str
    batch: pa.DataType
    table: pa.DataType | None
    """None: the table has no such column and may get none."""

    def __str__(self) -> str:
        if self.table is None:
            return f"{self.column} is {self.batch} and the table has no such column"
        return f"{self.column} is {self.batch} and the table has {self.table}"


@dataclass(frozen=True, slots=True)
class Fit:
    """How the rows of a batch become rows of a table."""

    takes: tuple[int, ...]
    """Which of the batch's columns the files hold; -1 for one that it lacks: null."""
    files: pa.Schema
    """What they are called and their types in the files, in the same order."""
    table: pa.Schema
    """What the table's schema must have before the files are committed."""
    misfits: tuple[Misfit, ...]


def plan_fit(batch: pa.Schema, table: pa.Schema | None, *, can_widen: CanWiden, add: bool) -> Fit:
    """`table` is None for one that is to be made; `add` says whether columns may be added."""
    _refuse_twins(batch.names)
    there = {field.name.lower(): field for field in table or ()}
    takes, files, grown, misfits = [], [], {}, []
    for index, field in enumerate(batch):
        found = there.get(field.name.lower())
        if types.is_null(field.type):
            # All of it is null: what a table says of a column that a file lacks.
            continue
        if found is None and table is not None and not add:
            misfits.append(Misfit(field.name, field.type, None))
            continue
        held = _meet(field.type, found.type, can_widen, add) if found is not None else (field.type, field.type)
        if held is None:
            assert found is not None, "a new column meets nothing"
            misfits.append(Misfit(found.name, field.type, found.type))
            held = (found.type, found.type)
        name = found.name if found is not None else field.name
        takes.append(index)
        files.append(pa.field(name, held[0]))
        grown[name] = pa.field(name, held[1])
    named = {field.name.lower() for field in batch}
    for field in table or ():
        if not field.nullable and field.name.lower() not in named:
            raise CannotEvolve(f"the table's column {field.name} may not be null and the batch has no such column")
    if not takes:
        raise CannotEvolve("the batch has no column with values: a table needs one")
    before = [grown.pop(field.name, field) for field in table or ()]
    return Fit(tuple(takes), pa.schema(files), pa.schema([*before, *grown.values()]), tuple(misfits))


def with_nulls(fit: Fit, columns: Sequence[str]) -> Fit:
    """The same with those columns of the table, by which it is split, where the batch lacks them."""
    lacking = [fit.table.field(name) for name in columns if name in fit.table.names and name not in fit.files.names]
    takes = (*fit.takes, *(-1 for _ in lacking))
    return replace(fit, takes=takes, files=pa.schema([*fit.files, *lacking]))


def needs(have: pa.Schema, wanted: pa.Schema) -> list[pa.Field]:
    """The fields of `wanted` that `have` lacks or has with another type."""
    there = {field.name: field.type for field in plain(have)}
    return [field for field in plain(wanted) if there.get(field.name) != field.type]


def plain(schema: pa.Schema, *, small_integers: bool = True) -> pa.Schema:
    """As tables keep it: everything nullable, times in UTC and microseconds, no metadata; without `small_integers`,
    those of 8 and 16 bits have 32."""
    return pa.schema([pa.field(field.name, _plain(field.type, small_integers)) for field in schema])


def _refuse_twins(names: Sequence[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            raise BadOption(f"the batch has two columns called {name}: rename one (case does not tell them apart)")
        seen.add(name.lower())


def _meet(
    batch: pa.DataType, table: pa.DataType, can_widen: CanWiden, add: bool
) -> tuple[pa.DataType, pa.DataType] | None:
    """What files hold and what the table must have; None when values may not fit."""
    if batch == table or _always_fits(batch, table):
        return table, table
    if types.is_struct(batch) and types.is_struct(table):
        return _meet_structs(batch, table, can_widen, add)
    if types.is_list(batch) and types.is_list(table):
        inner = _meet(batch.value_type, table.value_type, can_widen, add)
        return inner and (pa.list_(inner[0]), pa.list_(inner[1]))
    if types.is_map(batch) and types.is_map(table) and batch.key_type == table.key_type:
        inner = _meet(batch.item_type, table.item_type, can_widen, add)
        return inner and (pa.map_(batch.key_type, inner[0]), pa.map_(batch.key_type, inner[1]))
    return (batch, batch) if can_widen(table, batch) else None


def _meet_structs(
    batch: pa.DataType, table: pa.DataType, can_widen: CanWiden, add: bool
) -> tuple[pa.DataType, pa.DataType] | None:
    """Files hold the whole struct, so that no reader has to add members."""
    theirs = {batch.field(i).name: batch.field(i).type for i in range(batch.num_fields)}
    held, grown = [], []
    for i in range(table.num_fields):
        field = table.field(i)
        met = _meet(theirs.pop(field.name, field.type), field.type, can_widen, add)
        if met is None:
            return None
        held.append(pa.field(field.name, met[0]))
        grown.append(pa.field(field.name, met[1]))
    if theirs and not add:
        return None
    new = [pa.field(name, kind) for name, kind in theirs.items()]
    return pa.struct(held + new), pa.struct(grown + new)


def _always_fits(batch: pa.DataType, table: pa.DataType) -> bool:
    """Whether every value of the one is a value of the other, unchanged."""
    if batch in _WHOLE:
        if table in _WHOLE:
            return bool(batch.bit_width <= table.bit_width)
        if types.is_decimal(table):
            return bool(table.precision - table.scale >= len(str(1 << batch.bit_width - 1)))
        exact_bits = {pa.float64(): 32, pa.float32(): 16}
        return bool(batch.bit_width <= exact_bits.get(table, 0))
    if types.is_decimal(batch) and types.is_decimal(table):
        grows = table.scale - batch.scale
        return bool(grows >= 0 and table.precision - batch.precision >= grows)
    return bool(types.is_null(batch) or (batch == pa.float32() and table == pa.float64()))


def _plain(kind: pa.DataType, small: bool) -> pa.DataType:
    if not small and kind in _WHOLE[:2]:
        return pa.int32()
    if types.is_timestamp(kind):
        return pa.timestamp("us", "UTC" if kind.tz else None)
    if types.is_large_string(kind) or types.is_string_view(kind):
        return pa.string()
    if types.is_large_binary(kind) or types.is_fixed_size_binary(kind) or types.is_binary_view(kind):
        return pa.binary()
    if types.is_struct(kind):
        return pa.struct([pa.field(field.name, _plain(field.type, small)) for field in kind.fields])
    if types.is_map(kind):
        return pa.map_(_plain(kind.key_type, small), _plain(kind.item_type, small))
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return pa.list_(_plain(kind.value_type, small))
    return kind
