"""What versions brought, whichever format the table has."""

from __future__ import annotations

from penstock.spark.lake.following.versions import NAME_PREFIX, Brought
from penstock.spark.lake.store import TableStore


def identity_of(store: TableStore) -> str:
    """The table's own id, another one when it is made anew."""
    if store.format == "delta":
        from penstock.spark.lake.delta.store import DeltaStore
        from penstock.spark.lake.following import delta

        assert isinstance(store, DeltaStore)
        return delta.identity(store)
    from penstock.spark.lake.following import iceberg
    from penstock.spark.lake.iceberg.store import IcebergStore

    assert isinstance(store, IcebergStore)
    return iceberg.identity(store)


def followed_id(store: TableStore) -> str:
    """What ranges have where those of a topic have its id."""
    return f"{NAME_PREFIX}{identity_of(store)}"


def brought_by(store: TableStore, begin: int, end: int) -> list[Brought]:
    """Versions [begin, end), in their order."""
    # Files alone do not tell the rows of some tables; whoever reads is told so before.
    if store.format == "delta":
        from penstock.spark.lake.delta.features import check_understood
        from penstock.spark.lake.delta.store import DeltaStore
        from penstock.spark.lake.following import delta

        assert isinstance(store, DeltaStore)
        check_understood(store.table, store.location)
        return delta.brought(store, begin, end)
    from penstock.spark.lake.following import iceberg
    from penstock.spark.lake.iceberg.features import check_understood as check_iceberg
    from penstock.spark.lake.iceberg.store import IcebergStore

    assert isinstance(store, IcebergStore)
    check_iceberg(store.table.metadata, store.location)
    return iceberg.brought(store, begin, end)
