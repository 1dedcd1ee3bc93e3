"""The settings of a table's files, resolved; and the same for its catalog."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from penstock.spark.stores import azure, gcs, s3
from penstock.spark.stores.secrets import resolved
from penstock.spark.stores.settings import (
    AZURE_NAMES,
    CATALOG,
    GCS_NAMES,
    S3_NAMES,
    STORAGE,
    check_catalog,
    check_storage,
    kind_of,
)

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

FILE_SYSTEMS_MAX: Final = 32


@dataclass(frozen=True, slots=True)
class Storage:
    """How files are reached. It has secrets, goes to workers, and shows nothing of itself."""

    settings: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Storage:
        """`given` are settings as people write them; `BadOption` when a reference leads nowhere."""
        if not given:
            return FROM_ENVIRONMENT
        check_storage(given)
        return cls(resolved(given, STORAGE))

    def file_system(self, location: str) -> tuple[FileSystem, str]:
        """pyarrow's file system for a URI, and the path in it."""
        kind = kind_of(location)
        if kind is None or not self.settings:
            return _by_uri(location)
        parts = urlsplit(location)
        container, at, host = parts.netloc.partition("@")
        chosen = tuple(sorted(self.settings.items()))
        return _made(kind, chosen, host.partition(".")[0] if at else container), f"{container}{parts.path}".rstrip("/")

    def for_delta(self, location: str) -> dict[str, str] | None:
        """deltalake's storage options; None leaves everything to the environment."""
        match kind_of(location):
            case "s3":
                return s3.delta(self.settings)
            case "gcs" if self.settings:
                return gcs.delta(self.settings)
            case "azure" if self.settings:
                return azure.delta(self.settings)
        return None

    def for_objects(self, location: str) -> dict[str, str]:
        """obstore's configuration, and `allow_http` beside it."""
        match kind_of(location):
            case "s3":
                return s3.objects(self.settings)
            case "gcs":
                return gcs.objects(self.settings)
            case "azure":
                return azure.objects(self.settings)
        return {}

    def for_iceberg(self) -> dict[str, str]:
        """Properties of a pyiceberg catalog, which hands them to whatever opens files."""
        given = self.settings
        told = s3.iceberg({name: value for name, value in given.items() if name in S3_NAMES})
        if "account" in given:
            told = azure.iceberg({name: value for name, value in given.items() if name in AZURE_NAMES})
        elif set(given) <= set(GCS_NAMES):
            told |= gcs.iceberg({name: value for name, value in given.items() if name in GCS_NAMES})
        return told


FROM_ENVIRONMENT: Final = Storage()
"""Nothing is set: libraries look where they always do."""


_CATALOG_KEYS: Final = {"oauth2_server": "oauth2-server-uri"}


def catalog_properties(given: Mapping[str, str], storage: Storage) -> dict[str, str]:
    """What pyiceberg is told when it opens a catalog: how to log in to it, and how its files are reached."""
    check_catalog(given)
    told = {_CATALOG_KEYS.get(name, name): value for name, value in resolved(given, CATALOG).items()}
    return {**storage.for_iceberg(), **told}


@lru_cache(FILE_SYSTEMS_MAX)
def _made(kind: str, settings: tuple[tuple[str, str], ...], container: str) -> FileSystem:
    given = dict(settings)
    match kind:
        case "s3":
            return s3.arrow(given, container)
        case "gcs":
            return gcs.arrow(given)
    return azure.arrow(given, container)


def _by_uri(location: str) -> tuple[FileSystem, str]:
    from pyarrow import fs

    # Hadoop's name for S3 is none of pyarrow's.
    found, path = fs.FileSystem.from_uri(location.replace("s3a://", "s3://", 1))
    return found, path.rstrip("/")
