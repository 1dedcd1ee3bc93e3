"""What a Postgres says of itself: tables, their columns and keys, the slot. Every function blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from penstock.agent.inputs.postgres.log.lsn import lsn_of
from penstock.agent.inputs.postgres.log.wire import Relation, RelationColumn, TypeName

COLUMNS_BY_PUBLICATION_SINCE: Final = 150_000

_TABLES: Final = """
WITH RECURSIVE part (root, oid) AS (
    SELECT oid, oid FROM pg_class WHERE relkind IN ('r', 'p') AND NOT relispartition
    UNION ALL SELECT part.root, i.inhrelid FROM part JOIN pg_inherits i ON i.inhparent = part.oid
    JOIN pg_class c ON c.oid = i.inhrelid AND c.relispartition
), bare (root, names) AS (
    SELECT part.root, array_agg(format('%I.%I', n.nspname, c.relname) ORDER BY n.nspname, c.relname)
    FROM part JOIN pg_class c ON c.oid = part.oid JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relreplident <> 'f' AND NOT EXISTS (
        SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisvalid AND i.indimmediate
        AND CASE c.relreplident WHEN 'd' THEN i.indisprimary WHEN 'i' THEN i.indisreplident ELSE false END
    ) GROUP BY part.root
)
SELECT c.oid, n.nspname, c.relname, c.relkind::text, coalesce(bare.names, '{}')
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace LEFT JOIN bare ON bare.root = c.oid
WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relpersistence = 'p'
AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg\\_%'
ORDER BY n.nspname, c.relname
"""
_COLUMNS: Final = """
WITH RECURSIVE base (oid, root) AS (
    SELECT oid, oid FROM pg_type WHERE typtype <> 'd'
    UNION ALL SELECT t.oid, b.root FROM pg_type t JOIN base b ON b.oid = t.typbasetype WHERE t.typtype = 'd'
), identity (attnum) AS (
    SELECT unnest((i.indkey::int2[])[0:i.indnkeyatts - 1]) FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
    WHERE i.indrelid = %(table)s
    AND CASE c.relreplident WHEN 'i' THEN i.indisreplident ELSE i.indisprimary END
)
SELECT a.attname, a.atttypid, a.atttypmod, a.attnum IN (SELECT attnum FROM identity), n.nspname, t.typname,
    c.relreplident::text
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
JOIN base ON base.oid = a.atttypid JOIN pg_type t ON t.oid = base.root JOIN pg_namespace n ON n.oid = t.typnamespace
WHERE a.attrelid = %(table)s AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
AND (%(names)s::text[] IS NULL OR a.attname = ANY(%(names)s::text[]))
ORDER BY a.attnum
"""
_SLOT: Final = """
SELECT plugin, database, active, active_pid, restart_lsn::text, confirmed_flush_lsn::text, wal_status,
    pg_current_wal_lsn()::text, slot_type, temporary
FROM pg_replication_slots WHERE slot_name = %s
"""


@dataclass(frozen=True, slots=True)
class KnownTable:
    """A table that may be followed."""

    oid: int
    schema: str
    table: str
    partitioned: bool
    bare: tuple[str, ...] = ()
    """What of it, itself or partitions, has no replica identity. Postgres refuses UPDATE and DELETE there if it is
    published: it could not tell which row it was."""

    @property
    def name(self) -> str:
        return f"{self.schema}.{self.table}"


@dataclass(frozen=True, slots=True)
class Described:
    """A table as it is now, in the words of the log."""

    relation: Relation
    types: dict[int, TypeName]
    keys: tuple[str, ...]
    """Columns that tell rows apart: of the index that is its identity, else of the primary key."""


@dataclass(frozen=True, slots=True)
class SlotNow:
    """A slot, and the end of the log, in one look."""

    plugin: str
    database: str
    active: bool
    active_pid: int | None
    restart: int
    """From here on the server keeps its log."""
    confirmed: int
    """What comes before was acknowledged."""
    wal_status: str
    """reserved, extended, unreserved or lost."""
    end: int

    @property
    def lag_bytes(self) -> int:
        return max(0, self.end - self.confirmed)

    @property
    def kept_bytes(self) -> int:
        return max(0, self.end - self.restart) if self.restart else 0


def rows_of(connection: Any, sql: str, given: Any = None) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, given)
        found: list[tuple[Any, ...]] = cursor.fetchall() if cursor.description is not None else []
        return found


def tables_of(connection: Any) -> list[KnownTable]:
    rows = rows_of(connection, _TABLES)
    return [KnownTable(oid, schema, name, kind == "p", tuple(bare)) for oid, schema, name, kind, bare in rows]


def described(connection: Any, table: KnownTable, names: list[str] | None = None) -> Described:
    """Its columns; only those that are named, if any are: a publication may leave some out."""
    rows = rows_of(connection, _COLUMNS, {"table": table.oid, "names": names})
    identity = rows[0][6] if rows else "n"
    columns = tuple(
        RelationColumn(name, oid, modifier, identity == "f" or (identity != "n" and key))
        for name, oid, modifier, key, _, _, _ in rows
    )
    types = {oid: TypeName(oid, schema, type_name) for _, oid, _, _, schema, type_name, _ in rows}
    keys = tuple(row[0] for row in rows if row[3])
    return Described(Relation(table.oid, table.schema, table.table, identity, columns), types, keys)


def slot_now(connection: Any, slot: str) -> SlotNow | None:
    """None when there is none of that name."""
    rows = rows_of(connection, _SLOT, (slot,))
    if not rows:
        return None
    plugin, database, active, pid, restart, confirmed, status, end, _, _ = rows[0]
    return SlotNow(
        plugin or "",
        database or "",
        active,
        pid,
        lsn_of(restart) if restart else 0,
        lsn_of(confirmed) if confirmed else 0,
        status or "",
        lsn_of(end),
    )


def system_of(log_connection: Any) -> tuple[str, str]:
    """Which server's files these are, and which database. Asked where everybody who reads logs may ask."""
    ((system, _, _, database),) = rows_of(log_connection, "IDENTIFY_SYSTEM")
    return system, database
