"""`[references.NAME] table = "…", refresh = "5 minutes"`: a table that steps may join, looked at again and again.

Spark keeps the plan of a table that it reads beside a stream: what is written to it later is never seen by that query.
So whoever runs a query looks at the versions of its references, and when one has moved, begins the query again from its
checkpoint between two batches. Nothing is lost or doubled by that. (Sinks that stand together do their steps batch by
batch and see what is there at each.)
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from penstock.declared.fields import Table
from penstock.spark.pipeline.flow import AVAILABLE_NOW, Flow, Reference, Sink
from penstock.spark.pipeline.store_settings import catalog_uri, source_settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMATS: Final = ("delta", "iceberg")
REFRESH_MS: Final = 300_000
REST_WITHIN_MS: Final = 60_000
"""A query that never rests between two batches is begun again in the middle of one, which is done anew."""

_INTERVAL: Final = re.compile(r"\s*(\d+)\s+(second|minute|hour|day)s?\s*", re.IGNORECASE)
_UNIT_MS: Final = {"second": 1_000, "minute": 60_000, "hour": 3_600_000, "day": 86_400_000}

_log = logging.getLogger("penstock.spark.pipeline")


def reference_of(table: Table, name: str) -> Reference:
    """One of the file."""
    made = Reference(
        name=name,
        table=table.required_text("table", "the table of the lake that it is"),
        table_format=table.choice("table_format", FORMATS, "delta"),
        refresh_ms=_refresh(table),
        options=table.options("options"),
        line=table.line,
    )
    table.finish()
    return made


def _refresh(table: Table) -> int:
    given = table.text("refresh")
    if given is None:
        return REFRESH_MS
    found = _INTERVAL.fullmatch(given)
    if found is None or not int(found[1]):
        table.wrong(
            "refresh", f'refresh = {given!r} is no interval such as "5 minutes": how often the table is looked at'
        )
        return REFRESH_MS
    return int(found[1]) * _UNIT_MS[found[2].lower()]


def reference_options(flow: Flow, reference: Reference) -> dict[str, str]:
    """Options of format("penstock-lake") for a read of it."""
    made = {
        "path": flow.place_of(reference.table),
        "table.format": reference.table_format,
        **source_settings(flow, iceberg=reference.table_format == "iceberg"),
        **catalog_uri(flow, reference.table_format),
    }
    given = {name.lower() for name in reference.options}
    return {**{name: value for name, value in made.items() if name.lower() not in given}, **reference.options}


def rows_of_reference(spark: SparkSession, flow: Flow, reference: Reference) -> DataFrame:
    """As it is now."""
    from penstock.spark.naming import LAKE_FORMAT

    return spark.read.format(LAKE_FORMAT).options(**reference_options(flow, reference)).load()


class ReferenceWatch:
    """The references of one sink's query: whether they have moved since it began."""

    def __init__(
        self, flow: Flow, sink: Sink, *, version_of: Callable[[Flow, Reference], int | None] | None = None
    ) -> None:
        """`version_of` answers None where it cannot be told."""
        self._flow = flow
        watched = sink.together is None and sink.trigger != AVAILABLE_NOW
        self._references = flow.references_of(sink) if watched else ()
        self._version_of = version_of or version_now
        self._seen: dict[str, int | None] = {}
        self._due_s: dict[str, float] = {}
        self._moved_at_s: float | None = None

    def begun(self, now_s: float) -> None:
        """The query is about to begin: what it reads then is what is there."""
        self._moved_at_s = None
        for each in self._references:
            self._seen[each.name] = self._version_of(self._flow, each)
            self._due_s[each.name] = now_s + each.refresh_ms / 1000

    def moved(self, now_s: float) -> bool:
        """Whether the query should begin again; each reference is looked at once in its interval."""
        for each in self._due(now_s):
            version = self._version_of(self._flow, each)
            self._due_s[each.name] = now_s + each.refresh_ms / 1000
            if version is not None and version != self._seen[each.name] and self._moved_at_s is None:
                _log.info("reference %s has moved from version %s to %d", each.name, self._seen[each.name], version)
                self._moved_at_s = now_s
        return self._moved_at_s is not None

    def late(self, now_s: float) -> bool:
        """Whether it has waited long enough for the query to rest."""
        return self._moved_at_s is not None and now_s - self._moved_at_s > REST_WITHIN_MS / 1000

    def _due(self, now_s: float) -> Iterable[Reference]:
        return [each for each in self._references if now_s >= self._due_s.get(each.name, 0.0)]


def version_now(flow: Flow, reference: Reference) -> int | None:
    """None when the table cannot be looked at now: the query goes on with what it has."""
    from penstock.spark.lake.opening import open_store
    from penstock.spark.lake.options import LakeOptions

    try:
        store = open_store(LakeOptions.of(reference_options(flow, reference)))
        store.refresh()
        return store.version()
    except Exception as failure:  # libraries of formats raise what they like
        _log.warning("reference %s cannot be looked at: %s", reference.name, failure)
        return None
