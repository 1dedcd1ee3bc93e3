"""`partition.metadata`: which topic a partition directory belongs to, whatever its name is by now."""

from __future__ import annotations

from penstock.model.errors import Corrupt
from penstock.model.ids import Uuid, uuid_parse, uuid_text
from penstock.model.ports import Files


def partition_metadata_text(topic_id: Uuid) -> bytes:
    return f"version: 0\ntopic_id: {uuid_text(topic_id)}".encode()


def read_partition_metadata(files: Files, path: str) -> Uuid | None:
    """The topic id; None when there is no such file."""
    try:
        text = files.read(path).decode("utf-8", "replace")
    except FileNotFoundError:
        return None
    fields = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
    if fields.get("version") != "0":
        raise Corrupt(path, 0, f"version {fields.get('version')!r} of partition metadata is unknown; expected 0")
    try:
        return uuid_parse(fields.get("topic_id", ""))
    except ValueError as broken:
        raise Corrupt(path, 0, f"no topic id: {broken}") from broken
