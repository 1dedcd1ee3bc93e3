"""Directories that were set aside: logs that nobody knows, kept for a while because nobody asked for their deletion.

`stray.metadata` in such a directory says since when it is one, and repeats the directory's own name: one that somebody
gave its old name back, and that is set aside once more, has another name then and begins anew. Where no such file can
be read (an earlier release, Apache Kafka, a crash in between), or where it speaks of a time to come, the time begins
when it is looked at. So whatever goes wrong here keeps a directory for longer, never for less long. Time is what the
node's clock says, as it is for the retention of records.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from penstock.model.errors import Corrupt
from penstock.model.ids import Millis, TopicPartition, Uuid
from penstock.model.ports import Files
from penstock.storage.log_directory import LogDirectory
from penstock.storage.names import LOG, PARTITION_METADATA, parse_segment_file
from penstock.storage.partition_metadata import read_partition_metadata

STRAY_METADATA = "stray.metadata"


class StrayFacts(NamedTuple):
    """What is in a stray directory. `topic_id` is None where nobody can say whose it was."""

    since: Millis
    topic_id: Uuid | None
    has_records: bool


@dataclass(slots=True)
class Stray:
    """One directory that was set aside. `facts` are what it says itself, once somebody has looked into it."""

    name: TopicPartition
    """As its directory says; a long topic name is cut in it."""
    path: str
    directory: LogDirectory
    since: Millis | None = None
    """When this process set it aside; None where it was found so."""
    facts: StrayFacts | None = None


def look_into(files: Files, path: str, since: Millis | None, now: Millis) -> StrayFacts:
    """The facts of a stray directory. `since` is written down, or `now` where nothing better is known.

    It syncs: call it off the loop. FileNotFoundError when somebody took the directory away.
    """
    known = None if since is not None else _noted(files, path)
    if known is None or known > now:
        known = now if since is None else since
        files.write_atomic(f"{path}/{STRAY_METADATA}", _text(path, known))
    return StrayFacts(known, _topic_id(files, path), _has_records(files, path))


def _text(path: str, since: Millis) -> bytes:
    return f"version: 0\ndirectory: {_name(path)}\nset_aside_ms: {since}\n".encode()


def _noted(files: Files, path: str) -> Millis | None:
    try:
        text = files.read(f"{path}/{STRAY_METADATA}").decode("utf-8", "replace")
    except FileNotFoundError:
        return None
    fields = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
    since = fields.get("set_aside_ms", "")
    if fields.get("version") != "0" or fields.get("directory") != _name(path) or not since.isdecimal():
        return None
    return Millis(int(since))


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _topic_id(files: Files, path: str) -> Uuid | None:
    try:
        return read_partition_metadata(files, f"{path}/{PARTITION_METADATA}")
    except Corrupt:
        return None


def _has_records(files: Files, path: str) -> bool:
    for entry in files.listdir(path):
        parsed = parse_segment_file(entry)
        if parsed is not None and parsed.kind == LOG and files.size(f"{path}/{entry}"):
            return True
    return False
