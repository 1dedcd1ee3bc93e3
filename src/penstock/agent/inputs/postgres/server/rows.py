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

    def __init__(
        self, connection: Any, table: Described, after: Sequence[str] | None, bytes_max: int, *, partitioned: bool
    ) -> None:
        """`after`: values of the key up to which rows were read before."""
        self._bytes_max, self._count = bytes_max, ROWS_FIRST
        relation = table.relation
        columns = ", ".join(quoted(column.name) for column in relation.columns)
        # Those that inherit from it are tables of their own; partitions are not.
        only = "" if partitioned else "ONLY "
        sql = f"SELECT {columns} FROM {only}{quoted(relation.schema, relation.table)}"
        keys = ", ".join(map(quoted, table.keys))
        if after is not None:
            # Texts without a type take that of the column beside them.
            sql += f" WHERE ({keys}) > ({', '.join(['%s'] * len(table.keys))})"
        if keys:
            sql += f" ORDER BY {keys}"
        self._cursor = connection.cursor(name="penstock_rows")
        _as_texts(self._cursor, table)
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


def _as_texts(cursor: Any, table: Described) -> None:
    """Values come as the server writes them, as they do in the log. Others of the connection read the catalog."""
    from psycopg.types.string import TextLoader

    for oid in {column.type_oid for column in table.relation.columns}:
        cursor.adapters.register_loader(oid, TextLoader)


def value_now(connection: Any, table: Described, columns: Sequence[str], key: Sequence[str]) -> Values | None:
    """What these columns of one row have now; None when there is no such row."""
    relation = table.relation
    named = ", ".join(quoted(name) for name in columns)
    where = " AND ".join(f"{quoted(name)} = %s" for name in table.keys)
    sql = f"SELECT {named} FROM {quoted(relation.schema, relation.table)} WHERE {where}"
    with connection.cursor() as cursor:
        _as_texts(cursor, table)
        row: Values | None = cursor.execute(sql, tuple(key)).fetchone()
        return row
