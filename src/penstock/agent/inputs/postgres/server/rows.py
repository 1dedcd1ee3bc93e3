"""The rows of a table as texts, in the order of its key: what one life has read another goes on behind. Blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from penstock.agent.inputs.postgres.log.wire import Values
from penstock.agent.inputs.postgres.server.catalog import Described, rows_of
from penstock.agent.inputs.postgres.server.connecting import driver
from penstock.agent.inputs.postgres.server.making import quoted

ROWS_FIRST: Final = 16
ROWS_MAX: Final = 4_096


def begin_state(connection: Any, snapshot: str | None) -> None:
    """All that is read until the connection is closed is of one moment: that of a slot just made, or now."""
    connection.autocommit = False
    connection.isolation_level = driver().IsolationLevel.REPEATABLE_READ
    connection.read_only = True
    if snapshot is not None:
        rows_of(connection, f"SET TRANSACTION SNAPSHOT '{snapshot}'")


class TableRows:
    """Of one table, portion by portion."""

    def __init__(self, connection: Any, table: Described, after: Sequence[str] | None, bytes_max: int) -> None:
        """`after`: values of the key up to which rows were read before."""
        self._bytes_max, self._count = bytes_max, ROWS_FIRST
        relation = table.relation
        columns = ", ".join(quoted(column.name) for column in relation.columns)
        sql = f"SELECT {columns} FROM {quoted(relation.schema, relation.table)}"
        keys = ", ".join(map(quoted, table.keys))
        if after is not None:
            # Texts without a type take that of the column beside them.
            sql += f" WHERE ({keys}) > ({', '.join(['%s'] * len(table.keys))})"
        if keys:
            sql += f" ORDER BY {keys}"
        _as_texts(connection, [column.type_oid for column in relation.columns])
        self._cursor = connection.cursor(name="penstock_rows")
        self._cursor.execute(sql, None if after is None else tuple(after))

    def next(self) -> list[Values]:
        """Some more; none when these were all. So many that they are not many bytes more than allowed."""
        rows: list[Values] = self._cursor.fetchmany(self._count)
        if rows:
            size = sum(len(value) for row in rows for value in row if isinstance(value, str)) + 1
            fitting = self._bytes_max * len(rows) // size
            self._count = max(1, min(fitting, 4 * self._count, ROWS_MAX))
        return rows

    def close(self) -> None:
        self._cursor.close()


def _as_texts(connection: Any, oids: Sequence[int]) -> None:
    """Values come as the server writes them, as they do in the log."""
    from psycopg.types.string import TextLoader

    for oid in set(oids):
        connection.adapters.register_loader(oid, TextLoader)


def value_now(connection: Any, table: Described, columns: Sequence[str], key: Sequence[str]) -> Values | None:
    """What these columns of one row have now; None when there is no such row."""
    relation = table.relation
    named = ", ".join(quoted(name) for name in columns)
    where = " AND ".join(f"{quoted(name)} = %s" for name in table.keys)
    sql = f"SELECT {named} FROM {quoted(relation.schema, relation.table)} WHERE {where}"
    _as_texts(connection, [column.type_oid for column in relation.columns])
    rows: list[Values] = rows_of(connection, sql, tuple(key))
    return rows[0] if rows else None
