"""The latest change of each key. pyarrow only; what wins does not depend on how changes come in batches.

Where the latest change lacks a value (Debezium leaves out large ones that did not change), the value of the latest
change before it that has it counts. So until all changes of a key are known, `reduced` keeps for each of its columns
the latest change that has a value, beside the latest of all; `settled` puts them together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from penstock.spark.lake.keyed.changes import (
    DELETE,
    IGNORED,
    KIND,
    PARTITION,
    SEEN,
    ChangeColumns,
    UnfitChange,
    key_of_each,
    unavailable_list,
)
from penstock.spark.lake.keyed.envelopes import UNAVAILABLE, UNAVAILABLE_BYTES

FROM_TABLE: Final = "__from_table"
"""Whether a change is what the table had before: of two at one place of the order, it is the older."""

_KEY: Final = "__key"
_RANK: Final = "__rank"
_AT: Final = "__at"
_SAID: Final = "__said"


def check_whole(changes: pa.Table | pa.RecordBatch, columns: ChangeColumns) -> None:
    """`UnfitChange` for changes without a key or a sequence, naming one. What is ignored needs neither."""
    counts = pc.not_equal(changes.column(KIND), IGNORED)
    for name in (*columns.keys, columns.order[0]):
        lacking = pc.and_(counts, changes.column(name).is_null())
        if pc.any(lacking).as_py():
            first = changes.filter(lacking).slice(0, 1)
            what = "key" if name in columns.keys else "sequence"
            raise UnfitChange(
                f"{pc.sum(lacking).as_py()} changes have no {what} ({name} is null), the first at {_place(first)}: "
                f'a table by key cannot hold them. Leave such rows out, as in ignore_when = "{name} is null", or give '
                "another sequence_by"
                if what == "sequence"
                else f"{pc.sum(lacking).as_py()} changes have no key ({name} is null), the first at {_place(first)}: a "
                f'table by key cannot hold them. Leave such rows out, as in ignore_when = "{name} is null"'
            )


def reduced(changes: pa.Table, columns: ChangeColumns) -> pa.Table:
    """The changes that can still decide something; `_seen` of the latest of a key counts those that were left out.

    May be applied to any part of the changes, and again to what came of several.
    """
    if changes.num_rows == 0:
        return changes
    ranked = _ranked(changes, columns)
    total = ranked.group_by(_KEY).aggregate([(_RANK, "max"), (SEEN, "sum")])
    latest = ranked.take(total.column(f"{_RANK}_max"))
    kept = [_with(latest, SEEN, total.column(f"{SEEN}_sum"))]
    open_columns = [name for name in columns.lacking if pc.any(_lacks(latest, name)).as_py()]
    if open_columns:
        others = pc.unique(
            pa.chunked_array(
                [chunk for name in open_columns for chunk in _latest_with(ranked, latest, name).chunks], pa.int64()
            )
        )
        beside = ranked.take(others)
        kept.append(_with(beside, SEEN, pa.chunked_array([pa.repeat(pa.scalar(0, pa.int64()), beside.num_rows)])))
    return pa.concat_tables(kept).select(changes.column_names)


def settled(changes: pa.Table, columns: ChangeColumns) -> pa.Table:
    """One row a key, of all changes of it: the latest, with the values that it lacks from those before it."""
    if changes.num_rows == 0:
        return changes
    ranked = _ranked(changes, columns)
    total = ranked.group_by(_KEY).aggregate([(_RANK, "max"), (SEEN, "sum")])
    latest = _with(ranked.take(total.column(f"{_RANK}_max")), SEEN, total.column(f"{SEEN}_sum"))
    for name in columns.lacking:
        if pc.any(_lacks(latest, name)).as_py():
            latest = _filled(ranked, latest, name)
    return latest.select(changes.column_names)


def _ranked(changes: pa.Table, columns: ChangeColumns) -> pa.Table:
    """In their order, each with its key's number and its rank. Refuses changes whose order nobody could tell."""
    if FROM_TABLE in changes.column_names:
        origin = changes.column(FROM_TABLE)
    else:
        origin = pa.chunked_array([pa.repeat(False, changes.num_rows)])
    keys = key_of_each(changes, columns.keys).dictionary_encode().indices
    # Of equals the one from the table comes first, so the one of the batch wins.
    given = changes.append_column(_KEY, keys).append_column(_AT, pc.cast(pc.invert(origin), pa.int8()))
    # A row that another engine wrote says not where it is from: it is older than any change.
    given = given.append_column(_SAID, pc.cast(given.column(columns.order[0]).is_valid(), pa.int8()))
    found = given.sort_by([(name, "ascending") for name in (_KEY, _SAID, *columns.order, _AT)])
    _check_apart(found, columns)
    if columns.in_log_order:
        _check_stays(found, columns)
    return found.append_column(_RANK, pa.array(range(found.num_rows), pa.int64()))


