"""The keys of a pipeline file that make a table follow changes. Pure; each mistake is noted with its place."""

from __future__ import annotations

import re
from typing import Final

from penstock.declared.fields import Table, shown
from penstock.spark.lake.keyed.envelopes import ENVELOPES
from penstock.spark.lake.keyed.settings import BUCKETS, BUCKETS_MOST, KEEP_DELETES_MS, OFFSET, KeyedSettings

ONLY_KEYED: Final = ("sequence_by", "delete_when", "ignore_when", "keep_deletes", "buckets")

_UNITS_MS: Final = {"second": 1_000, "minute": 60_000, "hour": 3_600_000, "day": 86_400_000, "week": 604_800_000}
_PART = re.compile(rf"(\d+)\s*({'|'.join(_UNITS_MS)})s?")
_COLUMN = re.compile(r"[^\s`(),.]+")


def keyed_of(table: Table) -> KeyedSettings | None:
    """The settings that a sink's table has; None when it says no keys."""
    keys = table.texts("keys")
    sequence_by = table.text("sequence_by") or OFFSET
    made = KeyedSettings(
        keys=keys,
        sequence_by=sequence_by,
        delete_when=table.text("delete_when") or "",
        ignore_when=table.text("ignore_when") or "",
        keep_deletes_ms=_keep_deletes(table),
        buckets=table.integer("buckets", BUCKETS, 1, BUCKETS_MOST),
    )
    if not keys:
        _check_without_keys(table)
        return None
    _check_keys(table, keys)
    if "keep_deletes" in table and made.in_log_order:
        table.wrong(
            "keep_deletes",
            "keep_deletes is for changes that may come late, and those that follow the offsets cannot: give "
            "sequence_by, or leave keep_deletes out",
        )
    return made


def cdc_of(table: Table) -> str:
    """The envelope that a source's records have; "" when they are rows."""
    return table.choice("cdc", ENVELOPES, "")


def _check_without_keys(table: Table) -> None:
    if "keys" in table and table.values["keys"] == []:
        table.wrong("keys", 'keys has no column: name those that tell one row from another, such as ["id"]')
    for name in ONLY_KEYED:
        if name in table and "keys" not in table:
            table.wrong(name, f'{name} is for tables that follow changes: say by which keys, such as keys = ["id"]')


def _check_keys(table: Table, keys: tuple[str, ...]) -> None:
    for index, name in enumerate(keys):
        where = (*table.path, "keys", index)
        if not _COLUMN.fullmatch(name):
            table.notes.wrong(where, f"keys holds {name!r}, which is no column's name: make one of it in a step")
        if name.lower() in [other.lower() for other in keys[:index]]:
            table.notes.wrong(where, f"keys has {name!r} twice")
    if "partition_by" in table:
        table.wrong(
            "partition_by",
            "a table with keys is split by them into buckets, not by partition_by: leave it out, and say buckets for "
            "more or fewer files",
        )
    if table.values.get("mode", "append") != "append":
        table.wrong("mode", 'a table with keys takes changes as they come: leave mode out, or say mode = "append"')


def _keep_deletes(table: Table) -> int:
    given = table.text("keep_deletes")
    if given is None:
        return KEEP_DELETES_MS
    found = interval_ms(given)
    if found is None:
        table.wrong(
            "keep_deletes",
            f'keep_deletes must be a time such as "7 days" or "12 hours", not {shown(given)}; "0 days" remembers none',
        )
        return KEEP_DELETES_MS
    return found


def interval_ms(text: str) -> int | None:
    """`7 days`, `1 hour 30 minutes`; None when it is no interval."""
    parts = _PART.findall(text.lower())
    if not parts or _PART.sub("", text.lower()).strip():
        return None
    return sum(int(number) * _UNITS_MS[unit] for number, unit in parts)
