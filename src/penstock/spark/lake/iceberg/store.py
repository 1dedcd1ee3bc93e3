"""An Iceberg table as the lake sees it."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeVar

from penstock.spark.errors import BadOption, Missing
from penstock.spark.lake.followed import kept_by
from penstock.spark.lake.iceberg import catalogs, snapshots
from penstock.spark.lake.options import LakeOptions
from penstock.spark.lake.places import absolute
from penstock.spark.lake.ranges import RangeKey
from penstock.spark.lake.store import (
    COMMIT_KEY,
    HISTORY_PROPERTY,
    KEYED_PROPERTY,
    BatchCommit,
    CannotEvolve,
    Commit,
    Compaction,
    Conflicted,
    Expiry,
    Layout,
    TableFile,
)
from penstock.spark.stores.storage import Storage

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.catalog import Catalog
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table, Transaction

T = TypeVar("T")

OFFSETS: Final = "penstock.offsets."
BATCHES: Final = "penstock.batch."

OUR_PROPERTIES: Final = {
    # A conflict comes back to us: whether the rows may still enter is decided by looking at the offsets again.
    "commit.retry.num-retries": "0",
    # Metadata is written whole with each commit; without these its old versions and manifests pile up for ever.
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
    "commit.manifest-merge.enabled": "true",
    "commit.manifest.min-count-to-merge": "50",
}
KEEP_NEWEST: Final = 20
KEEP_ALL: Final = timedelta(minutes=10)
READERS_AGE: Final = timedelta(hours=2)
NOTHING: Final = timedelta()
SNAPSHOTS_MOST: Final = 200
"""A commit costs 15 ms, and 0.1 ms more for every snapshot that the table has. So appends are kept as single steps for
minutes, states before compactions for as long as readers may take, and overwritten states up to a number."""

_NAME_MAPPING: Final = "schema.name-mapping.default"
_TRIES: Final = 8


class IcebergStore:
    """One Iceberg table: a name in a catalog. Nothing is opened before it is needed."""

    format = "iceberg"

    def __init__(self, options: LakeOptions) -> None:
        self._options = options
        self.storage = Storage.of(options.storage)
        self.place = catalogs.place_of(options)
        self._loaded: Table | None = None

    @property
    def location(self) -> str:
        if self._loaded is not None or not self.place.location:
            return absolute(self.table.location())
        return self.place.location

    @property
    def table(self) -> Table:
        """pyiceberg's table as `refresh` last saw it."""
        if self._loaded is None:
            self.refresh()
        assert self._loaded is not None
        return self._loaded

    @cached_property
    def _catalog(self) -> Catalog:
        return catalogs.open_catalog(self.place.catalog, self.place.properties)

    def exists(self) -> bool:
        try:
            self.refresh()
        except Missing:
            return False
        return True

    def refresh(self) -> None:
        from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

        try:
            self._loaded = self._catalog.load_table(self.place.identifier)
        except (NoSuchTableError, NoSuchNamespaceError):
            raise Missing(f"there is no Iceberg table {self.place.name} in {self.place.catalog}") from None
        found = absolute(self._loaded.location())
        if self.place.location and found != self.place.location:
            raise BadOption(
                f"{self.place.name} in {self.place.catalog} is at {found}, not at {self.place.location}: give another "
                f"path, or another option table"
            )

    def create(
        self, schema: pa.Schema, partition_by: Sequence[str], properties: Mapping[str, str] | None = None
    ) -> None:
        from pyiceberg.exceptions import CommitFailedException, TableAlreadyExistsError

        from penstock.spark.lake.iceberg.schemas import add_partition_fields, relaxed

        if self.exists():
            return
        catalog = catalogs.open_catalog(self.place.catalog, self.place.properties, create=True)
        self.__dict__["_catalog"] = catalog
        self._make_namespace(catalog)
        columns = relaxed(schema)
        given = {**OUR_PROPERTIES, **(properties or {})}
        making = catalog.create_table_transaction(
            self.place.identifier, columns, location=self._location_to_make(), properties=given
        )
        with making.update_spec() as spec:
            add_partition_fields(spec, partition_by, columns)
        # Tasks write files without field ids: columns are found by name.
        making.set_properties({_NAME_MAPPING: making.table_metadata.schema().name_mapping.model_dump_json()})
        try:
            making.commit_transaction()
        except (TableAlreadyExistsError, CommitFailedException):
            if not self.exists():
                raise
        self.refresh()

    def _location_to_make(self) -> str | None:
        file = catalogs.sqlite_file(self.place.catalog)
        if self.place.location or file is None:
            return self.place.location or None
        return str(file.absolute().parent.joinpath(self.place.identifier[-1]))

    def _make_namespace(self, catalog: Catalog) -> None:
        from pyiceberg.exceptions import NamespaceAlreadyExistsError

        for tries in range(1, _TRIES):
            try:
                catalog.create_namespace_if_not_exists(self.place.identifier[:-1])
                return
            except NamespaceAlreadyExistsError:
                return
            except _database_errors():
                catalogs.pause(tries)
        catalog.create_namespace_if_not_exists(self.place.identifier[:-1])

    def schema(self) -> pa.Schema:
        from penstock.spark.lake.iceberg.schemas import to_arrow

        return to_arrow(self.table.schema())

    def partition_by(self) -> list[str]:
        from penstock.spark.lake.iceberg.schemas import partition_fields

        return partition_fields(self.table.spec(), self.table.schema())

    def version(self) -> int:
        return snapshots.version_of(self.table.current_snapshot())

    def committed(self, keys: Collection[RangeKey] | None = None) -> dict[RangeKey, int]:
        found = {
            _key_of(name.removeprefix(OFFSETS)): int(value)
            for name, value in self.table.properties.items()
            if name.startswith(OFFSETS)
        }
        return found if keys is None else {key: found[key] for key in keys if key in found}

    def last_batch(self, query_id: str) -> int | None:
        found = self.table.properties.get(BATCHES + query_id)
        return None if found is None else int(found)

    def layout(self) -> Layout:
        return Layout(f"{self.location}/data", keeps_partition_columns=True)

    def can_widen(self, have: pa.DataType, wanted: pa.DataType) -> bool:
        from penstock.spark.lake.iceberg.schemas import can_widen

        return can_widen(have, wanted)

    def evolve(self, schema: pa.Schema) -> None:
        from pyiceberg.exceptions import ValidationError

        from penstock.spark.lake.iceberg.schemas import misfits, relaxed
        from penstock.spark.lake.iceberg.transactions import QuickTransaction

        self.refresh()
        found = misfits(self.schema(), relaxed(schema))
        if found:
            raise CannotEvolve(f"{self.place.name}: " + "; ".join(found))
        try:
            with QuickTransaction(self.table) as transaction, transaction.update_schema() as update:
                update.union_by_name(relaxed(schema))
        except (ValidationError, ValueError) as refused:
            raise CannotEvolve(f"{self.place.name}: {refused}") from refused
        except _conflicts() as other:
            raise Conflicted(f"{self.place.name} was changed by somebody else at the same time") from other

    def commit(self, batch: BatchCommit) -> Commit:
        from penstock.spark.lake.iceberg.data_files import data_files
        from penstock.spark.lake.iceberg.features import check_version
        from penstock.spark.lake.iceberg.transactions import QuickTransaction

        table = self.table
        check_version(table.metadata, self.place.name)
        told = json.dumps(batch.told(), separators=(",", ":"))
        properties = {COMMIT_KEY: told, snapshots.KIND_KEY: batch.kind}
        directory = self.layout().directory
        added = data_files(table.io, table.metadata, [f"{directory}/{each.path}" for each in batch.files])
        transaction = QuickTransaction(table)
        if batch.overwrite:
            self._replace_all(transaction, added, properties)
        elif batch.replaced:
            self._replace(transaction, batch.replaced, added, properties)
        else:
            # Without rows too: the snapshot is what the next commit is compared with.
            with transaction.update_snapshot(snapshot_properties=properties).merge_append() as append:
                for file in added:
                    append.append_data_file(file)
        moved = {_property_of(each.key): str(each.end) for each in batch.ranges}
        if batch.batch_id >= 0:
            moved[BATCHES + batch.query_id] = str(batch.batch_id)
        if moved:
            transaction.set_properties(moved)
        try:
            self._loaded = transaction.commit_transaction()
        except _conflicts() as other:
            raise Conflicted(f"{self.place.name} was changed by somebody else at the same time: {other}") from other
        landed = self.table.current_snapshot()
        assert landed is not None
        return snapshots.commit_of(landed)

    def _replace_all(self, transaction: Transaction, added: list[DataFile], properties: dict[str, str]) -> None:
        from penstock.spark.lake.iceberg.data_files import live_entries
        from penstock.spark.lake.iceberg.features import check_understood
        from penstock.spark.lake.iceberg.replacing import ReplaceFiles

        check_understood(self.table.metadata, self.place.name)
        current = self.table.current_snapshot()
        removed = [entry.data_file for _, entries in live_entries(self.table.io, current) for entry in entries]
        with ReplaceFiles(transaction, removed=removed, added=added, same_rows=False, properties=properties):
            pass

    def _replace(
        self, transaction: Transaction, old: Sequence[TableFile], added: list[DataFile], properties: dict[str, str]
    ) -> None:
        """Files of the loaded snapshot for others."""
        from penstock.spark.lake.iceberg.data_files import live_files
        from penstock.spark.lake.iceberg.replacing import ReplaceFiles

        going = {file.path for file in old}
        entries = live_files(self.table, self.table.current_snapshot())
        removed = [each.data_file for each in entries if absolute(each.data_file.file_path) in going]
        if len(removed) != len(going):
            raise Conflicted(f"{self.place.name} no longer has all the files that were to be replaced")
        with ReplaceFiles(transaction, removed=removed, added=added, same_rows=False, properties=properties):
            pass

    def commits(self, after: int = -1) -> Iterator[Commit]:
        return snapshots.history(self.table.metadata, after)

    def added_rows(self) -> dict[int, int]:
        """Version → rows of the files that it added, as its snapshot counted them."""
        return snapshots.added_rows(self.table.metadata)

    def files(self, version: int | None = None) -> list[TableFile]:
        from penstock.spark.lake.iceberg.data_files import live_files, partition_texts

        table = self.table
        return [
            TableFile(
                path=absolute(entry.data_file.file_path),
                size_bytes=entry.data_file.file_size_in_bytes,
                rows=entry.data_file.record_count,
                partition=partition_texts(table.metadata, entry.data_file),
            )
            for entry in live_files(table, snapshots.snapshot_of(table, version))
        ]

    def properties(self) -> dict[str, str]:
        return dict(self.table.properties)

    def set_properties(self, properties: Mapping[str, str]) -> None:
        def change(transaction: Transaction) -> None:
            transaction.set_properties(dict(properties))

        self.again(change)

    def again(self, change: Callable[[Transaction], T]) -> T:
        """Commits a change that is right on top of any version: tried again on the newest until nobody was faster."""
        from penstock.spark.lake.iceberg.transactions import QuickTransaction

        for tries in range(1, _TRIES + 1):
            self.refresh()
            transaction = QuickTransaction(self.table)
            result = change(transaction)
            try:
                self._loaded = transaction.commit_transaction()
            except _conflicts() as other:
                if tries == _TRIES:
                    raise Conflicted(f"{self.place.name} was changed by others {_TRIES} times in a row") from other
                catalogs.pause(tries)
            else:
                return result
        raise AssertionError("the last try returns or raises")

    def compact(self, target_bytes: int, *, whole: bool = True) -> Compaction:
        from penstock.spark.lake.iceberg.compaction import compact

        self.refresh()
        if KEYED_PROPERTY in self.properties():
            # Its files are its buckets, one for each: what merges them into others undoes what merges are quick by.
            return Compaction()
        return compact(self, target_bytes, self._options.compression, whole=whole)

    def expire(self, older_than: datetime) -> Expiry:
        from penstock.spark.lake.iceberg.expiry import expire

        return expire(self, older_than)

    def thin(self, now: datetime) -> Expiry:
        """Forgets snapshots that are not old yet but more than metadata can bear; see `snapshots.spare`."""
        from penstock.spark.lake.iceberg.expiry import thin

        self.refresh()
        return thin(self, thinning(now, kept_by(self.properties().get(HISTORY_PROPERTY, ""))))

    def orphans(self, older_than: datetime) -> list[str]:
        from penstock.spark.lake.iceberg.expiry import orphans

        return orphans(self, older_than)

    def vacuum(self, older_than: datetime) -> int:
        from penstock.spark.lake.iceberg.expiry import delete

        return delete(self, self.orphans(older_than))


