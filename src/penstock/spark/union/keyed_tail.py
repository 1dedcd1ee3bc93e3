"""The end of the log of a table by key: its records as changes, and the table as they leave it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from penstock.spark.lake.keyed.bucket_task import graves_in
from penstock.spark.lake.keyed.changes import SEQUENCE, ChangeColumns, columns_of
from penstock.spark.lake.keyed.graves import schema_of, young
from penstock.spark.lake.keyed.reading import followed
from penstock.spark.lake.keyed.settings import KeyedSettings
from penstock.spark.lake.keyed.shaping import METADATA, as_changes
from penstock.spark.lake.store import KEYED_PROPERTY

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from penstock.spark.lake.store import TableStore

_NAMED: Final = "metadatacolumns"


@dataclass(frozen=True, slots=True)
class KeyedSide:
    """What one version of a table by key says of changes."""

    settings: KeyedSettings
    columns: ChangeColumns
    deletes: pa.Table | None
    """Those that it remembers; None where none need be."""

    def together(self, rows: DataFrame, tail: DataFrame) -> DataFrame:
        """`rows` of that version as the records of `tail` leave them."""
        changes = as_changes(tail, self.settings, {name.lower(): name for name in rows.columns})
        return followed(rows, changes, self.columns, self.deletes)


def keyed_side_of(store: TableStore) -> KeyedSide | None:
    """Of the version that is loaded; None for a table that rows are added to."""
    said = store.properties().get(KEYED_PROPERTY)
    if said is None:
        return None
    settings = KeyedSettings.of_property(said)
    columns = columns_of(settings, store.schema())
    return KeyedSide(settings, columns, _deletes(store, settings, columns) if settings.keeps_deletes else None)


def _deletes(store: TableStore, settings: KeyedSettings, columns: ChangeColumns) -> pa.Table:
    """As the next merge will see them."""
    import pyarrow as pa

    since_ms = time.time_ns() // 1_000_000 - settings.keep_deletes_ms
    found = [graves_in(file.path, columns, store.storage) for file in store.files()]
    return young(pa.concat_tables([schema_of(columns).empty_table(), *found]), since_ms)


def with_places(options: Mapping[str, str]) -> dict[str, str]:
    """Options of the source that say where a row is from, too; raw records say it anyway."""
    small = {name.lower(): value for name, value in options.items()}
    if "value.format" not in small:
        return dict(options)
    named = [name.strip() for name in small.get(_NAMED, "").split(",") if name.strip()]
    kept = {name: value for name, value in options.items() if name.lower() != _NAMED}
    return {**kept, "metadataColumns": ",".join([*named, *(name for name in METADATA if name not in named)])}


def value_columns(schema: StructType) -> StructType:
    """The table's columns that come from values."""
    from pyspark.sql.types import StructType

    return StructType([field for field in schema.fields if field.name != SEQUENCE])
