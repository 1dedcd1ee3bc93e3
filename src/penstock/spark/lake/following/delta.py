"""What versions of a Delta table brought, from the actions of its log."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from penstock.spark.lake.delta.store import DeltaStore
from penstock.spark.lake.following.versions import Brought, gone
from penstock.spark.lake.store import TableFile


def identity(store: DeltaStore) -> str:
    return str(store.table.metadata().id)


def brought(store: DeltaStore, begin: int, end: int) -> list[Brought]:
    """Versions [begin, end), each in its file of the log."""
    found = []
    for version in range(begin, end):
        actions = store.actions(version) or store.kept_actions(version)
        if actions is None:
            raise gone(store.location, version, "its file of the log was cleaned away")
        found.append(
            Brought(
                version,
                tuple(_file(store.location, each["add"]) for each in actions if _moves_rows(each.get("add"))),
                tuple(_file(store.location, each["remove"]) for each in actions if _moves_rows(each.get("remove"))),
            )
        )
    return found


def _moves_rows(action: Mapping[str, Any] | None) -> bool:
    return action is not None and bool(action.get("dataChange", True))


def _file(location: str, action: Mapping[str, Any]) -> TableFile:
    path = unquote(action["path"])
    rows = json.loads(action.get("stats") or "{}").get("numRecords")
    return TableFile(
        path=path if "://" in path or path.startswith("/") else f"{location}/{path}",
        size_bytes=int(action.get("size") or 0),
        rows=int(rows or 0),
        partition=dict(action.get("partitionValues") or {}),
    )
