"""Files for other files, in one snapshot. pyiceberg can add files and delete rows; this is the missing third."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING

from pyiceberg.manifest import DataFile, ManifestEntry, ManifestEntryStatus, ManifestFile
from pyiceberg.table.snapshots import Operation, Summary
from pyiceberg.table.update.snapshot import _SnapshotProducer

from penstock.spark.lake.iceberg.data_files import live_entries
from penstock.spark.lake.store import Conflicted

if TYPE_CHECKING:
    from pyiceberg.table import Transaction


class ReplaceFiles(_SnapshotProducer["ReplaceFiles"]):
    """A snapshot that has `added` in place of `removed`; all else stays, its manifests untouched where possible.

    `same_rows` says that the rows are the same as before (a compaction): readers of changes may then pass it over.
    Raises `Conflicted` when a file to remove is not in the snapshot that it builds on.
    """

    def __init__(
        self,
        transaction: Transaction,
        *,
        removed: Iterable[DataFile],
        added: Iterable[DataFile],
        same_rows: bool,
        properties: dict[str, str],
    ) -> None:
        super().__init__(
            Operation.OVERWRITE,
            transaction,
            transaction._table.io,
            commit_uuid=uuid.uuid4(),
            snapshot_properties=properties,
        )
        self._same_rows = same_rows
        for file in removed:
            self.delete_data_file(file)
        for file in added:
            self.append_data_file(file)

    def _build_delete_files_partition_predicate(self) -> None:
        """Nothing to build: files are found by name, not by what partition they are of."""

    @cached_property
    def _split(self) -> tuple[list[ManifestFile], list[tuple[ManifestFile, list[ManifestEntry]]], list[ManifestEntry]]:
        """(manifests that stay, manifests to write anew with the entries that stay, entries that go)"""
        stay: list[ManifestFile] = []
        anew: list[tuple[ManifestFile, list[ManifestEntry]]] = []
        gone: list[ManifestEntry] = []
        parent = self._parent_snapshot_id
        snapshot = self._transaction.table_metadata.snapshot_by_id(parent) if parent is not None else None
        for manifest, entries in live_entries(self._io, snapshot):
            going = [entry for entry in entries if entry.data_file in self._deleted_data_files]
            if not going:
                stay.append(manifest)
                continue
            gone += going
            anew.append((manifest, [entry for entry in entries if entry.data_file not in self._deleted_data_files]))
        if len(gone) != len(self._deleted_data_files):
            raise Conflicted("files to be replaced are no longer in the table: somebody else replaced them first")
        return stay, anew, gone

    def _existing_manifests(self) -> list[ManifestFile]:
        stay, anew, _ = self._split
        found = [manifest for manifest in stay if manifest.has_added_files() or manifest.has_existing_files()]
        for manifest, entries in anew:
            if entries:
                with self.new_manifest_writer(self.spec(manifest.partition_spec_id)) as writer:
                    for entry in entries:
                        writer.add_entry(_as(ManifestEntryStatus.EXISTING, entry, entry.snapshot_id))
                found.append(writer.to_manifest_file())
        return found

    def _deleted_entries(self) -> list[ManifestEntry]:
        return [_as(ManifestEntryStatus.DELETED, entry, self._snapshot_id) for entry in self._split[2]]

    def _summary(self, snapshot_properties: dict[str, str] | None = None) -> Summary:
        found = super()._summary(snapshot_properties or {})
        # pyiceberg counts totals only for the operations that it makes itself, so the word is put in afterwards.
        return Summary(Operation.REPLACE, **found.additional_properties) if self._same_rows else found


def _as(status: ManifestEntryStatus, entry: ManifestEntry, snapshot_id: int | None) -> ManifestEntry:
    return ManifestEntry.from_args(
        status=status,
        snapshot_id=snapshot_id,
        sequence_number=entry.sequence_number,
        file_sequence_number=entry.file_sequence_number,
        data_file=entry.data_file,
    )
