"""Azure's storage, as each library is told of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

_DELTA: Final = {
    "account": "azure_storage_account_name",
    "account_key": "azure_storage_account_key",
    "sas_token": "azure_storage_sas_token",
    "tenant_id": "azure_storage_tenant_id",
    "client_id": "azure_storage_client_id",
    "client_secret": "azure_storage_client_secret",
    "endpoint": "azure_endpoint",
}
_ICEBERG: Final = {
    "account": "adls.account-name",
    "account_key": "adls.account-key",
    "sas_token": "adls.sas-token",
    "tenant_id": "adls.tenant-id",
    "client_id": "adls.client-id",
    "client_secret": "adls.client-secret",
}
_LOGINS: Final = ("account_key", "sas_token", "tenant_id", "client_id", "client_secret")


def arrow(settings: Mapping[str, str], account: str) -> FileSystem:
    from pyarrow import fs

    parts = urlsplit(settings["endpoint"]) if "endpoint" in settings else None
    address = (
        {}
        if parts is None
        else {
            "blob_storage_authority": parts.netloc,
            "blob_storage_scheme": parts.scheme,
            "dfs_storage_authority": parts.netloc,
            "dfs_storage_scheme": parts.scheme,
        }
    )
    logins = {name: settings[name] for name in _LOGINS if name in settings}
    return fs.AzureFileSystem(account_name=settings.get("account", account), **logins, **address)


def delta(settings: Mapping[str, str]) -> dict[str, str]:
    told = {_DELTA[name]: value for name, value in settings.items() if name in _DELTA}
    if settings.get("endpoint", "").startswith("http://"):
        told["allow_http"] = "true"
    return told


def objects(settings: Mapping[str, str]) -> dict[str, str]:
    """For obstore, whose names are deltalake's without their beginning."""
    told = {name.removeprefix("azure_storage_").removeprefix("azure_"): each for name, each in delta(settings).items()}
    return {("sas_key" if name == "sas_token" else name): each for name, each in told.items()}


def iceberg(settings: Mapping[str, str]) -> dict[str, str]:
    told = {_ICEBERG[name]: value for name, value in settings.items() if name in _ICEBERG}
    if "endpoint" in settings:
        parts = urlsplit(settings["endpoint"])
        told |= {f"adls.{each}-storage-authority": parts.netloc for each in ("blob", "dfs")}
        told |= {f"adls.{each}-storage-scheme": parts.scheme for each in ("blob", "dfs")}
    return told
