"""Tables as pages show them. Pure: who may see which was decided before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from penstock.console.commands import command
from penstock.console.listings import Sortable
from penstock.console.tables.rights import topics_told
from penstock.console.tables.seen import SeenTable
from penstock.console.views.seeing import Seeing, text_of
from penstock.model.ids import TopicPartition
from penstock.spark.lake.store import BATCHES, Commit

VERSIONS_SHOWN: Final = 100
TABLE_SORTS: Final[Mapping[str, Sortable[SeenTable]]] = {
    "name": lambda table: table.name,
    "rows": lambda table: table.rows,
    "files": lambda table: table.files,
    "bytes": lambda table: table.bytes,
    "version": lambda table: table.version,
}
OVERVIEW_SHOWN: Final = 8


def table_row(seeing: Seeing, table: SeenTable) -> dict[str, Any]:
    newest = table.recent[0] if table.recent else None
    batch = next((commit for commit in table.recent if commit.kind in BATCHES), None)
    return {
        "name": table.name,
        "kind": table.format,
        "path": table.location or table.found.location,
        "warehouse": table.warehouse,
        "version": text_of(table.version),
        "files": table.files,
        "bytes": text_of(table.bytes),
        "rows": text_of(table.rows),
        "committed_ms": newest.time_ms if newest is not None else None,
        "batch_ms": batch.time_ms if batch is not None else None,
        "freshness_s": freshness_s(seeing, table),
        "feeds_from": topics_told(table),
        "dead": text_of(sum(table.dead.values())),
        "problem": table.problem or None,
    }


def freshness_s(seeing: Seeing, table: SeenTable) -> float | None:
    """Since when the record waits that waits longest to be in the table; None where that is not known."""
    found: list[float | None] = []
    for key, offset in table.committed.items():
        item = TopicPartition(table.topic_of(key), key.partition)
        end = seeing.picture.ends.get(item)
        found.append(None if end is None else seeing.ends_seen.behind_s(item, offset, end, seeing.now_ms))
    known = [each for each in found if each is not None]
    return max(known) if known and len(known) == len(found) else None


def table_page(seeing: Seeing, table: SeenTable, pipelines: Iterable[str]) -> dict[str, Any]:
    return {
        **table_row(seeing, table),
        "versions": [_version(commit) for commit in table.recent[:VERSIONS_SHOWN]],
        "schema": [{"name": name, "type": kind, "nullable": nullable} for name, kind, nullable in table.columns],
        "ranges": [
            {
                "topic": table.topic_of(key),
                "partition": key.partition,
                "start": text_of(table.begun.get(key)),
                "end": str(offset),
                "lag": text_of(_lag(seeing, TopicPartition(table.topic_of(key), key.partition), offset)),
            }
            for key, offset in sorted(table.committed.items(), key=lambda item: (table.topic_of(item[0]), item[0]))
        ],
        "pipelines": list(pipelines),
        "steps": [step.name for step in table.feed.steps] if table.feed else [],
        "command": _command(table, "show"),
        "commands": {"audit": _command(table, "audit"), "versions": _command(table, "snapshots")},
    }


def _command(table: SeenTable, verb: str) -> str:
    return command("lake", verb, names=[table.own_name], options=["--warehouse", table.warehouse])


def _lag(seeing: Seeing, item: TopicPartition, offset: int) -> int | None:
    end = seeing.picture.ends.get(item)
    return None if end is None else max(end - offset, 0)


def _version(commit: Commit) -> dict[str, Any]:
    batch = commit.kind in BATCHES
    return {
        "version": str(commit.version),
        "at_ms": commit.time_ms or None,
        "operation": commit.kind,
        "rows": text_of(commit.rows_more) if batch else None,
        "files": commit.files if batch else None,
        "bytes": text_of(commit.size_bytes) if batch else None,
        "batch": text_of(commit.batch_id) if commit.batch_id >= 0 else None,
        "dead": text_of(commit.dead) if batch else None,
        "absent": text_of(commit.gaps) if batch else None,
    }


def freshest_and_stalest(seeing: Seeing, tables: Iterable[SeenTable]) -> list[dict[str, Any]]:
    """For the overview: those that wait longest first."""
    rows = [table_row(seeing, table) for table in tables]
    rows.sort(key=lambda row: (-(row["freshness_s"] or 0.0), row["name"]))
    return rows[:OVERVIEW_SHOWN]
