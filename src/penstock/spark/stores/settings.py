"""What can be set of a store (`storage.…`) and of a catalog (`catalog.…`), and what of it goes together. Pure.

Where nothing is set, libraries look where they always do: variables such as AWS_ACCESS_KEY_ID, roles of the machine.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final
from urllib.parse import urlsplit

from penstock.model.closest import closest
from penstock.spark.errors import BadOption
from penstock.spark.stores.secrets import check_references, is_reference

STORAGE: Final = "storage"
CATALOG: Final = "catalog"

S3_NAMES: Final = (
    "endpoint",
    "region",
    "access_key",
    "secret_key",
    "session_token",
    "role",
    "anonymous",
    "path_style",
)
GCS_NAMES: Final = ("endpoint", "anonymous")
AZURE_NAMES: Final = (
    "endpoint",
    "account",
    "account_key",
    "sas_token",
    "tenant_id",
    "client_id",
    "client_secret",
)
STORAGE_NAMES: Final = tuple(dict.fromkeys((*S3_NAMES, *GCS_NAMES, *AZURE_NAMES)))
STORAGE_SECRETS: Final = frozenset({"secret_key", "session_token", "account_key", "sas_token", "client_secret"})

CATALOG_NAMES: Final = ("warehouse", "credential", "token", "scope", "oauth2_server", "prefix")
CATALOG_SECRETS: Final = frozenset({"credential", "token"})

KINDS: Final = {
    "s3": "s3",
    "s3a": "s3",
    "gs": "gcs",
    "gcs": "gcs",
    "abfs": "azure",
    "abfss": "azure",
    "az": "azure",
}
"""Of which kind of store a location is, by its scheme."""

_NAMES_OF: Final = {"s3": S3_NAMES, "gcs": GCS_NAMES, "azure": AZURE_NAMES}
_WORD_OF: Final = {"s3": "S3", "gcs": "Google's", "azure": "Azure's"}
_FLAGS: Final = ("anonymous", "path_style")
_NEEDS: Final = {
    "access_key": "secret_key",
    "secret_key": "access_key",
    "session_token": "access_key",
    "tenant_id": "client_id",
    "client_id": "client_secret",
    "client_secret": "tenant_id",
}
"""A part of a login is none."""


def kind_of(location: str) -> str | None:
    """s3, gcs or azure; None for everything else."""
    return KINDS.get(location.partition("://")[0].lower()) if "://" in location else None


def check_storage(given: Mapping[str, str], location: str = "") -> None:
    """Raises `BadOption`, which begins with the setting's name, for what cannot be right at `location`."""
    _check_names(given, STORAGE, STORAGE_NAMES)
    check_references(given, STORAGE_SECRETS, STORAGE)
    for name in _FLAGS:
        if given.get(name, "true") not in ("true", "false"):
            raise BadOption(f"{STORAGE}.{name} is {given[name]!r}: it is true or false")
    for name, other in _NEEDS.items():
        if name in given and other not in given:
            raise BadOption(f"{STORAGE}.{name} needs {STORAGE}.{other}: one alone logs nobody in")
    if given.get("anonymous") == "true" and (both := [name for name in given if name in STORAGE_SECRETS]):
        raise BadOption(f"{STORAGE}.anonymous goes without {STORAGE}.{both[0]}: whoever is anonymous has no key")
    if "account_key" in given and "sas_token" in given:
        raise BadOption(f"{STORAGE}.sas_token and {STORAGE}.account_key are two ways to log in: leave one out")
    endpoint = given.get("endpoint")
    if endpoint is not None and not is_reference(endpoint):
        _check_endpoint(endpoint)
    _check_place(given, location)


def check_catalog(given: Mapping[str, str], beside: Collection[str] = ()) -> None:
    """`beside` are names that are told elsewhere where these settings are written, and may have been meant."""
    _check_names(given, CATALOG, (*beside, *CATALOG_NAMES))
    check_references(given, CATALOG_SECRETS, CATALOG)
    if "credential" in given and "token" in given:
        raise BadOption(f"{CATALOG}.token and {CATALOG}.credential are two ways to log in: leave one out")
    if "scope" in given and "credential" not in given:
        raise BadOption(f"{CATALOG}.scope needs {CATALOG}.credential: it says what that login is for")


def as_options(storage: Mapping[str, str], catalog: Mapping[str, str]) -> dict[str, str]:
    """The settings as options of formats: `storage.endpoint` and so on."""
    found = {f"{STORAGE}.{name}": value for name, value in storage.items()}
    return found | {f"{CATALOG}.{name}": value for name, value in catalog.items()}


def under(given: Mapping[str, str], title: str) -> dict[str, str]:
    """Settings by their names below `title`, in an order of their own: options that say the same are equal."""
    prefix = f"{title}."
    return {name.removeprefix(prefix): given[name] for name in sorted(given) if name.startswith(prefix)}


def _check_names(given: Mapping[str, str], title: str, known: Collection[str]) -> None:
    for name, value in given.items():
        if name not in known:
            near = closest(name, list(known), least=0.6)
            hint = f"; did you mean {title}.{near}?" if near is not None else f"; there are {', '.join(known)}"
            raise BadOption(f"{title}.{name} means nothing{hint}")
        if not value.strip():
            raise BadOption(f"{title}.{name} is empty: leave it out, or say what it is")


def _check_endpoint(endpoint: str) -> None:
    parts = urlsplit(endpoint)
    whole = parts.scheme in ("http", "https") and parts.netloc and parts.path in ("", "/") and not parts.query
    if not whole or "@" in parts.netloc:
        raise BadOption(f"{STORAGE}.endpoint is no address such as https://s3.example.com or http://127.0.0.1:9000")


def _check_place(given: Mapping[str, str], location: str) -> None:
    kind = kind_of(location)
    if kind is None:
        return
    strange = [name for name in given if name not in _NAMES_OF[kind]]
    if strange:
        raise BadOption(
            f"{STORAGE}.{strange[0]} means nothing at {location}: {_WORD_OF[kind]} settings are "
            f"{', '.join(_NAMES_OF[kind])}{_ELSEWHERE.get(kind, '')}"
        )
    if kind == "azure" and "account" not in given and _account_in(location) is None and given:
        raise BadOption(f"{STORAGE}.account is missing: {location} does not name the account that it lies in")


_ELSEWHERE: Final = {
    "gcs": "; its login comes from the environment (GOOGLE_APPLICATION_CREDENTIALS), because pyarrow takes no key file"
}


def _account_in(location: str) -> str | None:
    """abfss://container@account.dfs.core.windows.net/… names the account."""
    _, at, host = urlsplit(location).netloc.partition("@")
    return host.partition(".")[0] if at else None
