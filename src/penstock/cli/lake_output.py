"""How tables, their versions and their rows look, for people and for programs."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from penstock.cli.output import table
from penstock.model.units import count

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.spark.lake.ranges import RangeKey
    from penstock.spark.lake.store import TableStore

CELL_MOST = 100
"""Characters of a cell in a table; other formats have all of it."""
_RANGES_SHOWN = 3


def summary(name: str, store: TableStore) -> dict[str, Any]:
    files = store.files()
    newest = max(store.commits(), key=lambda commit: commit.version, default=None)
    return {
        "name": name,
        "format": store.format,
        "rows": sum(file.rows for file in files),
        "files": len(files),
        "bytes": sum(file.size_bytes for file in files),
        "version": store.version(),
        "changed": time_text(newest.time_ms) if newest is not None else None,
        "location": store.location,
    }


def description(name: str, store: TableStore) -> dict[str, Any]:
    """All that `lake show` tells."""
    from penstock.spark.lake.ledger import Ledger

    topics: dict[RangeKey, str] = {}
    broken: Counter[str] = Counter()
    dropped, last = 0, -1
    for commits in (Ledger(store.location, store.storage).entries(), store.commits()):
        for commit in commits:
            topics.update({given.key: given.topic for given in commit.ranges})
            if commit.version > last:
                broken.update(commit.expectations)
                dropped, last = dropped + commit.dropped, commit.version
    return {
        **summary(name, store),
        "partition_by": store.partition_by(),
        "columns": [{"name": field.name, "type": str(field.type)} for field in store.schema()],
        "feed": _parsed(store.properties().get("penstock.feed")),
        "positions": [
            {
                "topic": topics.get(key, key.topic),
                "topic_id": key.topic,
                "partition": key.partition,
                "source": key.ordinal,
                "offset": offset,
            }
            for key, offset in sorted(store.committed().items(), key=lambda item: (topics.get(item[0], ""), item[0]))
        ],
        "expectations": [{"name": name, "broken": number} for name, number in sorted(broken.items())],
        "dropped": dropped,
    }


def _parsed(feed: str | None) -> Any:
    return json.loads(feed) if feed else None


def description_text(data: Mapping[str, Any]) -> str:
    lines = [
        f"{data['name']}  ({data['format']}, version {data['version']}, changed {data['changed'] or 'never'})",
        f"  location      {data['location']}",
        f"  rows          {data['rows']} in {count('file', data['files'])}, {size_text(data['bytes'])}",
        f"  partitioned   {', '.join(data['partition_by']) or 'not'}",
    ]
    if data["feed"]:
        topics = data["feed"].get("topics") or [data["feed"].get("pattern", "?")]
        lines.append(f"  fed from      {', '.join(topics)} of {data['feed'].get('bootstrap', '?')}")
    columns = table(("COLUMN", "TYPE"), [(each["name"], each["type"]) for each in data["columns"]])
    lines += ["", *("  " + line for line in columns.splitlines())]
    if data["positions"]:
        rows = [(each["topic"], each["partition"], each["offset"]) for each in data["positions"]]
        lines += ["", *("  " + line for line in table(("TOPIC", "PARTITION", "HAS UP TO"), rows).splitlines())]
    if data["expectations"]:
        broken = [(each["name"], each["broken"]) for each in data["expectations"]]
        lines += ["", *("  " + line for line in table(("EXPECTATION", "ROWS THAT BROKE IT"), broken).splitlines())]
    return "\n".join(lines)


def snapshots_text(data: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        (
            each["version"],
            time_text(each["time"]),
            each["kind"] if each["kept"] else f"{each['kind']} (forgotten)",
            each["batch"] if each["batch"] >= 0 else None,
            each["rows"],
            each["dead"],
            each["gaps"],
            each["files"],
            _ranges_text(each["ranges"]),
        )
        for each in data
    ]
    return table(("VERSION", "TIME", "KIND", "BATCH", "ROWS", "DEAD", "ABSENT", "FILES", "OFFSETS"), rows)


def _ranges_text(ranges: Sequence[Mapping[str, Any]]) -> str | None:
    texts = [f"{each['topic']}-{each['partition']} [{each['from']}, {each['to']})" for each in ranges[:_RANGES_SHOWN]]
    more = len(ranges) - _RANGES_SHOWN
    return ", ".join(texts) + (f" and {more} more" if more > 0 else "") if texts else None


def tidied_text(data: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        (
            each["table"],
            each["files_removed"],
            each["files_added"],
            f"{size_text(each['bytes_removed'])} → {size_text(each['bytes_added'])}",
            each["snapshots_expired"],
            each["expired_files_deleted"] + each["orphans_deleted"],
        )
        for each in data
    ]
    return table(("TABLE", "COMPACTED", "INTO", "SIZE", "EXPIRED", "DELETED"), rows)


def time_text(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def size_text(count: int) -> str:
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def plain_rows(rows: pa.Table) -> list[dict[str, Any]]:
    """As JSON has it: times in ISO 8601, bytes as text where they are, else in hexadecimal."""
    names = rows.schema.names
    columns = [[plain(value) for value in column.to_pylist()] for column in rows.columns]
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


def plain(value: Any) -> Any:
    if isinstance(value, (bytes, bytearray)):
        try:
            return bytes(value).decode()
        except UnicodeDecodeError:
            return bytes(value).hex()
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if isinstance(value, (Decimal, timedelta)):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    if isinstance(value, (str, int, float, bool, type(None))):
        return value
    return str(value)


def rows_text(names: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    return table(names, [[_cell(row[name]) for name in names] for row in rows])


def _cell(value: Any) -> Any:
    """Numbers as they are, so that they stand to the right; what is no text as JSON; one line, not too long."""
    if value is None or (isinstance(value, (int, float)) and not isinstance(value, bool)):
        return value
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    shown = "".join(char if char.isprintable() else repr(char)[1:-1] for char in text[: CELL_MOST + 1])
    return shown[: CELL_MOST - 1] + "…" if len(shown) > CELL_MOST else shown


def csv_text(rows: pa.Table) -> str:
    """With a heading; nothing for null."""
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(rows.schema.names)
    for row in plain_rows(rows):
        writer.writerow([json.dumps(v, ensure_ascii=False) if isinstance(v, (dict, list)) else v for v in row.values()])
    return written.getvalue()
