"""[storage] and [catalog] of a pipeline file, and the options that they become. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from penstock.declared.fields import Table
from penstock.spark.errors import BadOption
from penstock.spark.pipeline.flow import Flow, Sink
from penstock.spark.stores.secrets import FILE, is_reference
from penstock.spark.stores.settings import CATALOG, STORAGE, as_options, check_catalog, check_storage

URI: Final = "uri"
"""Of [catalog]: where it is, which is the option `catalog` of tables."""


def storage_of(file: Table, directory: Path) -> dict[str, str]:
    found = _placed(file.options(STORAGE), directory)
    _told(file, STORAGE, lambda: check_storage(found))
    return found


def catalog_of(file: Table, directory: Path) -> dict[str, str]:
    found = _placed(file.options(CATALOG), directory)
    if found and URI not in found:
        file.wrong(CATALOG, f'{CATALOG} has no uri: where it is, such as "https://catalog.example.com/api/catalog"')
    _told(file, CATALOG, lambda: check_catalog(_without_uri(found), beside=(URI,)))
    return found


def _placed(given: Mapping[str, str], directory: Path) -> dict[str, str]:
    """Files with secrets lie where the pipeline's file does, unless they say where, like every other path in it."""
    return {
        name: f"{FILE}{directory / Path(value.removeprefix(FILE)).expanduser()}" if _is_file(value) else value
        for name, value in given.items()
    }


def _is_file(value: str) -> bool:
    return value.startswith(FILE) and is_reference(value)


def _told(file: Table, title: str, check: Callable[[], None]) -> None:
    """What is wrong, at the key that the message begins with."""
    try:
        check()
    except BadOption as wrong:
        key = str(wrong).split()[0].removeprefix(f"{title}.")
        file.notes.wrong((*file.path, title, key), str(wrong))


def table_options(flow: Flow, sink: Sink) -> dict[str, str]:
    """Those that say how the table of a sink is reached, and where an Iceberg table is that a catalog knows."""
    if sink.table_format != "iceberg":
        return as_options(flow.storage, {})
    found = as_options(flow.storage, _without_uri(flow.catalog))
    return {CATALOG: flow.catalog[URI], **found} if URI in flow.catalog else found


def source_settings(flow: Flow, *, iceberg: bool = True) -> dict[str, str]:
    """Those for tables of dead letters, for tables in which reading begins, and for those that are read."""
    return as_options(flow.storage, _without_uri(flow.catalog) if iceberg else {})


def catalog_uri(flow: Flow, table_format: str) -> dict[str, str]:
    """Where the catalog is, for an Iceberg table that it knows."""
    return {CATALOG: flow.catalog[URI]} if table_format == "iceberg" and URI in flow.catalog else {}


def _without_uri(catalog: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in catalog.items() if name != URI}
