"""S3 and what speaks its protocol, as each library is told of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

_ENDPOINTS: Final = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
_REGIONS: Final = ("AWS_REGION", "AWS_DEFAULT_REGION")
REGION_OF_OTHERS: Final = "us-east-1"
"""What servers that are not Amazon's take for a region when nobody says one."""

_DELTA: Final = {
    "endpoint": "AWS_ENDPOINT_URL",
    "region": "AWS_REGION",
    "access_key": "AWS_ACCESS_KEY_ID",
    "secret_key": "AWS_SECRET_ACCESS_KEY",
    "session_token": "AWS_SESSION_TOKEN",
    "role": "AWS_IAM_ROLE_ARN",
    "anonymous": "AWS_SKIP_SIGNATURE",
}
_OBJECTS: Final = {
    "region": "region",
    "access_key": "access_key_id",
    "secret_key": "secret_access_key",
    "session_token": "session_token",
    "anonymous": "skip_signature",
}
_ICEBERG: Final = {
    "endpoint": "s3.endpoint",
    "region": "s3.region",
    "access_key": "s3.access-key-id",
    "secret_key": "s3.secret-access-key",
    "session_token": "s3.session-token",
    "role": "s3.role-arn",
    "anonymous": "s3.anonymous",
}


def arrow(settings: Mapping[str, str], bucket: str) -> FileSystem:
    from pyarrow import fs

    endpoint = settings.get("endpoint") or _first(_ENDPOINTS)
    parts = urlsplit(endpoint) if endpoint else None
    region = settings.get("region") or _first(_REGIONS)
    if not region:
        region = REGION_OF_OTHERS if parts is not None else fs.resolve_s3_region(bucket)
    return fs.S3FileSystem(
        access_key=settings.get("access_key"),
        secret_key=settings.get("secret_key"),
        session_token=settings.get("session_token"),
        role_arn=settings.get("role"),
        anonymous=settings.get("anonymous") == "true",
        region=region,
        scheme=parts.scheme if parts is not None else None,
        endpoint_override=parts.netloc if parts is not None else None,
        force_virtual_addressing=settings.get("path_style") == "false",
    )


def delta(settings: Mapping[str, str]) -> dict[str, str]:
    told = {_DELTA[name]: value for name, value in settings.items() if name in _DELTA}
    if settings.get("endpoint", "").startswith("http://"):
        told["AWS_ALLOW_HTTP"] = "true"
    if settings.get("endpoint") and "region" not in settings and not _first(_REGIONS):
        told["AWS_REGION"] = REGION_OF_OTHERS
    if "path_style" in settings:
        told["AWS_VIRTUAL_HOSTED_STYLE_REQUEST"] = "false" if settings["path_style"] == "true" else "true"
    # Two writers of one version are told apart by the store, whatever the environment says.
    return {**told, "AWS_CONDITIONAL_PUT": "etag", "AWS_S3_ALLOW_UNSAFE_RENAME": "false"}


def objects(settings: Mapping[str, str]) -> dict[str, str]:
    """For obstore. It assumes no roles (`pipeline/store_settings.py` says so)."""
    told = {_OBJECTS[name]: value for name, value in settings.items() if name in _OBJECTS}
    endpoint = settings.get("endpoint") or _first(_ENDPOINTS)
    if endpoint is not None:
        told["endpoint"] = endpoint
        told["region"] = settings.get("region") or _first(_REGIONS) or REGION_OF_OTHERS
        told["allow_http"] = "true" if endpoint.startswith("http://") else "false"
    if "path_style" in settings:
        told["virtual_hosted_style_request"] = "false" if settings["path_style"] == "true" else "true"
    return {**told, "conditional_put": "etag"}


def iceberg(settings: Mapping[str, str]) -> dict[str, str]:
    told = {_ICEBERG[name]: value for name, value in settings.items() if name in _ICEBERG}
    # pyiceberg makes pyarrow's file system by its constructor, which looks into no environment for these.
    if (endpoint := settings.get("endpoint") or _first(_ENDPOINTS)) is not None:
        told["s3.endpoint"] = endpoint
        told["s3.region"] = settings.get("region") or _first(_REGIONS) or REGION_OF_OTHERS
    if "path_style" in settings:
        told["s3.force-virtual-addressing"] = "false" if settings["path_style"] == "true" else "true"
    return told


def _first(variables: tuple[str, ...]) -> str | None:
    return next((value for name in variables if (value := os.environ.get(name))), None)
