"""What upkeep asks of an Iceberg table that is open: compaction, expiry and orphans see no more of the store."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.table import Table, Transaction

    from penstock.spark.lake.iceberg.catalogs import Place
    from penstock.spark.stores.storage import Storage

T = TypeVar("T")


class OpenTable(Protocol):
    """One table, as it was last refreshed."""

    place: Place

    @property
    def table(self) -> Table: ...

    @property
    def location(self) -> str: ...

    @property
    def storage(self) -> Storage: ...

    def refresh(self) -> None: ...

    def schema(self) -> pa.Schema: ...

    def again(self, change: Callable[[Transaction], T], /) -> T:
        """Commits a change that is right on top of any version."""
