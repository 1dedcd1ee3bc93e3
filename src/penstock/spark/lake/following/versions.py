"""What the versions of a table brought, and which of it a stream takes. Pure.

The offset of a stream is the first version that it has not read. It begins with the rows that are there (`SNAPSHOT`),
or after a version.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from penstock.spark.errors import BadOption, DataLost, SparkRoomError
from penstock.spark.lake.store import TableFile

SNAPSHOT: Final = 0
"""A batch that begins here has all rows of the version before its end."""
NAME_PREFIX: Final = "table:"
"""Before the name and the id of a table where those of a topic would be: no topic has a colon in its name."""

FAIL, IGNORE = "fail", "ignore"
REMOVALS: Final = (FAIL, IGNORE)
"""What a version that took rows away does to the stream: it ends it, or is passed over with all that it brought."""

CHANGE, VERSION = "_change", "_version"
INSERT, UPDATE, DELETE = "insert", "update", "delete"
"""Columns and words of a stream of changes. `update` is there where the table has keys."""


class RowsRemoved(SparkRoomError):
    """A version took rows away that the stream has given already."""


@dataclass(frozen=True, slots=True)
class Brought:
    """What one version added and took away, in files. What was only put into other files is neither."""

    version: int
    added: tuple[TableFile, ...]
    removed: tuple[TableFile, ...] = ()


def taken(versions: Sequence[Brought], removals: str, table: str) -> list[Brought]:
    """Those that a stream of rows takes; `RowsRemoved` when it is not to meet removals and does."""
    if removals == FAIL:
        for each in versions:
            if each.removed:
                raise RowsRemoved(
                    f"version {each.version} of {table} took rows away that a stream has given already. Say "
                    f'removals = "ignore" to pass such versions over, with all that they bring, or changes = true to '
                    "read what became of each row"
                )
    return [each for each in versions if not each.removed]


def cut(versions: Sequence[Brought], begin: int, end: int, files_most: int) -> int:
    """How far a batch from `begin` goes: versions of `files_most` files together, one at least."""
    files = 0
    for each in versions:
        files += len(each.added) + len(each.removed)
        if files > files_most and each.version > begin:
            return each.version
        files_most = max(files_most, files)
    return end


def start_of(text: str) -> int | None:
    """After which version a stream begins, as the option says it: SNAPSHOT for earliest, None for latest."""
    word = text.strip().lower()
    if word in ("earliest", "latest"):
        return SNAPSHOT if word == "earliest" else None
    if not word.isdigit():
        raise BadOption(f"startingVersion is {text!r}: earliest (all rows, then changes), latest, or a version")
    return int(word) + 1


def gone(table: str, version: int, why: str) -> DataLost:
    return DataLost(
        f"version {version} of {table} is no longer told ({why}): the stream stands before it. A table keeps what its "
        "versions brought for as many days as history.keep.days of the stream that follows it says (7), from the first "
        "start of that stream on. Raise it, and begin anew: without its checkpoint the stream has all rows of now"
    )
