"""Which table a topic feeds: the one that was named, or the one in the warehouse that says so."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from penstock.spark.errors import BadOption, Missing
from penstock.spark.feed import ONE_ROW_A_RECORD, Feed
from penstock.spark.lake.opening import open_store
from penstock.spark.lake.options import LakeOptions
from penstock.spark.lake.store import FEED_PROPERTY
from penstock.spark.lake.warehouse import DEFAULT_DIRECTORY, TableName, Warehouse

if TYPE_CHECKING:
    from penstock.spark.lake.store import TableStore

WAREHOUSE_VARIABLE: Final = "PENSTOCK_WAREHOUSE"

_log = logging.getLogger("penstock.spark.union")


@dataclass(frozen=True, slots=True)
class FedTable:
    """A table and what feeds it."""

    name: str
    options: LakeOptions
    store: TableStore
    feed: Feed


def find(
    topic: str,
    *,
    path: str | None = None,
    catalog: str | None = None,
    table: str | None = None,
    warehouse: str | None = None,
    storage: Mapping[str, str] | None = None,
    catalog_settings: Mapping[str, str] | None = None,
) -> FedTable:
    """The table that `topic` feeds; `Missing` and `BadOption` say what was looked at and what to do."""
    directory = warehouse or os.environ.get(WAREHOUSE_VARIABLE) or DEFAULT_DIRECTORY
    searched = Warehouse(directory, catalog or "", storage=storage, catalog_settings=catalog_settings)
    if path is not None and (catalog or table):
        options = LakeOptions(
            path=path,
            table_format="iceberg",
            catalog=catalog or "",
            table=table or "",
            storage=storage or {},
            catalog_settings=catalog_settings or {},
        )
        return _opened(topic, TableName(path, "iceberg", path, options))
    if path is not None or table is not None:
        return _opened(topic, searched.find(path or table or ""))
    return _opened(topic, _only_one(topic, searched, _feeds_of(searched)))


def _opened(topic: str, named: TableName) -> FedTable:
    """The table, if it is there and says that the topic feeds it."""
    store = open_store(named.options)
    store.refresh()
    said = store.properties().get(FEED_PROPERTY)
    if not said:
        raise BadOption(
            f"table {named.name} does not say which topic feeds it, so its log cannot be read with it: tables of "
            "`penstock pipeline` do; for a stream of your own give the sink's option feed"
        )
    feed = Feed.of_property(said)
    if not feed.names(topic):
        raise BadOption(f"table {named.name} is fed from {feed.pattern or ', '.join(feed.topics)}, not from {topic}")
    return FedTable(named.name, named.options, store, feed)


_said: dict[LakeOptions, str] = {}
"""What tables said when they were last opened: a feed is written once, when the table is made."""


def _feeds_of(warehouse: Warehouse) -> dict[TableName, Feed]:
    """All tables that say what feeds them. Those that cannot be opened are somebody else's worry."""
    feeds = {}
    for named in warehouse.tables():
        try:
            said = _said.get(named.options) or named.open().properties().get(FEED_PROPERTY)
            if said:
                _said[named.options] = said
                feeds[named] = Feed.of_property(said)
        except Exception as failure:  # libraries of formats raise what they like
            _log.warning("table %s of %s is passed over: %s", named.name, warehouse.directory, failure)
    return feeds


def _only_one(topic: str, warehouse: Warehouse, feeds: dict[TableName, Feed]) -> TableName:
    fed = [named for named, feed in feeds.items() if feed.names(topic)]
    # One topic may feed a table of its records and others of sums over them.
    whole = [named for named in fed if feeds[named].rows == ONE_ROW_A_RECORD] or fed
    if not whole:
        raise Missing(
            f"no table in {warehouse.directory} says that topic {topic} feeds it ({len(feeds)} say what does). Give "
            f"its path or another warehouse ({WAREHOUSE_VARIABLE}), or write one: penstock pipeline init"
        )
    if len(whole) > 1:
        names = ", ".join(named.name for named in whole)
        raise BadOption(
            f"topic {topic} feeds {len(whole)} tables of {warehouse.directory}: {names}. Give table=, or path="
        )
    return whole[0]
