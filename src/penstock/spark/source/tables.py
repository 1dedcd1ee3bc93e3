"""Where a lake table stands: the offsets up to which it has the records of a topic."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path

from penstock.model.ids import TopicPartition

_log = logging.getLogger("penstock.spark.source")


def standing(
    table: str, ids: Mapping[str, str], partitions: Iterable[TopicPartition], reached: Mapping[str, str] | None = None
) -> dict[TopicPartition, int]:
    """Where reading goes on after what `table` has; partitions that it does not know are left out.

    `table` is a path, or `catalog#namespace.name` for an Iceberg table in a catalog. A table that does not exist yet
    has nothing, so that a query may be told from its first run on to begin where its own table stands. `reached` are
    the options storage.* and catalog.*.
    """
    from penstock.spark.lake.opening import open_store
    from penstock.spark.lake.options import LakeOptions
    from penstock.spark.lake.ranges import RangeKey

    store = open_store(LakeOptions.of(lake_options(table, reached)))
    if not store.exists():
        _log.warning("startingOffsets=table:%s: there is no such table yet, so reading begins at the earliest", table)
        return {}
    store.refresh()
    # Tables know topics by their id; one that was fed without ids knows names.
    keys = {tp: [RangeKey(name, tp.partition) for name in (ids.get(tp.topic), tp.topic) if name] for tp in partitions}
    committed = store.committed([key for each in keys.values() for key in each])
    return {
        tp: next(committed[key] for key in each if key in committed)
        for tp, each in keys.items()
        if any(key in committed for key in each)
    }


def lake_options(table: str, reached: Mapping[str, str] | None = None) -> dict[str, str]:
    """The lake's options for a table named in one word."""
    reached = reached or {}
    catalog, hash_sign, name = table.rpartition("#")
    if hash_sign:
        return {"table.format": "iceberg", "catalog": catalog, "table": name, **reached}
    if _looks_like_iceberg(table):
        return {"path": table, "table.format": "iceberg", **reached}
    return {"path": table, "table.format": "delta", **{n: v for n, v in reached.items() if n.startswith("storage.")}}


def _looks_like_iceberg(path: str) -> bool:
    local = Path(path.removeprefix("file://").removeprefix("file:"))
    return not (local / "_delta_log").is_dir() and (local / "metadata").is_dir()
