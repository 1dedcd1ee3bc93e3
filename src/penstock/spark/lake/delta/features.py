"""Which Delta tables are understood here: by what their protocol says that a reader must know, never by properties.

A property says what writers do from now on; the protocol says what may be in the table. A table whose property
`delta.enableDeletionVectors` was switched off keeps the vectors that it has. What a feature asks of readers:

    columnMapping        files have other column names: only while the table's mode is not "none"
    deletionVectors      rows of files are deleted in files beside them
    timestampNtz         a type that Parquet and Arrow have
    typeWidening         files have narrower types than the table
    v2Checkpoint         another form of checkpoints, which deltalake reads
    vacuumProtocolCheck  nothing: it is for those who delete files
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final

from penstock.spark.lake.store import NotUnderstood

if TYPE_CHECKING:
    from deltalake import DeltaTable

UNDERSTOOD: Final = frozenset({"timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"})
READER_VERSION_MOST: Final = 3
MAPPING: Final = "columnMapping"
MAPPING_MODE: Final = "delta.columnMapping.mode"
_MAPPING_VERSION: Final = 2
"""Readers of this version know column mapping and no list of features."""

_WHAT_AND_CURE: Final = {
    "deletionVectors": (
        "rows that were deleted may still be in its files",
        "in the engine that wrote them REORG TABLE … APPLY (PURGE) and ALTER TABLE … DROP FEATURE deletionVectors take "
        "them away",
    ),
    MAPPING: (
        "its files have other column names than the table",
        "in the engine that wrote it ALTER TABLE … SET TBLPROPERTIES ('delta.columnMapping.mode' = 'none') rewrites it",
    ),
}


def foreign_features(
    min_reader_version: int, reader_features: Collection[str] | None, properties: Mapping[str, str]
) -> list[str]:
    """What a reader of the table must know and this one does not; empty for a table that is understood. Pure."""
    if min_reader_version > READER_VERSION_MOST:
        return [f"reader version {min_reader_version}"]
    named = set(reader_features or ())
    if min_reader_version == _MAPPING_VERSION:
        named.add(MAPPING)
    if properties.get(MAPPING_MODE, "none") == "none":
        named.discard(MAPPING)
    return sorted(named - UNDERSTOOD)


def refusal(location: str, features: Collection[str]) -> str:
    """The sentence about a table that needs `features`. Pure."""
    first = next(iter(features))
    what, cure = _WHAT_AND_CURE.get(first, ("this reader does not know what that asks of it", ""))
    return (
        f"{location} needs the Delta feature {', '.join(features)}: {what}. Read and tidy it with an engine that knows "
        f"it, such as Spark with Delta's own jar{f'; {cure}' if cure else ''}"
    )


def check_understood(table: DeltaTable, location: str) -> None:
    """Raises `NotUnderstood` unless the files of this version tell its rows."""
    protocol = table.protocol()
    found = foreign_features(protocol.min_reader_version, protocol.reader_features, table.metadata().configuration)
    if found:
        raise NotUnderstood(refusal(location, found))
