"""Which Iceberg tables are understood here: those whose data files, by the names of their columns, tell the rows.

Row deletes are found among the manifests (`data_files.live_files`), because any version above 1 may have them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from penstock.spark.lake.store import NotUnderstood

if TYPE_CHECKING:
    from pyiceberg.table.metadata import TableMetadata

FORMAT_VERSION_MOST: Final = 2
"""Version 3 has deletion vectors, values for columns that files lack, and types that are not known here."""


def renamed(columns: Iterable[tuple[int, str]]) -> list[str]:
    """Names that belonged to another column once, or columns that had another name. Pure.

    `columns` are ids and names of all schemas that the table ever had.
    """
    pairs = set(columns)
    names_of: dict[int, set[str]] = {}
    ids_of: dict[str, set[int]] = {}
    for field_id, name in pairs:
        names_of.setdefault(field_id, set()).add(name)
        ids_of.setdefault(name, set()).add(field_id)
    return sorted({name for field_id, name in pairs if len(names_of[field_id]) > 1 or len(ids_of[name]) > 1})


def check_version(metadata: TableMetadata, name: str) -> None:
    """Raises `NotUnderstood` for a table of a version that nobody here knows: for those who only add files to it."""
    if metadata.format_version > FORMAT_VERSION_MOST:
        raise NotUnderstood(
            f"{name} is an Iceberg table of format version {metadata.format_version}, and {FORMAT_VERSION_MOST} is the "
            "last one that is known here (deletion vectors, defaults of columns): read and tidy it with the engine "
            "that wrote it, or copy it there into a table of version 2"
        )


def check_understood(metadata: TableMetadata, name: str) -> None:
    """Raises `NotUnderstood` unless files are read by the names of their columns and nothing else."""
    check_version(metadata, name)
    found = renamed(
        (schema.find_field(each).field_id, each) for schema in metadata.schemas for each in schema.column_names
    )
    if found:
        raise NotUnderstood(
            f"{name} has columns that were renamed, or dropped and made anew ({', '.join(found)}): its older files "
            "have other names than the table, and files are read by names here. Read and tidy it with another engine"
        )
