"""The end of the log of a table by key: its records as changes, and the table as they leave it."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
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
    from penstock.spark.stores.storage import Storage

_NAMED: Final = "metadatacolumns"
_AT_ONCE: Final = 16
_GRAVES_BYTES: Final = 64 << 20


class Graves:
    """What files of tables remember of deletes. A file never changes, so what was read of it is kept, up to so many
    bytes; a footer in an object store is a round trip, so those that are not known are read side by side."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._known: OrderedDict[tuple[str, ChangeColumns], pa.Table] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, paths: Sequence[str], columns: ChangeColumns, storage: Storage) -> list[pa.Table]:
        """By file, in their order."""
        with self._lock:
            known = {path: self._known[path, columns] for path in paths if (path, columns) in self._known}
        missing = [path for path in dict.fromkeys(paths) if path not in known]
        if missing:
            with ThreadPoolExecutor(min(_AT_ONCE, len(missing)), thread_name_prefix="penstock-graves") as readers:
                read = readers.map(lambda path: graves_in(path, columns, storage), missing)
                known.update(zip(missing, read, strict=True))
        with self._lock:
            for path in paths:
                self._known[path, columns] = known[path]
                self._known.move_to_end((path, columns))
            self._forget()
        return [known[path] for path in paths]

    def _forget(self) -> None:
        held = sum(each.nbytes + _ENTRY_BYTES for each in self._known.values())
        while held > self._bytes_max:
            held -= self._known.popitem(last=False)[1].nbytes + _ENTRY_BYTES


_ENTRY_BYTES: Final = 512
"""Of a file that remembers nothing."""
_graves = Graves(_GRAVES_BYTES)


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
    found = _graves.of([file.path for file in store.files()], columns, store.storage)
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