def thinning(now: datetime, keep: timedelta = NOTHING) -> snapshots.Thinning:
    return snapshots.Thinning(
        keep_newest=KEEP_NEWEST,
        most=SNAPSHOTS_MOST,
        before_ms=round((now - KEEP_ALL).timestamp() * 1000),
        readers_before_ms=round((now - READERS_AGE).timestamp() * 1000),
        followed_since_ms=round((now - keep).timestamp() * 1000) if keep else None,
    )


def _property_of(key: RangeKey) -> str:
    return f"{OFFSETS}{key.topic}.{key.partition}" + (f"+{key.ordinal}" if key.ordinal else "")


def _key_of(text: str) -> RangeKey:
    topic, _, place = text.rpartition(".")
    partition, _, ordinal = place.partition("+")
    return RangeKey(topic, int(partition), int(ordinal or 0))


def _conflicts() -> tuple[type[Exception], ...]:
    """What says that somebody else was first, or leaves open whether the commit landed."""
    from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException, ServerError

    return (CommitFailedException, CommitStateUnknownException, ServerError, *_database_errors())


def _database_errors() -> tuple[type[Exception], ...]:
    try:
        from sqlalchemy.exc import IntegrityError, OperationalError
    except ImportError:
        return ()
    return (OperationalError, IntegrityError)
