"""When rows became visible in a Delta table: from the table's own log and files, with nothing of ours in between."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq


def ages_ms(table: Path, *, after_ms: int) -> pa.Array:
    """Of every row with a timestamp from `after_ms` on: how old it was when its commit became visible.

    A commit is visible when its file in the log is there, so the file's time is taken, not what the commit says.
    """
    found: list[pa.Array] = []
    for log in sorted((table / "_delta_log").glob("[0-9]*.json")):
        visible_ms = log.stat().st_mtime_ns // 1_000_000
        for path in _added(log):
            times = pq.read_table(table / path, columns=["timestamp"], partitioning=None)["timestamp"]
            times_ms = pc.divide(times.cast(pa.timestamp("us", "UTC")).cast(pa.int64()), 1_000)
            recent = times_ms.filter(pc.greater_equal(times_ms, after_ms))
            found.append(pc.subtract(visible_ms, recent).combine_chunks())
    return pa.concat_arrays(found) if found else pa.array([], pa.int64())


def _added(log: Path) -> Iterator[str]:
    """Files that a commit of new rows adds; what a compaction rewrites is not new."""
    for line in log.read_text().splitlines():
        action = json.loads(line).get("add")
        if action and action["dataChange"]:
            yield unquote(action["path"])


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of all do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
