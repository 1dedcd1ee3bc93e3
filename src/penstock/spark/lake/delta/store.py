"""One Delta table: `TableStore` through deltalake."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, CommitProperties, RemoveAction, Transaction

from penstock.spark.errors import BadOption, Missing
from penstock.spark.lake.delta.actions import add_action, delta_schema, remove_action
from penstock.spark.lake.delta.features import check_understood
from penstock.spark.lake.delta.history import DeltaHistory
from penstock.spark.lake.delta.log import DeltaLog
from penstock.spark.lake.evolution import needs, plain
from penstock.spark.lake.followed import kept_by
from penstock.spark.lake.parquet_files import full
from penstock.spark.lake.partitioning import partition_texts
from penstock.spark.lake.places import absolute, opened
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
    NotUnderstood,
    TableFile,
)
from penstock.spark.stores.storage import Storage

if TYPE_CHECKING:
    from penstock.spark.lake.options import LakeOptions

OFFSETS: Final = "penstock/"
"""Application ids of offsets: penstock/<topic id>/<partition>, and /<ordinal> for a topic's further readers."""

DEFAULTS: Final = {
    # Opening a table and committing cost as much as the log is long since its last checkpoint.
    "delta.checkpointInterval": "20",
}


class _Handle:
    """A table as this process last saw it: planner processes live long and commit one batch after another."""

    def __init__(self, location: str, storage: Storage) -> None:
        self.table = DeltaTable(location, storage_options=storage.for_delta(location))
        self.log = DeltaLog(location, storage)
        self.storage = storage
        self._stamp = self.log.stamp(self.table.version())

    def is_current(self) -> bool:
        """Brings it up to date; False when that cannot be: the table was deleted, made anew, or its log cleaned."""
        version = self.table.version()
        if self._stamp is None or self.log.stamp(version) != self._stamp:
            return False
        # To update is to list the log, which may be long: one look says whether there is anything new.
        if self.log.stamp(version + 1) is not None:
            self.table.update_incremental()
            self._stamp = self.log.stamp(self.table.version())
        return True


class _Handles(threading.local):
    """One for each table and thread: a handle moves under whoever holds it."""

    def __init__(self) -> None:
        self.by_location: dict[str, _Handle] = {}


_handles = _Handles()


