"""pyiceberg's transactions, without copying a table's metadata for every look at it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyiceberg.table import Transaction
from pyiceberg.table.update import RemoveSnapshotsUpdate, UpdatesAndRequirements, UpdateTableMetadata

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.update import TableUpdate


class QuickTransaction(Transaction):
    """Remembers the metadata that its updates come to.

    pyiceberg makes it anew, a deep copy of every snapshot, some fifteen times a commit: that was nine tenths of the
    work on a table of 150 snapshots. Metadata is frozen, so one copy serves them all.
    """

    def __init__(self, table: Table) -> None:
        super().__init__(table)
        self._seen: tuple[tuple[TableUpdate, ...], TableMetadata] | None = None

    @property
    def table_metadata(self) -> TableMetadata:
        if not self._updates:
            return self._table.metadata
        # Updates are a tuple that is replaced, never changed.
        if self._seen is None or self._seen[0] is not self._updates:
            self._seen = (self._updates, super().table_metadata)
        return self._seen[1]


class ForgetSnapshots(UpdateTableMetadata["ForgetSnapshots"]):
    """Takes snapshots that no branch or tag names out of the metadata; pyiceberg's own looks at all of it for each."""

    def __init__(self, transaction: Transaction, snapshot_ids: list[int]) -> None:
        super().__init__(transaction)
        self._snapshot_ids = snapshot_ids

    def _commit(self) -> UpdatesAndRequirements:
        return (RemoveSnapshotsUpdate.model_validate({"snapshot-ids": self._snapshot_ids}),), ()
