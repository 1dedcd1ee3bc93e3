"""Finding tables by name or path: a warehouse is a directory of Delta tables, and a catalog of Iceberg tables in it.

lake/orders/_delta_log/…        the Delta table `orders`
lake/shop/clicks/_delta_log/…   the Delta table `shop.clicks`
lake/catalog.db                 its Iceberg tables: `visits` for default.visits, `web.visits` for others
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from penstock.model.closest import closest
from penstock.spark.errors import Missing
from penstock.spark.lake.opening import open_store
from penstock.spark.lake.options import LakeOptions
from penstock.spark.lake.places import absolute, is_local, opened
from penstock.spark.lake.store import TableStore
from penstock.spark.stores.storage import Storage, catalog_properties

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

DEFAULT_DIRECTORY: Final = "lake"
_DEEP: Final = 3
"""Directories below the warehouse that are looked at; tables in tables are not."""
_NAMED: Final = 20
"""Tables that an error names."""


class NoSuchTable(Missing):
    """No table has this name or path; says which are there."""


@dataclass(frozen=True, slots=True)
class TableName:
    """A table that was found, not opened."""

    name: str
    format: str
    location: str
    """"" for Iceberg tables, whose catalog knows."""
    options: LakeOptions

    def open(self) -> TableStore:
        store = open_store(self.options)
        store.refresh()
        return store


class Warehouse:
    """A directory, and the catalog in it unless another is given. `storage` and `catalog_settings` are settings as
    people write them, see `stores`."""

    def __init__(
        self,
        directory: str,
        catalog: str = "",
        *,
        storage: Mapping[str, str] | None = None,
        catalog_settings: Mapping[str, str] | None = None,
    ) -> None:
        self.directory = absolute(directory)
        self._given, self._catalog_given = dict(storage or {}), dict(catalog_settings or {})
        self._storage = Storage.of(self._given)
        self.catalog = catalog or self._catalog_inside()

    def _catalog_inside(self) -> str:
        from penstock.spark.lake.iceberg.catalogs import CATALOG_FILE, catalog_beside

        inside = Path(self.directory)
        return catalog_beside(inside) if is_local(self.directory) and (inside / CATALOG_FILE).is_file() else ""

    def tables(self) -> list[TableName]:
        """All tables, by name. `Missing` when a catalog is there and pyiceberg is not."""
        found = [*self._delta_tables(), *(self._iceberg_tables() if self.catalog else ())]
        taken = {each.name for each in found if each.format == "delta"}
        return sorted(
            (_told_apart(each) if each.format == "iceberg" and each.name in taken else each for each in found),
            key=lambda each: each.name,
        )

    def find(self, name: str) -> TableName:
        """The table of that name, or at that path: what has a slash is a path first."""
        tables: list[TableName] = []
        if "/" not in name:
            tables = self.tables()
            for each in tables:
                if name in (each.name, each.options.table):
                    return each
        found = self._at_path(name)
        if found is None:
            raise NoSuchTable(self.unknown(name, tables or self.tables()))
        return found

    def unknown(self, name: str, tables: list[TableName]) -> str:
        """The sentence about a name that no table has."""
        names = [each.name for each in tables]
        near = closest(name, names, least=0.5)
        if near is not None:
            return f"there is no table {name} in {self.directory}; did you mean {near}?"
        if not names:
            return f"there is no table {name}: {self.directory} has none (--warehouse names another directory)"
        more = " …" if len(names) > _NAMED else ""
        return f"there is no table {name} in {self.directory}; there are {', '.join(names[:_NAMED])}{more}"

    def _delta_tables(self) -> Iterator[TableName]:
        files, root = opened(self.directory, self._storage)
        for path in _delta_directories(files, root, _DEEP):
            location = self.directory + path.removeprefix(root)
            name = path.removeprefix(root).strip("/").replace("/", ".")
            yield TableName(name, "delta", location, LakeOptions(path=location, storage=self._given))

    def _iceberg_tables(self) -> Iterator[TableName]:
        from penstock.spark.lake.iceberg.catalogs import NAMESPACE, catalog_uri, open_catalog

        properties = catalog_properties(self._catalog_given, self._storage)
        catalog = open_catalog(catalog_uri(self.catalog), properties)
        for namespace in sorted(catalog.list_namespaces()):
            for identifier in sorted(catalog.list_tables(namespace)):
                whole = ".".join(identifier)
                yield TableName(
                    whole.removeprefix(f"{NAMESPACE}."),
                    "iceberg",
                    "",
                    self._iceberg(table=whole, catalog=self.catalog),
                )

    def _at_path(self, name: str) -> TableName | None:
        location = absolute(name)
        files, root = opened(location, self._storage)
        if _has(files, f"{root}/_delta_log"):
            return TableName(name, "delta", location, LakeOptions(path=location, storage=self._given))
        if is_local(location) and Path(location, "metadata").is_dir():
            options = self._iceberg(path=location, catalog=self._catalog_of(Path(location)))
            return TableName(name, "iceberg", location, options)
        return None

    def _iceberg(self, *, catalog: str, path: str = "", table: str = "") -> LakeOptions:
        return LakeOptions(
            path=path,
            table_format="iceberg",
            catalog=catalog,
            table=table,
            storage=self._given,
            catalog_settings=self._catalog_given,
        )

    def _catalog_of(self, location: Path) -> str:
        """The catalog beside a table; else that of the warehouse."""
        from penstock.spark.lake.iceberg.catalogs import CATALOG_FILE, catalog_beside

        return catalog_beside(location.parent) if (location.parent / CATALOG_FILE).is_file() else self.catalog


def _told_apart(table: TableName) -> TableName:
    """A Delta table has the short name already."""
    return replace(table, name=table.options.table)


def _delta_directories(files: FileSystem, root: str, deep: int) -> Iterator[str]:
    from pyarrow import fs

    inside = files.get_file_info(fs.FileSelector(root, allow_not_found=True))
    names = {each.base_name for each in inside if each.type == fs.FileType.Directory}
    if "_delta_log" in names:
        yield root
    elif deep and not {"metadata", "data"} <= names:
        for name in sorted(names):
            if not name.startswith((".", "_")):
                yield from _delta_directories(files, f"{root}/{name}", deep - 1)


def _has(files: FileSystem, path: str) -> bool:
    from pyarrow import fs

    return bool(files.get_file_info(path).type == fs.FileType.Directory)
