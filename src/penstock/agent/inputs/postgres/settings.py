"""The settings of a Postgres input, and how they are written."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, Literal, cast

from penstock.agent.inputs.postgres.secrets import WrongSecret, place_of
from penstock.declared.fields import Table

Snapshot = Literal["initial", "never"]

_OF_SERVER = re.compile(r"[a-z0-9_]{1,63}")
_TABLE = re.compile(r"[^.\s]+\.[^.]+")
_NOT_OF_SERVER = re.compile(r"[^a-z0-9_]+")
_PASSWORD = re.compile(r"://[^/@]*:[^/@]+@|\bpassword\s*=")


@dataclass(frozen=True, slots=True)
class PostgresSettings:
    dsn: str = field(repr=False)
    """Where the server is, or `env:NAME` or `file:NAME` for where that is written; there may be a password in it."""
    folder: Path
    """Where names of files begin."""
    tables: tuple[str, ...]
    """Names with their schemas, or globs of them."""
    exclude: tuple[str, ...]
    slot: str
    publication: str
    snapshot: Snapshot
    tombstones: bool
    watch_ms: int
    """How often the slot is looked at, and whether there are new tables."""
    portion_bytes_max: int
    server: str
    """What events say that they are from."""

    def wants(self, name: str) -> bool:
        """Whether a table, by its name with its schema, is to be followed."""
        return _any(self.tables, name) and not _any(self.exclude, name)


def _any(globs: tuple[str, ...], name: str) -> bool:
    return any(fnmatchcase(name, glob) for glob in globs)


DSN_NEEDED: Final = 'where the server is, such as dsn = "env:SHOP_DSN" or "postgresql://penstock@db/shop"'


def read_settings(table: Table, folder: Path) -> PostgresSettings:
    name = str(table.path[-1])
    usual = f"penstock_{_NOT_OF_SERVER.sub('_', name.lower())}"[:63]
    slot = _name(table, "slot", usual)
    return PostgresSettings(
        dsn=_dsn(table),
        folder=folder,
        tables=_tables(table, "tables"),
        exclude=_tables(table, "exclude"),
        slot=slot,
        publication=_name(table, "publication", slot),
        snapshot=cast(Snapshot, table.choice("snapshot", ("initial", "never"), "initial")),
        tombstones=table.flag("tombstones", True),
        watch_ms=table.duration_ms("watch", 5_000, low=100, high=3_600_000),
        portion_bytes_max=table.size_bytes("portion_bytes_max", 256 << 10, low=4 << 10, high=16 << 20),
        server=table.text("server") or name,
    )


def _dsn(table: Table) -> str:
    dsn = table.required_text("dsn", DSN_NEEDED)
    try:
        place = place_of(dsn)
    except WrongSecret as wrong:
        table.wrong("dsn", str(wrong))
        return dsn
    if dsn and place is None and _PASSWORD.search(dsn):
        words = 'a password stands in the file: write it elsewhere, and dsn = "env:NAME" or "file:NAME" here'
        table.notes.warn((*table.path, "dsn"), words)
    return dsn


def _tables(table: Table, key: str) -> tuple[str, ...]:
    names = table.text_or_texts(key)
    if key == "tables" and not names and key not in table:
        table.wrong(None, f'{table.title} has no tables: which are followed, such as tables = ["public.*"]')
    for name in names:
        if not _TABLE.fullmatch(name):
            table.wrong(key, f'{name!r} has no schema: write "public.{name}", or "*.{name}" for all schemas')
    return names


def _name(table: Table, key: str, default: str) -> str:
    given = table.text(key)
    if given is None:
        return default
    if not _OF_SERVER.fullmatch(given):
        table.wrong(key, f"{key} = {given!r} must be made of at most 63 small letters, digits and '_'")
    return given
