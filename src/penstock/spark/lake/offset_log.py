"""What a micro-batch has read, from Spark's own offset log in the query's checkpoint.

A sink is never told source offsets. But before a batch runs, Spark writes where each source will be after it:

    <checkpoint>/offsets/17      v1                              v2
                                 {"batchTimestampMs":…, …}       {"batchTimestampMs":…, …}
                                 {"orders":{"0":120},…}          0:{"orders":{"0":120},…}
                                 -                               clicks:-

One line a source, "-" where a source has no offset yet; version 2 names the sources. The batch before says where this
one begins, and our source adds the resolved start where that does not (`StreamOffset.starts`).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.spark.errors import Missing
from penstock.spark.lake.places import absolute, opened, read_text
from penstock.spark.lake.ranges import TableRange
from penstock.spark.offsets import StreamOffset


@dataclass(frozen=True, slots=True)
class BatchOffsets:
    """What one batch has read of our sources."""

    ranges: tuple[TableRange, ...]
    bootstraps: tuple[str, ...]
    """Who was asked, one for each cluster."""
    timestamp_ms: int
    """When Spark planned the batch."""
    partitions: Mapping[str, int] = field(default_factory=dict)
    """Topic id, or name where none is known → how many partitions the source knows of."""


def ranges_of(checkpoint: str, batch_id: int) -> BatchOffsets:
    """The ranges of batch `batch_id` of the query whose checkpoint that is. Sources that are not ours are passed over.

    `Missing` when the log does not have what is needed: nothing is ever guessed.
    """
    files, root = opened(absolute(checkpoint))
    stamped, sources = _entry(files, root, batch_id)
    before: dict[str, StreamOffset] = {}
    if sources and batch_id > 0:
        before = _entry_before(files, root, batch_id, sources)
    return BatchOffsets(
        ranges=tuple(_ranges(sources, before)),
        bootstraps=tuple(sorted({each.bootstrap for each in sources.values() if each.bootstrap})),
        timestamp_ms=stamped,
        partitions=Counter(each.ids.get(tp.topic) or tp.topic for each in sources.values() for tp in each.ends),
    )


def query_id_of(checkpoint: str) -> str:
    """The query's id, which Spark writes into a new checkpoint once."""
    files, root = opened(absolute(checkpoint))
    try:
        return str(json.loads(read_text(files, f"{root}/metadata"))["id"])
    except (OSError, ValueError, KeyError) as failure:
        raise Missing(
            f"the checkpoint {checkpoint} has no readable metadata file ({failure}): "
            "is it the directory of this query, and can the driver see it?"
        ) from failure


def parse(text: str, *, where: str) -> tuple[int, dict[str, StreamOffset]]:
    """A log file: when the batch was planned, and our sources by name (their number where they have none)."""
    lines = text.split("\n")
    version, metadata, rest = lines[0].strip(), lines[1:2], lines[2:]
    if version not in ("v1", "v2") or not metadata:
        raise Missing(f"{where} is not an offset log this version knows: it begins with {version[:20]!r}")
    named: Iterable[tuple[str, str]] = (
        ((name, offset) for name, _, offset in (line.partition(":") for line in rest if line))
        if version == "v2"
        else ((str(number), line) for number, line in enumerate(rest))
    )
    found = {}
    for name, line in named:
        offset = _json(line)
        if StreamOffset.is_ours(offset):
            found[name] = StreamOffset.of_json(offset)
    return int((_json(metadata[0]) or {}).get("batchTimestampMs", 0)), found


def _json(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        # "-", or the offset of a source that writes something else.
        return None


def _entry(files: Any, root: str, batch_id: int) -> tuple[int, dict[str, StreamOffset]]:
    where = f"{root}/offsets/{batch_id}"
    try:
        return parse(read_text(files, where), where=where)
    except OSError as failure:
        raise Missing(
            f"{where} cannot be read ({failure}): the lake sink learns from it which offsets a batch has. "
            "The checkpoint must be on a file system that the driver sees"
        ) from failure


def _entry_before(files: Any, root: str, batch_id: int, sources: dict[str, StreamOffset]) -> dict[str, StreamOffset]:
    try:
        return _entry(files, root, batch_id - 1)[1]
    except Missing:
        if all(set(each.ends) <= set(each.starts) for each in sources.values()):
            return {}
        raise


def _ranges(sources: dict[str, StreamOffset], before: dict[str, StreamOffset]) -> Iterable[TableRange]:
    """Sources are taken in a fixed order, so that the second reader of a topic is always the second."""
    seen: Counter[str] = Counter()
    for name in sorted(sources, key=lambda name: (not name.isdigit(), int(name) if name.isdigit() else 0, name)):
        offset = sources[name]
        for each in offset.ranges_after(before.get(name)):
            yield TableRange(
                each.topic, each.topic_id, each.partition, each.start, each.end, each.epoch, ordinal=seen[each.topic]
            )
        seen.update({tp.topic for tp in offset.ends})
