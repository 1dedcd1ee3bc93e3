"""Publication and slot: made when they are not there, and refused when they would leave something out. Blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from penstock.agent.inputs.postgres.log.lsn import lsn_of
from penstock.agent.inputs.postgres.server.catalog import (
    COLUMNS_BY_PUBLICATION_SINCE,
    KnownTable,
    SlotNow,
    rows_of,
    slot_now,
)
from penstock.agent.inputs.postgres.server.connecting import PostgresFailed


@dataclass(frozen=True, slots=True)
class MadeSlot:
    """A slot that was made just now."""

    begins: int
    """The log is read from here on."""
    snapshot: str
    """The name of the tables' state at that very place, while the connection that made it is left alone."""


def quoted(*names: str) -> str:
    """A name in a statement, with its schema before it."""
    return ".".join('"' + name.replace('"', '""') + '"' for name in names)


def check_server(connection: Any) -> None:
    ((level,),) = rows_of(connection, "SHOW wal_level")
    if level != "logical":
        raise PostgresFailed(
            f"wal_level of this Postgres is {level}, and its log does not tell of rows then: set wal_level = logical"
            " in postgresql.conf (ALTER SYSTEM SET wal_level = 'logical') and restart it"
        )


def publish(connection: Any, publication: str, tables: Sequence[KnownTable]) -> None:
    """Makes the publication, or adds what it lacks of these tables."""
    rows = rows_of(
        connection,
        "SELECT pubinsert AND pubupdate AND pubdelete AND pubtruncate, pubviaroot FROM pg_publication"
        " WHERE pubname = %s",
        (publication,),
    )
    if not rows:
        named = _alone(tables)
        options = "WITH (publish_via_partition_root = true)"
        _do(connection, f"CREATE PUBLICATION {quoted(publication)} FOR TABLE {named} {options}")
        return
    ((whole, by_root),) = rows
    if not whole:
        raise PostgresFailed(
            f"publication {publication} leaves some changes out: ALTER PUBLICATION {quoted(publication)}"
            " SET (publish = 'insert, update, delete, truncate')"
        )
    if not by_root and any(table.partitioned for table in tables):
        raise PostgresFailed(
            f"publication {publication} tells of partitions and not of their tables: ALTER PUBLICATION"
            f" {quoted(publication)} SET (publish_via_partition_root = true)"
        )
    published = set(published_columns(connection, publication))
    if missing := [table for table in tables if table.name not in published]:
        _do(connection, f"ALTER PUBLICATION {quoted(publication)} ADD TABLE {_alone(missing)}")


def take_out(connection: Any, publication: str, tables: Sequence[KnownTable]) -> str:
    """Of the publication, so that Postgres takes their UPDATE and DELETE again. Why some stay in it, in words."""
    rows = rows_of(
        connection,
        "SELECT r.prrelid FROM pg_publication p LEFT JOIN pg_publication_rel r ON r.prpubid = p.oid"
        " WHERE p.pubname = %s AND (p.pubupdate OR p.pubdelete)",
        (publication,),
    )
    if not rows:
        return ""
    named = {oid for (oid,) in rows}
    if listed := [table for table in tables if table.oid in named]:
        try:
            _do(connection, f"ALTER PUBLICATION {quoted(publication)} DROP TABLE {_alone(listed)}")
        except PostgresFailed as refused:
            return str(refused)
    published = published_columns(connection, publication)
    if still := [table.name for table in tables if table.name in published]:
        return (
            f"publication {publication} has them all the same (FOR ALL TABLES, or of a whole schema), and Postgres"
            f" refuses UPDATE and DELETE of {', '.join(still[:10])}"
        )
    return ""


def _alone(tables: Sequence[KnownTable]) -> str:
    # Without ONLY tables that inherit from these would come along, and some of them have no key.
    return ", ".join(f"ONLY {quoted(table.schema, table.table)}" for table in tables)


def published_columns(connection: Any, publication: str) -> dict[str, list[str] | None]:
    """By table which columns its publication tells of; None: all. One that leaves rows out is refused."""
    if connection.info.server_version < COLUMNS_BY_PUBLICATION_SINCE:
        rows = rows_of(
            connection,
            "SELECT schemaname || '.' || tablename, NULL, NULL FROM pg_publication_tables WHERE pubname = %s",
            (publication,),
        )
    else:
        rows = rows_of(
            connection,
            "SELECT schemaname || '.' || tablename, attnames::text[], rowfilter FROM pg_publication_tables"
            " WHERE pubname = %s",
            (publication,),
        )
    for name, _, filter in rows:
        if filter is not None:
            raise PostgresFailed(
                f"publication {publication} has only rows of {name} that are {filter}: rows that begin or cease to be"
                " so would come or go unseen. Publish the table without WHERE, and filter with a transform"
            )
    return {name: columns for name, columns, _ in rows}


def _do(connection: Any, statement: str) -> None:
    try:
        rows_of(connection, statement)
    except Exception as error:
        if getattr(error, "sqlstate", None) != "42501":  # insufficient privilege
            raise
        raise PostgresFailed(
            f"{str(error).strip()}: this login may not change what is published; let its owner run {statement}"
        ) from None


def usable_slot(connection: Any, slot: str, database: str) -> SlotNow | None:
    """The slot if it is there and can be read; None when it is not there."""
    now = slot_now(connection, slot)
    if now is None:
        return None
    if now.plugin != "pgoutput" or now.database != database:
        raise PostgresFailed(
            f"slot {slot} is another's ({now.plugin or 'physical'}, database {now.database or 'none'}):"
            " give the input another name for its slot"
        )
    if now.wal_status == "lost":
        raise PostgresFailed(
            f"slot {slot} is lost: the server removed its log (max_slot_wal_keep_size), and changes with it. Drop it"
            f" (SELECT pg_drop_replication_slot('{slot}')) and give the input another name for its slot: all tables"
            " are read anew then; rows that were deleted meanwhile are not told of"
        )
    return now


def make_slot(log_connection: Any, slot: str) -> MadeSlot:
    """Waits until all transactions of the moment have ended: the log begins behind them."""
    ((_, begins, snapshot, _),) = rows_of(
        log_connection, f"CREATE_REPLICATION_SLOT {quoted(slot)} LOGICAL pgoutput EXPORT_SNAPSHOT"
    )
    return MadeSlot(lsn_of(begins), snapshot)
