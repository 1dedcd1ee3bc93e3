"""What must be so before the log is read: tables, publication, slot, and that nothing is missing in between."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from penstock.agent.inputs.postgres.left_out import LeftOut, leave_out, wanted
from penstock.agent.inputs.postgres.log.lsn import lsn_text
from penstock.agent.inputs.postgres.position.progress import PostgresProgress
from penstock.agent.inputs.postgres.server.catalog import KnownTable, SlotNow, system_of, tables_of
from penstock.agent.inputs.postgres.server.connecting import PostgresFailed, calling, connected
from penstock.agent.inputs.postgres.server.making import (
    check_server,
    make_slot,
    publish,
    published_columns,
    usable_slot,
)
from penstock.agent.inputs.postgres.settings import PostgresSettings


@dataclass(slots=True)
class Begun:
    """Connections to a server that is ready, and what was found there. `close` in any case."""

    statements: Any
    """The connection for statements, each of which is a transaction of its own."""
    log: Any = None
    """The connection that the log comes through."""
    server: tuple[str, str] = ("", "")
    tables: list[KnownTable] = field(default_factory=list)
    left_out: LeftOut = field(default_factory=LeftOut)
    columns: dict[str, list[str] | None] = field(default_factory=dict)
    """By table which columns are published; None: all."""
    snapshot: str | None = None
    """The state of all tables where the slot begins, if that was made just now."""

    @property
    def known(self) -> dict[str, int]:
        return {table.name: table.oid for table in self.tables}

    def close(self) -> None:
        for connection in (self.log, self.statements):
            if connection is not None:
                connection.close()


async def begin(settings: PostgresSettings, progress: PostgresProgress) -> Begun:
    """Makes what is not there. Afterwards `progress` has a position in the log."""
    begun = Begun(await connected(settings))
    try:
        begun.log = await connected(settings, log=True)
        begun.server = await calling(begun.log, lambda: system_of(begun.log))
        await calling(begun.statements, lambda: _choose(begun, settings))
        await _forget_unseen(begun, settings, progress)
        await calling(begun.statements, lambda: _publish(begun, settings))
        slot = await calling(begun.statements, lambda: usable_slot(begun.statements, settings.slot, begun.server[1]))
        if progress.began:
            check_whole(settings.slot, progress, begun.server, slot)
        elif slot is not None:
            # Made by a life that ended before it could note that: its log is still all there.
            progress.begin(slot.confirmed, begun.server)
        else:
            made = await calling(begun.log, lambda: make_slot(begun.log, settings.slot))
            begun.snapshot = made.snapshot
            progress.begin(made.begins, begun.server)
    except BaseException:
        begun.close()
        raise
    return begun


async def _forget_unseen(begun: Begun, settings: PostgresSettings, progress: PostgresProgress) -> None:
    """Tables whose changes are not in the log, or are passed over there, are read anew when they are followed again.

    That is saved before they are published: afterwards nobody could tell that they were not.
    """
    connection, publication = begun.statements, settings.publication
    published = await calling(connection, lambda: published_columns(connection, publication))
    unseen = [table.name for table in begun.tables if table.name not in published]
    if progress.forget([*unseen, *(table.name for table in begun.left_out.tables)]) and not await progress.keep():
        raise PostgresFailed("that tables are to be read anew could not be saved")


def _choose(begun: Begun, settings: PostgresSettings) -> None:
    connection = begun.statements
    check_server(connection)
    there = tables_of(connection)
    begun.tables, bare = wanted(settings, there)
    begun.left_out = leave_out(connection, settings, bare)
    if not begun.tables and bare:
        raise PostgresFailed(f"no table is left to be followed. {begun.left_out.words()}")
    if not begun.tables:
        names = ", ".join(table.name for table in there[:10]) or "no tables at all"
        raise PostgresFailed(f"no table is called {' or '.join(settings.tables)}; there is {names}")


def _publish(begun: Begun, settings: PostgresSettings) -> None:
    connection = begun.statements
    publish(connection, settings.publication, begun.tables)
    begun.columns = published_columns(connection, settings.publication)


def check_whole(slot: str, progress: PostgresProgress, server: tuple[str, str], now: SlotNow | None) -> None:
    """Between what was sent and what the slot still has nothing may be missing."""
    anew = "give the input another name for its slot, and all tables are read anew"
    if progress.server != server:
        raise PostgresFailed(
            f"this is not the server whose log was read before (system {server[0]}, database {server[1]}; it was"
            f" {progress.server}): {anew}"
        )
    if now is None:
        raise PostgresFailed(
            f"slot {slot} is gone, and with it the changes since {lsn_text(progress.saved.restart)}: {anew};"
            " rows that were deleted meanwhile are not told of"
        )
    if now.end < progress.saved.restart:
        raise PostgresFailed(
            f"this Postgres was taken back to an older backup: its log ends at {lsn_text(now.end)}, and was read up to"
            f" {lsn_text(progress.saved.restart)} before, so topics have changes that it knows nothing of: {anew};"
            " rows that are only in topics are not told of"
        )
    if now.confirmed > progress.saved.restart:
        raise PostgresFailed(
            f"slot {slot} was read by somebody else up to {lsn_text(now.confirmed)}, and here only up to"
            f" {lsn_text(progress.saved.restart)}: {anew}"
        )