def _check_apart(found: pa.Table, columns: ChangeColumns) -> None:
    """Neighbours in the order that are of one key and at one place came of one record."""
    if found.num_rows < 2:
        return
    one, other = found.slice(0, found.num_rows - 1), found.slice(1)
    same = pc.equal(one.column(_KEY), other.column(_KEY))
    for name in (*columns.order, _AT):
        same = pc.and_(same, pc.fill_null(pc.equal(one.column(name), other.column(name)), False))
    if pc.any(same).as_py():
        first = one.filter(same).slice(0, 1)
        named = {name: first.column(name)[0].as_py() for name in columns.keys}
        raise UnfitChange(
            f"the record at {_place(first)} gave two rows of the key {named}: nobody can tell which is the later. Let "
            "the steps between topic and table give one row a record, or add a column that tells them apart to keys"
        )


def _check_stays(found: pa.Table, columns: ChangeColumns) -> None:
    of_keys = found.group_by(_KEY).aggregate([(PARTITION, "min"), (PARTITION, "max")])
    moved = pc.fill_null(pc.not_equal(of_keys.column(f"{PARTITION}_min"), of_keys.column(f"{PARTITION}_max")), False)
    if pc.any(moved).as_py():
        number = of_keys.filter(moved).column(_KEY)[0]
        rows = found.filter(pc.equal(found.column(_KEY), number))
        named = {name: rows.column(name)[0].as_py() for name in columns.keys}
        partitions = sorted(pc.unique(rows.column(PARTITION)).drop_null().to_pylist())
        raise UnfitChange(
            f"the key {named} has changes in partitions {', '.join(map(str, partitions))}: offsets of different "
            "partitions have no order. Give sequence_by a column that orders changes, or let producers send all "
            "changes of a key to one partition"
        )


def _latest_with(ranked: pa.Table, latest: pa.Table, name: str) -> pa.ChunkedArray:
    """Ranks of the latest changes that have a value of a column, for the keys whose latest change has none."""
    open_keys = latest.filter(_lacks(latest, name)).column(_KEY)
    having = pc.and_(pc.is_in(ranked.column(_KEY), value_set=in_one_piece(open_keys)), pc.invert(_lacks(ranked, name)))
    found = ranked.filter(having).group_by(_KEY).aggregate([(_RANK, "max")]).column(f"{_RANK}_max")
    return found if isinstance(found, pa.ChunkedArray) else pa.chunked_array([found])


def _filled(ranked: pa.Table, latest: pa.Table, name: str) -> pa.Table:
    """With the values that the latest changes lack; where a delete came before, or nothing, they stay as they are."""
    ranks = _latest_with(ranked, latest, name)
    before = ranked.take(ranks)
    before = before.filter(pc.not_equal(before.column(KIND), DELETE))
    where = pc.index_in(in_one_piece(latest.column(_KEY)), value_set=in_one_piece(before.column(_KEY)))
    lacking = pc.and_(_lacks(latest, name), where.is_valid())
    values = in_one_piece(before.column(name)).take(where) if before.num_rows else None
    if values is None:
        return latest
    return _with(latest, name, pc.if_else(in_one_piece(lacking), values, in_one_piece(latest.column(name))))


def _lacks(rows: pa.Table, name: str) -> pa.ChunkedArray:
    """Whether the value of a column was left out. A delete has no values, and lacks none."""
    column = rows.column(name)
    if types.is_string(column.type):
        found = pc.equal(column, UNAVAILABLE)
    elif (left_out := unavailable_list(column.type)) is not None:
        found = _equals_list(column, left_out)
    else:
        found = pc.or_(pc.equal(column, UNAVAILABLE.encode()), pc.equal(column, UNAVAILABLE_BYTES))
    return pc.and_(pc.fill_null(found, False), pc.not_equal(rows.column(KIND), DELETE))


def _equals_list(column: pa.ChunkedArray, wanted: Sequence[object]) -> pa.ChunkedArray:
    """Lists are compared one by one, where any is as long."""
    as_long = pc.equal(pc.list_value_length(column), len(wanted))
    if not pc.any(as_long).as_py():
        return as_long
    return pa.chunked_array([pa.array([value == wanted for value in column.to_pylist()], pa.bool_())])


def _with(rows: pa.Table, name: str, values: pa.ChunkedArray | pa.Array) -> pa.Table:
    place = rows.column_names.index(name)
    return rows.set_column(place, rows.schema.field(place), values.cast(rows.schema.field(place).type))


def in_one_piece(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _place(row: pa.Table | pa.RecordBatch) -> str:
    parts = {name: row.column(name)[0].as_py() for name in ("_topic", "_partition", "_offset") if name in _names(row)}
    return ", ".join(f"{name.removeprefix('_')} {value}" for name, value in parts.items())


def _names(row: pa.Table | pa.RecordBatch) -> list[str]:
    return list(row.schema.names)
