"""Which tables are followed, and which are not for their application's sake.

What is in a publication and has no replica identity cannot be updated any more, by anybody. So such tables are neither
put into it nor left in it, whether a glob fits them or they are named; those that are named are then an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from penstock.agent.inputs.postgres.server.catalog import KnownTable
from penstock.agent.inputs.postgres.server.connecting import PostgresFailed
from penstock.agent.inputs.postgres.server.making import take_out
from penstock.agent.inputs.postgres.settings import PostgresSettings

NAMED_MAX: Final = 10
"""Of many tables so many are named in a sentence."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Tables that fit a glob and have no replica identity: Postgres would refuse UPDATE and DELETE of them."""

    tables: tuple[KnownTable, ...] = ()
    still_published: str = ""
    """Why the publication has some of them all the same, in words."""

    @property
    def oids(self) -> frozenset[int]:
        return frozenset(table.oid for table in self.tables)

    def words(self) -> str:
        if not self.tables:
            return ""
        first = ", ".join(table.name for table in self.tables[:NAMED_MAX])
        more = "" if len(self.tables) <= NAMED_MAX else f" and {len(self.tables) - NAMED_MAX} more"
        said = f"{first}{more} left out: {identity_needed(self.tables)}"
        return f"{said}. {self.still_published}" if self.still_published else said


def identity_needed(tables: Sequence[KnownTable]) -> str:
    """What is wrong with tables without an identity, and what mends it."""
    bare = [name for table in tables for name in table.bare]
    commands = "; ".join(f"ALTER TABLE {name} REPLICA IDENTITY FULL" for name in bare[:NAMED_MAX])
    return (
        "without a primary key, or with a deferrable one, Postgres cannot tell which row was changed, and refuses"
        f" UPDATE and DELETE of a table that is published. To follow: {commands}; or a primary key"
    )


def wanted(settings: PostgresSettings, tables: Sequence[KnownTable]) -> tuple[list[KnownTable], tuple[KnownTable, ...]]:
    """Those to be followed, and those that cannot be."""
    fitting = [table for table in tables if settings.wants(table.name)]
    return [table for table in fitting if not table.bare], tuple(table for table in fitting if table.bare)


def leave_out(connection: Any, settings: PostgresSettings, bare: tuple[KnownTable, ...]) -> LeftOut:
    """The application comes first: they are taken out of the publication. Those that were named are then an error."""
    left_out = LeftOut(bare, take_out(connection, settings.publication, bare) if bare else "")
    if named := [table for table in bare if table.name in settings.tables]:
        names = ", ".join(table.name for table in named[:NAMED_MAX])
        raise PostgresFailed(
            f"{names} cannot be followed: {identity_needed(named)}. {left_out.still_published}".rstrip()
        )
    return left_out
