"""Google's storage, as each library is told of it. Logins are found by the libraries in the environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem


def arrow(settings: Mapping[str, str]) -> FileSystem:
    from pyarrow import fs

    parts = urlsplit(settings["endpoint"]) if "endpoint" in settings else None
    return fs.GcsFileSystem(
        anonymous=settings.get("anonymous") == "true",
        scheme=parts.scheme if parts is not None else None,
        endpoint_override=parts.netloc if parts is not None else None,
    )


def delta(settings: Mapping[str, str]) -> dict[str, str]:
    told = {}
    if "endpoint" in settings:
        told["google_base_url"] = settings["endpoint"]
    if settings.get("anonymous") == "true":
        told["google_skip_signature"] = "true"
    return told


def objects(settings: Mapping[str, str]) -> dict[str, str]:
    """For obstore."""
    told: dict[str, str] = {}
    if "endpoint" in settings:
        told |= {"base_url": settings["endpoint"]}
        told["allow_http"] = "true" if settings["endpoint"].startswith("http://") else "false"
    if settings.get("anonymous") == "true":
        told["skip_signature"] = "true"
    return told


def iceberg(settings: Mapping[str, str]) -> dict[str, str]:
    return {"gcs.service.host": settings["endpoint"]} if "endpoint" in settings else {}