class DeltaStore:
    """A Delta table by its path."""

    def __init__(self, options: LakeOptions) -> None:
        self._location = absolute(options.path)
        self._compression = options.compression
        self._storage = Storage.of(options.storage)
        self._history = DeltaHistory(self._location, self._storage)
        self._seen: int | None = None
        if re.search(r"%[0-9a-fA-F]{2}|\\", self._location):
            raise BadOption(f"a Delta table cannot be at {options.path}: its library unescapes % and \\ in paths")

    @property
    def format(self) -> str:
        return "delta"

    @property
    def location(self) -> str:
        return self._location

    @property
    def storage(self) -> Storage:
        return self._storage

    def exists(self) -> bool:
        found = DeltaLog(self._location, self._storage).begun()
        return found or bool(DeltaTable.is_deltatable(self._location, self._storage.for_delta(self._location)))

    def create(
        self, schema: pa.Schema, partition_by: Sequence[str], properties: Mapping[str, str] | None = None
    ) -> None:
        columns = [column for column in partition_by if "(" in column]
        if columns:
            raise BadOption(f"partition.by has {columns[0]}: Delta tables are split by columns; add one that has it")
        try:
            DeltaTable.create(
                self._location,
                schema=delta_schema(plain(schema)),
                mode="ignore",
                partition_by=list(partition_by),
                configuration=DEFAULTS | dict(properties or {}),
                raise_if_key_not_exists=False,
                storage_options=self._storage.for_delta(self._location),
            )
        except (DeltaError, OSError):
            # Somebody else may have been quicker; then theirs it is.
            if not self.exists():
                raise

    def refresh(self) -> None:
        handle = _handles.by_location.get(self._location)
        try:
            if handle is None or handle.storage != self._storage or not handle.is_current():
                _handles.by_location[self._location] = _Handle(self._location, self._storage)
            self._seen = self.version()
        except TableNotFoundError as failure:
            _handles.by_location.pop(self._location, None)
            raise Missing(f"there is no Delta table at {self._location}") from failure
        except DeltaError as failure:
            if "Unsupported" not in str(failure) and "catalog-managed" not in str(failure):
                raise
            raise NotUnderstood(
                f"{self._location} is of a kind that deltalake cannot open ({failure}): read it with an engine that "
                "knows it, such as Spark with Delta's own jar"
            ) from failure

    @property
    def _handle(self) -> _Handle:
        if self._location not in _handles.by_location:
            self.refresh()
        return _handles.by_location[self._location]

    @property
    def table(self) -> DeltaTable:
        """For this package and for readers that know Delta: as it was last refreshed."""
        return self._handle.table

    def schema(self) -> pa.Schema:
        return plain(pa.schema(self.table.schema()))

    def partition_by(self) -> list[str]:
        return list(self.table.metadata().partition_columns)

    def version(self) -> int:
        return int(self.table.version())

    def committed(self, keys: Collection[RangeKey] | None = None) -> dict[RangeKey, int]:
        # At least as new as the handle: what moved between the two makes the commit conflict, the other way round it
        # would go unseen.
        found = self._handle.log.transactions(self.version())
        if keys is not None:
            return {key: found[text] for key in keys if (text := key_text(key)) in found}
        return {key: end for text, end in found.items() if (key := key_of(text)) is not None}

    def last_batch(self, query_id: str) -> int | None:
        return self._handle.log.transactions(self.version()).get(query_id)

    def layout(self) -> Layout:
        return Layout(self._location, keeps_partition_columns=False, small_integers=True)

    def can_widen(self, have: pa.DataType, wanted: pa.DataType) -> bool:
        return False

    def evolve(self, schema: pa.Schema) -> None:
        new = needs(self.schema(), plain(schema))
        if not new:
            return
        try:
            self.table.alter.add_columns(delta_schema(pa.schema(new)).fields)
        except CommitFailedError as failure:
            raise Conflicted(str(failure)) from failure
        except Exception as failure:
            # deltalake raises bare exceptions here.
            have = {field.name: field.type for field in self.schema()}
            told = "; ".join(f"{field.name}: {have.get(field.name, 'no column')} to {field.type}" for field in new)
            raise CannotEvolve(
                f"the Delta table {self._location} cannot take {told} ({str(failure).splitlines()[0]}). Cast the "
                "column in the query, or write to another table"
            ) from failure
        self.refresh()

    def commit(self, batch: BatchCommit) -> Commit:
        base = self.version()
        actions: list[AddAction | RemoveAction] = [add_action(each) for each in batch.files]
        if batch.overwrite:
            actions += [remove_action(each, self._location, data_change=True) for each in self.files()]
        actions += [remove_action(each, self._location, data_change=True) for each in batch.replaced]
        marks = [Transaction(key_text(each.key), each.end) for each in batch.ranges]
        if batch.batch_id >= 0:
            marks.append(Transaction(batch.query_id, batch.batch_id))
        # Whatever removes files may only follow the very version it saw.
        follows = batch.overwrite or batch.merged is not None
        self.transact(actions, batch.told(), marks, retries=0 if follows else None)
        self.refresh()
        return next(
            commit
            for commit in self.commits(after=base)
            if (commit.query_id, commit.batch_id) == (batch.query_id, batch.batch_id)
        )

    def transact(
        self,
        actions: list[AddAction | RemoveAction],
        told: Mapping[str, Any],
        marks: list[Transaction],
        *,
        retries: int | None,
    ) -> None:
        """One transaction on top of the version that was refreshed; None retries past commits that do not touch the
        same marks, 0 accepts no other commit."""
        if self._seen != self.version():
            raise Conflicted(f"{self._location} was looked at again since version {self._seen}")
        check_understood(self.table, self._location)
        try:
            self.table.create_write_transaction(
                actions,
                "append",
                self.table.schema(),
                partition_by=self.partition_by(),
                commit_properties=CommitProperties(
                    custom_metadata={COMMIT_KEY: json.dumps(told)},
                    max_commit_retries=retries,
                    app_transactions=marks,
                ),
            )
        except CommitFailedError as failure:
            raise Conflicted(f"another commit to {self._location} came first: {failure}") from failure
        except (DeltaError, OSError) as failure:
            if any(sign in str(failure) for sign in ("No space left", "os error 28", "quota")):
                raise full(f"{self._location}/_delta_log/", "No space left on device") from failure
            raise

    def actions(self, version: int) -> list[dict[str, Any]] | None:
        """What one version did, as the log has it; None when that was cleaned away."""
        return self._handle.log.actions(version)

    def kept_actions(self, version: int) -> list[dict[str, Any]] | None:
        """What one version did to rows, as it was put aside when its file of the log went."""
        return self._history.actions(version)

    def commits(self, after: int = -1) -> Iterator[Commit]:
        return self._handle.log.commits(after)

    def files(self, version: int | None = None) -> list[TableFile]:
        options = self._storage.for_delta(self._location)
        table = self.table if version is None else DeltaTable(self._location, version=version, storage_options=options)
        check_understood(table, self._location)
        found = pa.table(table.get_add_actions(flatten=True))
        names = list(table.metadata().partition_columns)
        texts = {name: partition_texts(found.column(f"partition.{name}")).to_pylist() for name in names}
        rows = found.column("num_records").to_pylist() if "num_records" in found.column_names else []
        return [
            TableFile(
                path=f"{self._location}/{unquote(path)}",
                size_bytes=size,
                rows=(rows[index] if rows else None) or 0,
                partition={name: texts[name][index] for name in names},
            )
            for index, (path, size) in enumerate(
                zip(found.column("path").to_pylist(), found.column("size_bytes").to_pylist(), strict=True)
            )
        ]

    def properties(self) -> dict[str, str]:
        return dict(self.table.metadata().configuration)

    def set_properties(self, properties: Mapping[str, str]) -> None:
        try:
            self.table.alter.set_table_properties(dict(properties), raise_if_not_exists=False)
        except CommitFailedError as failure:
            raise Conflicted(str(failure)) from failure
        self.refresh()

    def compact(self, target_bytes: int, *, whole: bool = True) -> Compaction:
        from penstock.spark.lake.delta.compaction import compact

        self.refresh()
        if KEYED_PROPERTY in self.properties():
            # Its files are its buckets, one for each: what merges them into others undoes what merges are quick by.
            return Compaction()
        return compact(self, target_bytes, self._compression, whole=whole)

    def expire(self, older_than: datetime) -> Expiry:
        """Deletes the files of versions that were replaced before then, and old entries of the log as the table's own
        settings have it (`delta.logRetentionDuration`, 30 days)."""
        self.refresh()
        before = len(self._handle.log.versions())
        removed = self._vacuum(older_than, full=False, dry_run=False)
        self.table.cleanup_metadata()
        self.refresh()
        gone = before - len(self._handle.log.versions())
        return Expiry(snapshots_removed=max(0, gone), files_removed=len(removed))

    def thin(self, now: datetime) -> Expiry:
        """Removes commits that a checkpoint makes superfluous, as far as the ledger has them."""
        from penstock.spark.lake.delta.thinning import plan_thinning
        from penstock.spark.lake.ledger import Ledger

        self.refresh()
        log = self._handle.log
        written_down = Ledger(self._location, self._storage).complete_through()
        going = plan_thinning(log.files(), newest=self.version(), written_down=written_down, now=now)
        keep = kept_by(self.properties().get(HISTORY_PROPERTY, ""))
        if keep:
            self._history.put_aside(log, (int(name[:20]) for name in going if name[20:] == ".json"))
            self._history.forget(now - keep)
        log.remove(going)
        return Expiry(snapshots_removed=sum(name.endswith(".json") for name in going))

    def orphans(self, older_than: datetime) -> list[str]:
        self.refresh()
        return [f"{self._location}/{path}" for path in self._vacuum(older_than, full=True, dry_run=True)]

    def vacuum(self, older_than: datetime) -> int:
        self.refresh()
        removed = self._vacuum(older_than, full=True, dry_run=False)
        self.refresh()
        return len(removed)

    def _vacuum(self, older_than: datetime, *, full: bool, dry_run: bool) -> list[str]:
        # Whoever does not know a feature takes its files for files that nobody names.
        check_understood(self.table, self._location)
        age = datetime.now(UTC) - older_than
        hours = max(0, int(age.total_seconds() // 3600))
        # It names files that are gone already, as long as the log says that they were removed.
        named = self.table.vacuum(retention_hours=hours, dry_run=True, enforce_retention_duration=False, full=full)
        files, root = opened(self._location, self._storage)
        there = [each.is_file for each in files.get_file_info([f"{root}/{path}" for path in sorted(set(named))])]
        found = [path for path, is_there in zip(sorted(set(named)), there, strict=True) if is_there]
        if found and not dry_run:
            self.table.vacuum(retention_hours=hours, dry_run=False, enforce_retention_duration=False, full=full)
        return found


def key_text(key: RangeKey) -> str:
    text = f"{OFFSETS}{key.topic}/{key.partition}"
    return f"{text}/{key.ordinal}" if key.ordinal else text


def key_of(text: str) -> RangeKey | None:
    """The key of an application id; None for others' ids."""
    parts = text.removeprefix(OFFSETS).split("/")
    if not text.startswith(OFFSETS) or len(parts) not in (2, 3) or not all(part.isdigit() for part in parts[1:]):
        return None
    return RangeKey(parts[0], int(parts[1]), int(parts[2]) if len(parts) == 3 else 0)
