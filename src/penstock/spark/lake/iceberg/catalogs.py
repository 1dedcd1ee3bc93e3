"""Which catalog, which name in it, which directory. SQLite catalogs may be made by several processes at once."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from penstock.spark.errors import BadOption, Missing, SparkRoomError
from penstock.spark.lake.options import NEEDS_PYICEBERG, LakeOptions
from penstock.spark.lake.places import absolute, is_local
from penstock.spark.stores.storage import Storage, catalog_properties

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

CATALOG_FILE: Final = "catalog.db"
CATALOG_NAME: Final = "default"
"""SQL catalogs keep it in every row. It is what pyiceberg assumes when told nothing, so others find our tables."""
NAMESPACE: Final = "default"

_BUSY_S: Final = 30
"""How long SQLite waits for another process that is writing."""
_TRIES: Final = 8


class CatalogSilent(SparkRoomError):
    """The catalog does not answer, or not to us: whether a table is there nobody knows."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where an Iceberg table is."""

    catalog: str
    """A URI, or name=… of pyiceberg's configuration."""
    identifier: tuple[str, ...]
    location: str
    """"" when the catalog shall choose."""
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What the catalog is opened with; there may be secrets among them."""

    @property
    def name(self) -> str:
        return ".".join(self.identifier)


def place_of(options: LakeOptions) -> Place:
    """What the options come to; a table known by its path alone is in the catalog beside it."""
    location = absolute(options.path) if options.path else ""
    catalog = options.catalog
    if not catalog:
        if not is_local(location):
            raise BadOption(f"an Iceberg table at {location} needs option catalog: which one knows it?")
        catalog = catalog_beside(Path(location).parent)
    identifier = tuple(options.table.split(".")) if options.table else (NAMESPACE, location.rstrip("/").split("/")[-1])
    if len(identifier) < 2 or not all(identifier):
        raise BadOption(f"option table is {options.table!r}: namespace.name is wanted")
    properties = catalog_properties(options.catalog_settings, Storage.of(options.storage))
    return Place(catalog_uri(catalog), identifier, location, properties)


def catalog_beside(directory: Path) -> str:
    return f"sqlite:///{directory.absolute() / CATALOG_FILE}"


def catalog_uri(given: str) -> str:
    """A URI of a catalog; the path of a SQLite file will do."""
    if "://" in given or given.startswith("name="):
        return given
    if given.endswith(".db"):
        return f"sqlite:///{Path(given).absolute()}"
    raise BadOption(
        f"option catalog is {given!r}: sqlite:///FILE, http(s)://HOST/…, or name=NAME of pyiceberg's configuration"
    )


def sqlite_file(catalog: str) -> Path | None:
    """The file of a SQLite catalog."""
    if not catalog.startswith("sqlite:///"):
        return None
    return Path(catalog.removeprefix("sqlite:///").partition("?")[0])


def open_catalog(catalog: str, properties: Mapping[str, str] | None = None, *, create: bool = False) -> Catalog:
    """The catalog; a SQLite file is made only if `create`, else `Missing` when there is none. `CatalogSilent`.

    `properties` say how to log in, and how its tables' files are reached.
    """
    given = dict(properties or {})
    try:
        from pyiceberg.catalog import load_catalog
        from pyiceberg.exceptions import RESTError
    except ImportError as missing:
        raise Missing(NEEDS_PYICEBERG) from missing
    file = sqlite_file(catalog)
    if file is None:
        named = catalog.startswith("name=")
        try:
            if named:
                return load_catalog(catalog.removeprefix("name="), **given)
            return load_catalog(CATALOG_NAME, **{**given, "uri": catalog})
        except (OSError, ValueError, RESTError) as failure:
            hint = "see pyiceberg's configuration" if named else "is it running there, and does it let us in?"
            raise CatalogSilent(f"the Iceberg catalog {catalog} cannot be opened: {failure} ({hint})") from failure
    if create:
        file.parent.mkdir(parents=True, exist_ok=True)
    elif not file.is_file():
        raise Missing(f"there is no Iceberg catalog at {file}")
    return _open_sqlite(catalog, file, given)


def _open_sqlite(catalog: str, file: Path, properties: Mapping[str, str]) -> Catalog:
    try:
        from pyiceberg.catalog.sql import SqlCatalog
        from sqlalchemy.exc import OperationalError
    except ImportError as missing:
        raise Missing("Iceberg's SQLite catalog needs SQLAlchemy: pip install 'penstock[spark,iceberg]'") from missing
    uri = catalog if "?" in catalog else f"{catalog}?timeout={_BUSY_S}"
    for left in reversed(range(_TRIES)):
        try:
            return SqlCatalog(CATALOG_NAME, **{"warehouse": str(file.parent.absolute()), **properties, "uri": uri})
        except OperationalError:
            # Another process makes the same tables at this moment: they are there when we look again.
            if not left:
                raise
            pause(_TRIES - left)
    raise AssertionError("the last try returns or raises")


def pause(tries: int) -> None:
    """Between tries; uneven, so that two processes do not meet again and again."""
    time.sleep(random.uniform(0.5, 1.0) * min(0.01 * 2**tries, 1.0))
